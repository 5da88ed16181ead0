// SMTP replies: code, enhanced code (RFC 3463) and text.

/** An error reply to the client. */
export class SmtpReply extends Error {
  override readonly name = 'SmtpReply';

  constructor(
    readonly responseCode: number,
    enhanced: string,
    text: string,
  ) {
    super(`${enhanced} ${text}`);
  }
}

export const TRY_LATER = (): SmtpReply =>
  new SmtpReply(451, '4.3.0', 'The message could not be stored. Try again later.');
