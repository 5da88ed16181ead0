// Tracking links: they contain their target, signed, so that they are not open redirects.
import { formatReference, parseReference, type MailReference } from './mail_reference';
import type { SecretBox } from '../secrets';

export const MAIL_LINK_PATH = '/mail/';

const SIGNATURE_CHARACTERS = 32;
const URL_CHARACTERS_MAX = 4096;

/** A link that counts the click and redirects; the unmodified URL where it is too long. */
export function mailLink(secrets: SecretBox, baseUrl: string, to: MailReference, url: string): string {
  if (url.length > URL_CHARACTERS_MAX) return url;
  const target = Buffer.from(url).toString('base64url');
  const reference = formatReference(secrets, to);
  return `${baseUrl}${MAIL_LINK_PATH}c/${reference}/${signatureOf(secrets, reference, url)}/${target}`;
}

/** A transparent image of one pixel. */
export function openPicture(secrets: SecretBox, baseUrl: string, to: MailReference): string {
  const src = `${baseUrl}${MAIL_LINK_PATH}o/${formatReference(secrets, to)}.gif`;
  return `<img src="${src}" width="1" height="1" alt="" style="display:none">`;
}

/** The content of a link path; null for an invalid signature. */
export function readMailLink(
  secrets: SecretBox,
  path: string,
): { kind: 'open'; to: MailReference } | { kind: 'click'; to: MailReference; url: string } | null {
  const opened = /^\/mail\/o\/([0-9a-z-]{1,64})\.gif$/.exec(path);
  if (opened) {
    const to = parseReference(secrets, opened[1] as string);
    return to && { kind: 'open', to };
  }
  const [, reference = '', signature, target = ''] =
    /^\/mail\/c\/([0-9a-z-]{1,64})\/([0-9a-f]{32})\/([\w-]+)$/.exec(path) ?? [];
  const to = parseReference(secrets, reference);
  const url = Buffer.from(target, 'base64url').toString('utf8');
  if (!to || signature !== signatureOf(secrets, reference, url) || !/^https?:\/\//i.test(url)) return null;
  return { kind: 'click', to, url };
}

function signatureOf(secrets: SecretBox, reference: string, url: string): string {
  return secrets.hmac(`${reference} ${url}`, 'mail link').slice(0, SIGNATURE_CHARACTERS);
}
