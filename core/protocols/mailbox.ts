// Mail addresses in one normal form, wherever they come from: the API, the envelope of SMTP, fields of a header.
import { domainToASCII } from 'node:url';

export interface Mailbox {
  /** As it is written before the `@`: a dot-string, or a quoted string where it has to be one. */
  local: string;
  /** In lower case and ASCII, or an address literal in its brackets. */
  domain: string;
}

const ATEXT = "[\\w!#$%&'*+/=?^`{|}~\\u0080-\\u{10ffff}-]";
const DOT_STRING = new RegExp(`^${ATEXT}+(?:\\.${ATEXT}+)*$`, 'u');
/** RFC 5321 §4.1.2, with RFC 6531 §3.3: what stands between quotes, and what a backslash may stand before. */
const QUOTED = /^"((?:[^"\\\p{Cc}]|\\[ -~])*)"$/u;
const LITERAL = /^\[[0-9A-Za-z.:-]{1,60}\]$/;
const NAME = /^[\w.\u0080-\u{10ffff}-]+$/u;
const NAME_MAX = 253;

/**
 * Reads `local-part@domain` (RFC 5321 §4.1.2, RFC 6531 §3.3) without brackets, comments and display name.
 * A local part that is quoted without need loses its quotes. @returns null for everything else
 */
export function parseMailbox(text: string): Mailbox | null {
  const at = text.lastIndexOf('@');
  if (at < 1) return null;
  const local = normalLocalPart(text.slice(0, at));
  const domain = asciiDomain(text.slice(at + 1));
  return local === null || domain === null ? null : { local, domain };
}

/** The address that all spellings of a mailbox share, but for the case of its local part; null where it is none. */
export function normalizeMailbox(text: string): string | null {
  const mailbox = parseMailbox(text);
  return mailbox && `${mailbox.local}@${mailbox.domain}`;
}

/** A domain as the DNS has it: ASCII (UTS 46) in lower case; literals as they are. Null for what is no domain. */
export function asciiDomain(text: string): string | null {
  if (LITERAL.test(text)) return text;
  // domainToASCII decodes percents and reads numbers as IPv4 addresses, so the characters are looked at before it.
  if (!NAME.test(text)) return null;
  const isPlain = /^[\w.-]*$/.test(text) && !/xn--/i.test(text);
  const ascii = isPlain ? text.toLowerCase() : domainToASCII(text);
  return ascii && ascii.length <= NAME_MAX && /^[\w-]+(\.[\w-]+)*$/.test(ascii) ? ascii : null;
}

/** What a local part means, without quotes and backslashes. */
export function localPartText(local: string): string {
  return local.startsWith('"') ? local.slice(1, -1).replace(/\\(.)/g, '$1') : local;
}

function normalLocalPart(text: string): string | null {
  if (DOT_STRING.test(text)) return text;
  const quoted = QUOTED.exec(text);
  if (!quoted) return null;
  const meant = localPartText(text);
  // RFC 5321 §4.1.2: the form without quotes is the one to send, where there is one.
  return DOT_STRING.test(meant) ? meant : `"${meant.replace(/["\\]/g, '\\$&')}"`;
}
