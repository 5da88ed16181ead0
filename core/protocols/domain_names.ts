// Domain names as entered by clients, and in their DNS form: ASCII, lower case, without the trailing dot.
import { domainToASCII, domainToUnicode } from 'node:url';

const NAME_CHARACTERS_MAX = 253;
/** Full stops of other scripts are dots too (Unicode Technical Standard 46, §4). */
const DOTS = /[.\u3002\uff0e\uff61]/;
const ASCII = /^[\0-\x7f]*$/;
const PUNYCODE = /^xn--/i;
const HOST_LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
// The last label must not be numeric: 192.0.2.1 is an address.
const HOST = new RegExp(`^(?:${HOST_LABEL}\\.)+(?!\\d+$)${HOST_LABEL}$`);
/** Reverse zones of IPv4 and IPv6 addresses (RFC 1035 §3.5, RFC 3596 §2.5). */
const REVERSE = /\.(?:in-addr|ip6)\.arpa$/;
/** Letters, marks, digits, and the other characters allowed by RFC 5892: no symbols, so no emoji. */
const IDNA_2008 = /^[\p{Ll}\p{Lo}\p{Lm}\p{M}\p{Nd}\-_\u00b7\u0375\u05f3\u05f4\u30fb\u200c\u200d]+$/u;

/**
 * RFC 1123 §2.1, at least two labels. International names are converted to punycode as in browsers (UTS 46,
 * non-transitional).
 * @returns null for an invalid host name
 */
export function hostNameOf(text: string): string | null {
  const ascii = asciiNameOf(withoutFinalDot(text));
  return ascii !== null && ascii.length <= NAME_CHARACTERS_MAX && HOST.test(ascii) ? ascii : null;
}

/** A host name, or a classless reverse zone, such as `0/25.2.0.192.in-addr.arpa` (RFC 2317 §4). */
export function zoneNameOf(text: string): string | null {
  const lower = withoutFinalDot(text).toLowerCase();
  if (!isReverse(lower)) return hostNameOf(text);
  const fits = lower.length <= NAME_CHARACTERS_MAX && lower.split('.').every((label) => isRecordLabel(label, lower));
  return fits ? lower : null;
}

/** Whether the name is in a reverse zone, where labels may contain slashes. */
function isReverse(name: string): boolean {
  return REVERSE.test(`.${name}`);
}

/**
 * A label of host names and of services (RFC 2782, RFC 8552): underscores are allowed, and slashes in reverse zones
 * (RFC 2317).
 * @param label in lower case
 * @param fqdn the full name that contains it
 */
export function isRecordLabel(label: string, fqdn: string): boolean {
  const pattern = isReverse(fqdn)
    ? /^[a-z0-9_](?:[a-z0-9_/-]{0,61}[a-z0-9_])?$/
    : /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
  return pattern.test(label);
}

/**
 * Converts each label to lower case and ASCII; ASCII labels are otherwise unchanged, including `*` and underscores.
 * @returns null where a label cannot be converted
 */
export function asciiNameOf(text: string): string | null {
  const labels = text.split(DOTS).map(asciiLabelOf);
  if (labels.includes(null)) return null;
  const name = labels.join('.');
  // The Bidi rule (RFC 5893) applies to the whole name.
  return ASCII.test(text) || !HOST.test(name) || domainToASCII(name) === name ? name : null;
}

function asciiLabelOf(label: string): string | null {
  const lower = label.toLowerCase();
  if (ASCII.test(label)) return !PUNYCODE.test(label) || isConvertible(lower) ? lower : null;
  // domainToASCII also decodes percent encoding and parses numbers as IPv4 addresses.
  if (/[^a-z0-9_\u0080-\u{10ffff}-]/iu.test(label)) return null;
  const ascii = domainToASCII(label);
  if (!ascii || DOTS.test(ascii) || !IDNA_2008.test(domainToUnicode(ascii))) return null;
  return ascii;
}

/** Whether an A-label is valid (RFC 5890 §2.3.2.1). Node 24 accepts any label that starts with `xn--`. */
function isConvertible(label: string): boolean {
  const unicode = domainToUnicode(label);
  return unicode !== label && domainToASCII(unicode) === label;
}

function withoutFinalDot(text: string): string {
  return text.length > 1 && DOTS.test(text.slice(-1)) ? text.slice(0, -1) : text;
}

/** The error in an international name; null where the error is another one. */
export function internationalMistake(text: string): string | null {
  if (ASCII.test(text) || asciiNameOf(withoutFinalDot(text)) !== null) return null;
  return (
    'contains characters that international domain names (IDNA) do not allow: emoji and other symbols, or letters of ' +
    'right-to-left scripts beside others'
  );
}
