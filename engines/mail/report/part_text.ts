// The text of a part of a report.

/** @param encoding of the transfer (RFC 2045 §6) @param charset unknown ones are read as latin1 */
export function decodePart(body: Buffer, encoding: string, charset: string): string {
  const bytes = decodeTransfer(body, encoding.trim().toLowerCase());
  const text = decodeCharset(bytes, charset.trim().toLowerCase());
  return text.replace(/\r\n?/g, '\n');
}

function decodeTransfer(body: Buffer, encoding: string): Buffer {
  const text = body.toString('latin1');
  if (encoding === 'base64') return Buffer.from(text.replace(/[^A-Za-z0-9+/]/g, ''), 'base64');
  if (encoding !== 'quoted-printable') return body;
  const decoded = text
    .replace(/(?<![ \t])[ \t]+$/gm, '')
    .replace(/=\r?\n/g, '')
    .replace(/=([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(decoded, 'latin1');
}

function decodeCharset(bytes: Buffer, charset: string): string {
  try {
    return new TextDecoder(charset || 'utf-8', { fatal: true }).decode(bytes);
  } catch {
    return bytes.toString('latin1');
  }
}
