// Messages composed by the platform itself.
import MailComposer from 'nodemailer/lib/mail-composer';
import type { Readable } from 'node:stream';

interface WrittenMessage {
  from: string;
  recipients: string[];
  subject: string;
  text: string;
  html: string;
  /** With angle brackets. */
  messageId: string;
}

/** Passes the address as an object, so that quoted local parts are not parsed again. */
function mailboxOf(address: string): { name: string; address: string } {
  return { name: '', address };
}

/** The message as it is sent, with CRLF. A single recipient is named in To; several are not disclosed to each other. */
export function composeMessage({ recipients, ...fields }: WrittenMessage): Readable {
  const composed = new MailComposer({
    ...fields,
    to: recipients.length === 1 ? recipients.map(mailboxOf) : undefined,
    bcc: recipients.map(mailboxOf),
    headers: { 'Auto-Submitted': 'auto-generated' },
    newline: '\r\n',
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return composed.compile().createReadStream();
}
