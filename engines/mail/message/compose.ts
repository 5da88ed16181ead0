// Messages that the platform itself writes.
import MailComposer from 'nodemailer/lib/mail-composer';
import type { Readable } from 'node:stream';

interface WrittenMessage {
  from: string;
  recipients: string[];
  subject: string;
  text: string;
  html: string;
  /** With its angle brackets. */
  messageId: string;
}

/** An address is one, whatever stands in its quotes. */
function mailboxOf(address: string): { name: string; address: string } {
  return { name: '', address };
}

/** A message as it is sent, with CRLF. One recipient is named in it, several are not shown to each other. */
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
