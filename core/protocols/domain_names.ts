// Domain names as clients write them, and in the form that the DNS has: ASCII, lower case, without the trailing dot.
import { domainToASCII, domainToUnicode } from 'node:url';

const NAME_CHARACTERS_MAX = 253;
/** The full stops of other scripts are dots too (Unicode Technical Standard 46, §4). */
const DOTS = /[.\u3002\uff0e\uff61]/;
const ASCII = /^[\0-\x7f]*$/;
const PUNYCODE = /^xn--/i;
const HOST_LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
// The last label is no number: 192.0.2.1 is an address.
const HOST = new RegExp(`^(?:${HOST_LABEL}\\.)+(?!\\d+$)${HOST_LABEL}$`);
/** Zones of IPv4 and IPv6 addresses (RFC 1035 §3.5, RFC 3596 §2.5). */
const REVERSE = /\.(?:in-addr|ip6)\.arpa$/;
/** Letters, marks and digits, and what RFC 5892 allows beside them: no symbols, so no emoji. */
const IDNA_2008 = /^[\p{Ll}\p{Lo}\p{Lm}\p{M}\p{Nd}\-_\u00b7\u0375\u05f3\u05f4\u30fb\u200c\u200d]+$/u;

/**
 * RFC 1123 §2.1, at least two labels. International names become punycode as in browsers (UTS 46, not transitional).
 * @returns null for what is no host name
 */
export function hostNameOf(text: string): string | null {
  const ascii = asciiNameOf(withoutFinalDot(text));
  return ascii !== null && ascii.length <= NAME_CHARACTERS_MAX && HOST.test(ascii) ? ascii : null;
}

/** A host name, or the zone of a part of a network, such as `0/25.2.0.192.in-addr.arpa` (RFC 2317 §4). */
export function zoneNameOf(text: string): string | null {
  const lower = withoutFinalDot(text).toLowerCase();
  if (!isReverse(lower)) return hostNameOf(text);
  const fits = lower.length <= NAME_CHARACTERS_MAX && lower.split('.').every((label) => isRecordLabel(label, lower));
  return fits ? lower : null;
}

/** Whether the names of a zone of addresses are meant: there, labels may have slashes. */
function isReverse(name: string): boolean {
  return REVERSE.test(`.${name}`);
}

/**
 * A label of host names and of services (RFC 2782, RFC 8552): underscores are allowed, and slashes in zones of
 * addresses (RFC 2317).
 * @param label in lower case
 * @param fqdn the full name that it is of
 */
export function isRecordLabel(label: string, fqdn: string): boolean {
  const pattern = isReverse(fqdn)
    ? /^[a-z0-9_](?:[a-z0-9_/-]{0,61}[a-z0-9_])?$/
    : /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
  return pattern.test(label);
}

/**
 * Each label in lower case and ASCII; labels that are ASCII stay otherwise as they are, `*` and underscores too.
 * @returns null where a label has no such form
 */
export function asciiNameOf(text: string): string | null {
  const labels = text.split(DOTS).map(asciiLabelOf);
  if (labels.includes(null)) return null;
  const name = labels.join('.');
  // The rule of right-to-left scripts (RFC 5893) is one of the whole name.
  return ASCII.test(text) || !HOST.test(name) || domainToASCII(name) === name ? name : null;
}

function asciiLabelOf(label: string): string | null {
  const lower = label.toLowerCase();
  if (ASCII.test(label)) return !PUNYCODE.test(label) || isConvertible(lower) ? lower : null;
  // domainToASCII also decodes percents and reads numbers as IPv4 addresses.
  if (/[^a-z0-9_\u0080-\u{10ffff}-]/iu.test(label)) return null;
  const ascii = domainToASCII(label);
  if (!ascii || DOTS.test(ascii) || !IDNA_2008.test(domainToUnicode(ascii))) return null;
  return ascii;
}

/** Whether an A-label is that of a name (RFC 5890 §2.3.2.1). Node 24 passes on whatever begins with `xn--`. */
function isConvertible(label: string): boolean {
  const unicode = domainToUnicode(label);
  return unicode !== label && domainToASCII(unicode) === label;
}

function withoutFinalDot(text: string): string {
  return text.length > 1 && DOTS.test(text.slice(-1)) ? text.slice(0, -1) : text;
}

/** Why a text with letters beyond ASCII is no name of the DNS; null where that is not what is wrong with it. */
export function internationalMistake(text: string): string | null {
  if (ASCII.test(text) || asciiNameOf(withoutFinalDot(text)) !== null) return null;
  return (
    'has characters that international domain names (IDNA) do not have: emoji and other symbols, or letters of ' +
    'right-to-left scripts beside others'
  );
}
