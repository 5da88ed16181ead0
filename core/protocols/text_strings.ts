// The text of a TXT record, which consists of strings of at most 255 bytes (RFC 1035 §3.3.14). Plain text is split into
// as many strings as needed. Quoted strings, as in zone files, are kept: "v=DKIM1; k=rsa" "p=…".

const STRING_BYTES_MAX = 255;
const QUOTED = /"((?:[^"\\]|\\\d{3}|\\[^\d])*)"/gsu;
const ALL_QUOTED = /^\s*"(?:[^"\\]|\\\d{3}|\\[^\d])*"(?:\s*"(?:[^"\\]|\\\d{3}|\\[^\d])*")*\s*$/su;
const PLAIN = /^[^\p{Cc}\p{Surrogate}]+$/u;

/** Whether a value consists of quoted strings, rather than text with quotation marks. */
export function isQuotedText(value: string): boolean {
  return ALL_QUOTED.test(value);
}

/** The strings of the record. Longer ones are split. */
export function textStrings(value: string): Buffer[] {
  if (!isQuotedText(value)) return chunksOf(Buffer.from(value));
  return [...value.matchAll(QUOTED)].flatMap(([, inner]) => chunksOf(unescape(inner as string)));
}

/** The concatenated bytes of all strings, as most readers interpret them (RFC 7208 §3.3). */
export function joinedText(value: string): Buffer {
  return Buffer.concat(textStrings(value));
}

/** The value for these strings: plain text where it is equivalent. */
export function valueOfStrings(strings: readonly Buffer[]): string {
  const bytes = Buffer.concat(strings);
  const text = bytes.toString();
  const isPlain = PLAIN.test(text) && Buffer.from(text).equals(bytes) && !isQuotedText(text);
  if (isPlain && isSame(chunksOf(bytes), strings)) return text;
  return strings.map(quoteString).join(' ');
}

/** Quotes as in zone files: bytes that are not printable ASCII become \DDD. */
export function quoteString(bytes: Buffer): string {
  const letters = [...bytes].map((byte) => {
    if (byte === 0x22 || byte === 0x5c) return `\\${String.fromCharCode(byte)}`;
    return byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\${String(byte).padStart(3, '0')}`;
  });
  return `"${letters.join('')}"`;
}

function chunksOf(bytes: Buffer): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length || at === 0; at += STRING_BYTES_MAX)
    chunks.push(bytes.subarray(at, at + STRING_BYTES_MAX));
  return chunks;
}

function unescape(inner: string): Buffer {
  const parts = [...inner.matchAll(/\\(\d{3})|\\(.)|([^\\]+)/gsu)];
  return Buffer.concat(
    parts.map(([, code, escaped, plain]) =>
      code === undefined ? Buffer.from(escaped ?? plain ?? '') : Buffer.from([Number(code) & 0xff]),
    ),
  );
}

function isSame(a: readonly Buffer[], b: readonly Buffer[]): boolean {
  return a.length === b.length && a.every((one, index) => one.equals(b[index] as Buffer));
}
