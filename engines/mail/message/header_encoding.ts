// Encodes headers for all servers: ASCII, with lines of at most 998 bytes (RFC 5322 §2.1.1). A relay that had to
// convert a header, or wrapped its lines, would break the signature.
import { asciiDomain } from '../../../core/protocols/mailbox';
import { encodeText, encodeWords } from './encoded_words';
import type { HeaderField } from './header';

export const LINE_BYTES_MAX = 998;
const FOLD_AT = 78;
/** Longer words are encoded in unstructured text, since they cannot be folded otherwise. */
const WORD_CHARACTERS_MAX = 900;
const ADDRESSES = new Set([
  ...['from', 'sender', 'reply-to', 'to', 'cc', 'bcc', 'resent-from', 'resent-sender', 'resent-to', 'resent-cc'],
  ...['resent-reply-to', 'disposition-notification-to', 'return-receipt-to', 'errors-to', 'mail-followup-to'],
]);
const PARAMETERS = new Set(['content-type', 'content-disposition']);
/** Identifiers, which encoded words would change. */
const IDENTIFIERS = new Set([
  ...['message-id', 'in-reply-to', 'references', 'content-id', 'content-transfer-encoding', 'mime-version', 'date'],
  ...['received', 'return-path', 'dkim-signature', 'arc-seal', 'arc-message-signature', 'arc-authentication-results'],
  ...['list-unsubscribe', 'list-unsubscribe-post', 'list-id', 'list-post', 'list-help', 'list-archive'],
  ...['authentication-results', 'feedback-id', 'resent-message-id', 'resent-date', 'autocrypt', 'content-location'],
]);
const COMMENT = /\((?:[^()\\]|\\.)*\)/g;
const QUOTED = '"(?:[^"\\\\]|\\\\.)*"';

/** Converts the header to ASCII as far as possible. Non-ASCII remains in addresses and identifiers (RFC 6532). */
export function encodeHeader(fields: readonly HeaderField[]): HeaderField[] {
  return fields.map((field) => (isFit(field.raw) ? field : { ...field, raw: encodeField(field) }));
}

/** Whether a header has lines longer than servers must accept. */
export function hasLongLine(fields: readonly HeaderField[]): boolean {
  return fields.some(({ raw }) => !linesFit(raw));
}

export function isAsciiText(text: string): boolean {
  return !/[^\0-\x7f]/.test(text);
}

function isFit(raw: string): boolean {
  return isAsciiText(raw) && linesFit(raw);
}

function linesFit(raw: string): boolean {
  return raw.length <= LINE_BYTES_MAX || raw.split('\r\n').every((line) => line.length <= LINE_BYTES_MAX);
}

function encodeField({ name, raw }: HeaderField): string {
  const colon = raw.indexOf(':');
  const value = raw.slice(colon + 1).replace(/\r\n(?=[ \t])/g, '');
  return folded(`${raw.slice(0, colon)}:`, encodeValue(name, value.trim()));
}

function encodeValue(name: string, value: string): string {
  if (ADDRESSES.has(name)) return encodeAddresses(value);
  if (PARAMETERS.has(name)) return encodeParameters(value);
  if (IDENTIFIERS.has(name)) return value.replace(COMMENT, encodeComment);
  return encodeText(value, (word) => !isAsciiText(word) || word.length > WORD_CHARACTERS_MAX);
}

/** Display names and comments become encoded words, domains become A-labels. A local part is unchanged. */
function encodeAddresses(value: string): string {
  const parts = new RegExp(
    `${QUOTED}@[^\\s<>(),;:"]+|<[^<>]*>|${QUOTED}|\\((?:[^()\\\\]|\\\\.)*\\)|[^"<>(),;:]+|[,;:]|.`,
    'gs',
  );
  return value.replace(parts, (part) => {
    if (isAsciiText(part)) return part;
    if (part.startsWith('<')) return `<${asciiAddress(part.slice(1, -1))}>`;
    if (part.startsWith('(')) return encodeComment(part);
    if (/@/.test(part.replace(new RegExp(QUOTED, 'g'), ''))) return part.replace(/\S+/g, asciiAddress);
    if (part.startsWith('"')) return encodeWords(part.slice(1, -1).replace(/\\(.)/g, '$1'));
    const [, before = '', text = '', after = ''] = /^(\s*)(.*?)(\s*)$/s.exec(part) ?? [];
    return `${before}${encodeText(text, (word) => !isAsciiText(word))}${after}`;
  });
}

function encodeComment(comment: string): string {
  if (isAsciiText(comment)) return comment;
  return `(${encodeWords(comment.slice(1, -1).replace(/\\(.)/g, '$1'))})`;
}

function asciiAddress(text: string): string {
  const at = text.lastIndexOf('@') + 1;
  const domain = at ? asciiDomain(Buffer.from(text.slice(at), 'latin1').toString()) : null;
  return domain === null ? text : text.slice(0, at) + domain;
}

/** RFC 2231 §4. */
function encodeParameters(value: string): string {
  const form = new RegExp(`;[ \\t]*([\\w-]+)\\*?=(${QUOTED}|[^;"]*)`, 'g');
  return value.replace(form, (whole, name: string, given: string) => {
    if (isAsciiText(given)) return whole;
    const plain = given
      .trim()
      .replace(/^"(.*)"$/s, '$1')
      .replace(/\\(.)/g, '$1');
    const bytes = Buffer.from(plain, 'latin1');
    const charset = bytes.toString().includes('\ufffd') ? 'unknown-8bit' : 'utf-8';
    const text = [...bytes].map((byte) =>
      /[\w.-]/.test(String.fromCharCode(byte)) && byte < 128 ? String.fromCharCode(byte) : percent(byte),
    );
    return `; ${name}*=${charset}''${text.join('')}`;
  });
}

function percent(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

/** Folds the value at spaces, where a line would be too long. */
function folded(name: string, value: string): string {
  let line = name.length;
  const words = value.split(/[ \t]+/).filter(Boolean);
  return words.reduce((text, word) => {
    const wraps = line + 1 + word.length > FOLD_AT && line > name.length;
    line = wraps ? word.length + 1 : line + 1 + word.length;
    return `${text}${wraps ? '\r\n ' : ' '}${word}`;
  }, name);
}
