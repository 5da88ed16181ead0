// Normalisation of mail addresses from the API, the SMTP envelope and header fields.
import { domainToASCII } from 'node:url';

interface Mailbox {
  /** The part before the `@`: a dot-string, or a quoted string where required. */
  local: string;
  /** In lower case and ASCII, or an address literal in brackets. */
  domain: string;
}

const ATEXT = "[\\w!#$%&'*+/=?^`{|}~\\u0080-\\u{10ffff}-]";
const DOT_STRING = new RegExp(`^${ATEXT}+(?:\\.${ATEXT}+)*$`, 'u');
/** RFC 5321 §4.1.2, with RFC 6531 §3.3: allowed content between quotes, and characters that can be escaped. */
const QUOTED = /^"((?:[^"\\\p{Cc}]|\\[ -~])*)"$/u;
const LITERAL = /^\[[0-9A-Za-z.:-]{1,60}\]$/;
const NAME = /^[\w.\u0080-\u{10ffff}-]+$/u;
const NAME_MAX = 253;

/**
 * Parses `local-part@domain` (RFC 5321 §4.1.2, RFC 6531 §3.3) without brackets, comments and display name. Unnecessary
 * quotes of a local part are removed. @returns null for an invalid address
 */
export function parseMailbox(text: string): Mailbox | null {
  const at = text.lastIndexOf('@');
  if (at < 1) return null;
  const local = normalLocalPart(text.slice(0, at));
  const domain = asciiDomain(text.slice(at + 1));
  return local === null || domain === null ? null : { local, domain };
}

/**
 * The normal form of all spellings of a mailbox, except for the case of its local part; null for an invalid address.
 */
export function normalizeMailbox(text: string): string | null {
  const mailbox = parseMailbox(text);
  return mailbox && `${mailbox.local}@${mailbox.domain}`;
}

/** A domain in its DNS form: ASCII (UTS 46) in lower case; literals are unchanged. Null for an invalid domain. */
export function asciiDomain(text: string): string | null {
  if (LITERAL.test(text)) return text;
  // domainToASCII decodes percent encoding and parses numbers as IPv4 addresses, so characters are checked first.
  if (!NAME.test(text)) return null;
  const isPlain = /^[\w.-]*$/.test(text) && !/xn--/i.test(text);
  const ascii = isPlain ? text.toLowerCase() : domainToASCII(text);
  return ascii && ascii.length <= NAME_MAX && /^[\w-]+(\.[\w-]+)*$/.test(ascii) ? ascii : null;
}

/** The value of a local part, without quotes and backslashes. */
export function localPartText(local: string): string {
  return local.startsWith('"') ? local.slice(1, -1).replace(/\\(.)/g, '$1') : local;
}

function normalLocalPart(text: string): string | null {
  if (DOT_STRING.test(text)) return text;
  const quoted = QUOTED.exec(text);
  if (!quoted) return null;
  const meant = localPartText(text);
  // RFC 5321 §4.1.2: the unquoted form should be sent, where it exists.
  return DOT_STRING.test(meant) ? meant : `"${meant.replace(/["\\]/g, '\\$&')}"`;
}
