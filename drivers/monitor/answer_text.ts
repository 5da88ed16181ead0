// The text of a response: decompressed, and decoded according to its headers or the page itself.
import type { Transform } from 'node:stream';
import { constants, createBrotliDecompress, createInflateRaw, createUnzip } from 'node:zlib';
import type { Answered } from '../../core/outbound/exchange';
import { OutboundError } from '../../core/outbound/trace';

/** A page declares its encoding within these bytes (WHATWG Encoding, "prescan a byte stream"). */
const PRESCAN_BYTES = 1024;

// A body truncated at the limit is decompressed as far as possible.
const unzip = (): Transform => createUnzip({ finishFlush: constants.Z_SYNC_FLUSH });
const unbrotli = (): Transform => createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH });
// Some servers send deflate without the zlib header (RFC 9110 §8.4.1.2), which browsers accept.
const inflate = (packed: Buffer): Transform =>
  hasZlibHeader(packed) ? unzip() : createInflateRaw({ finishFlush: constants.Z_SYNC_FLUSH });
const UNPACKERS: Record<string, (packed: Buffer) => Transform> = {
  ...{ gzip: unzip, 'x-gzip': unzip, deflate: inflate, br: unbrotli },
};

/**
 * Reads at most `max` bytes.
 * @throws OutboundError for a body that does not match its declared coding or encoding
 */
export async function answerText({ headers, body }: Pick<Answered, 'headers' | 'body'>, max: number): Promise<string> {
  const codings = (headers['content-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .map((word) => word.trim());
  let bytes = body;
  for (const coding of codings.reverse()) {
    if (coding !== '' && coding !== 'identity') bytes = await unpack(coding, bytes, max);
  }
  return decode(charsetOf(headers['content-type'] ?? '', bytes), bytes);
}

async function unpack(coding: string, packed: Buffer, max: number): Promise<Buffer> {
  const unpacker = UNPACKERS[coding]?.(packed);
  if (!unpacker)
    throw new OutboundError(
      'body',
      `The answer is compressed as ${shown(coding)}, which checks cannot decompress.`,
      false,
    );
  const chunks: Buffer[] = [];
  let size = 0;
  unpacker.end(packed);
  try {
    for await (const chunk of unpacker as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      if ((size += chunk.length) >= max) break;
    }
  } catch {
    throw new OutboundError('body', `The answer is declared as compressed with ${coding}, but it is not.`, false);
  }
  return Buffer.concat(chunks).subarray(0, max);
}

/** The method is deflate, and the two bytes are a multiple of 31 (RFC 1950 §2.2). */
function hasZlibHeader(packed: Buffer): boolean {
  const [method = 0, flags = 0] = packed;
  return (method & 0x0f) === 8 && (method * 256 + flags) % 31 === 0;
}

function charsetOf(type: string, bytes: Buffer): string {
  const [first, second] = bytes;
  if ((first === 0xfe && second === 0xff) || (first === 0xff && second === 0xfe))
    return first === 0xfe ? 'utf-16be' : 'utf-16le';
  const [, ofHeader] = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(type) ?? [];
  const start = bytes.toString('latin1', 0, PRESCAN_BYTES);
  const [, ofPage] = /(?:<meta\s[^>]*charset|<\?xml\s[^>]*encoding)\s*=\s*["']?([\w:-]+)/i.exec(start) ?? [];
  return ofHeader ?? ofPage ?? 'utf-8';
}

function decode(charset: string, bytes: Buffer): string {
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    throw new OutboundError('body', `The answer has the unknown character encoding ${shown(charset)}.`, false);
  }
}

/** Sanitises untrusted text for a message. */
const shown = (word: string): string => JSON.stringify(word.slice(0, 40).replace(/[^\x20-\x7e]/g, '?'));
