// References to a recipient of a message, which return to the platform: in the return path (VERP), in links, and in a
// header field. They are signed against forgery.
import type { SecretBox } from '../secrets';

export interface MailReference {
  /** The message id without its prefix. */
  message_id: string;
  number: number;
}

const PREFIX = 'eml_';
const SIGNATURE_CHARACTERS = 16;
const FORM = /^([0-9a-z]{26})-(\d{1,5})-([0-9a-f]{16})$/;

/** `<id>-<number>-<signature>` in lower case, since some servers convert local parts. */
export function formatReference(secrets: SecretBox, { message_id, number }: MailReference): string {
  const text = `${message_id.slice(PREFIX.length)}-${number}`;
  return `${text}-${signatureOf(secrets, text)}`;
}

/** Null for a text that was not created by this installation. */
export function parseReference(secrets: SecretBox, text: string): MailReference | null {
  const [, id, number, signature] = FORM.exec(text.toLowerCase()) ?? [];
  if (!id || number === undefined || signature !== signatureOf(secrets, `${id}-${number}`)) return null;
  return { message_id: `${PREFIX}${id}`, number: Number(number) };
}

function signatureOf(secrets: SecretBox, text: string): string {
  return secrets.hmac(text, 'mail reference').slice(0, SIGNATURE_CHARACTERS);
}

const LOCAL_PREFIX = 'b-';

/** Local part of the return path. */
export function returnPathLocal(secrets: SecretBox, reference: MailReference): string {
  return LOCAL_PREFIX + formatReference(secrets, reference);
}

export function parseReturnPath(secrets: SecretBox, address: string): MailReference | null {
  const local = address.slice(0, address.lastIndexOf('@')).toLowerCase();
  return local.startsWith(LOCAL_PREFIX) ? parseReference(secrets, local.slice(LOCAL_PREFIX.length)) : null;
}
