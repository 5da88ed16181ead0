// Bodies in aws-chunked encoding: `<size>[;chunk-signature=<hex>]CRLF<bytes>CRLF … 0[;…]CRLF[trailers]CRLF`. Only the
// current piece is buffered; errors are detected at the end of a chunk, before anything is acknowledged.
import { createHash, type Hash } from 'node:crypto';
import { EMPTY_SHA256, hmac, scopeText, sha256Hex } from '../../../core/protocols/sigv4';
import { S3Error } from '../errors';
import { equals, type Caller } from '../signature';

const LINE_MAX = 16 * 1024;
const TRAILERS_MAX = 10;
const ZERO = Buffer.alloc(0);

interface Chunked {
  /** Chunk signatures are verified; null where the body is not signed. */
  signing: Caller['chunks'];
  /** Trailer names announced by x-amz-trailer. */
  announced: readonly string[];
  /** Filled at the end of the body. */
  trailers: Map<string, string>;
}

/** The content of the body. @throws S3Error IncompleteBody, InvalidRequest, SignatureDoesNotMatch */
export async function* dechunked(body: AsyncIterable<Buffer>, options: Chunked): AsyncGenerator<Buffer> {
  const reader = new Reader(body[Symbol.asyncIterator]());
  let previous = options.signing?.seed ?? '';
  for (;;) {
    const { size, signature } = parseHead(await reader.line(), options.signing !== null);
    const hash = options.signing ? createHash('sha256') : null;
    for (let left = size; left > 0;) {
      const piece = await reader.some(left);
      hash?.update(piece);
      left -= piece.length;
      yield piece;
    }
    if (options.signing) previous = requireChunk(options.signing, previous, hash as Hash, signature);
    if (size === 0) break;
    if ((await reader.line()) !== '') throw new S3Error('InvalidRequest', 'A chunk is longer than its size says.');
  }
  await readTrailers(reader, options, previous);
}

function parseHead(line: string, isSigned: boolean): { size: number; signature: string } {
  const match = /^([0-9a-fA-F]{1,12})(?:;chunk-signature=([0-9a-f]{64}))?$/.exec(line);
  if (!match || (isSigned && !match[2])) throw new S3Error('InvalidRequest', 'The head of a chunk is malformed.');
  return { size: Number.parseInt(match[1] as string, 16), signature: match[2] ?? '' };
}

function requireChunk(signing: NonNullable<Caller['chunks']>, previous: string, hash: Hash, given: string): string {
  const { key, timestamp, scope } = signing;
  const text = `AWS4-HMAC-SHA256-PAYLOAD\n${timestamp}\n${scopeText(scope)}\n${previous}\n${EMPTY_SHA256}\n`;
  const expected = hmac(key, text + hash.digest('hex')).toString('hex');
  if (!equals(expected, given)) throw new S3Error('SignatureDoesNotMatch', 'The signature of a chunk does not match.');
  return expected;
}

async function readTrailers(
  reader: Reader,
  { announced, trailers, signing }: Chunked,
  previous: string,
): Promise<void> {
  let [signed, signature] = ['', ''];
  for (let line = await reader.line('end'); line !== ''; line = await reader.line('end')) {
    const at = line.indexOf(':');
    const [name, value] = [line.slice(0, at).trim().toLowerCase(), line.slice(at + 1).trim()];
    if (at < 1 || trailers.size >= TRAILERS_MAX) throw new S3Error('InvalidRequest', 'A trailer is malformed.');
    if (name === 'x-amz-trailer-signature') signature = value;
    else if (!announced.includes(name)) throw new S3Error('InvalidRequest', `The trailer ${name} was not announced.`);
    else {
      trailers.set(name, value);
      signed += `${name}:${value}\n`;
    }
  }
  if (announced.some((name) => !trailers.has(name))) throw new S3Error('IncompleteBody', 'A trailer is missing.');
  if (signing && announced.length) {
    const { key, timestamp, scope } = signing;
    const head = `AWS4-HMAC-SHA256-TRAILER\n${timestamp}\n${scopeText(scope)}\n${previous}\n`;
    const expected = hmac(key, head + sha256Hex(signed)).toString('hex');
    if (!equals(expected, signature))
      throw new S3Error('SignatureDoesNotMatch', 'The signature of the trailers does not match.');
  }
  if (await reader.hasMore()) throw new S3Error('InvalidRequest', 'The body goes on after its last chunk.');
}

class Reader {
  private rest: Buffer = ZERO;

  constructor(private readonly source: AsyncIterator<Buffer>) {}

  /** Reads up to `max` bytes. */
  async some(max: number): Promise<Buffer> {
    if (!this.rest.length && !(await this.more())) throw new S3Error('IncompleteBody');
    const piece = this.rest.subarray(0, max);
    // When the piece was the whole buffer, drop the reference, so that its memory can be reused.
    this.rest = piece.length === this.rest.length ? ZERO : this.rest.subarray(piece.length);
    return piece;
  }

  /** Reads one line without its CRLF. @param atEnd the body may end here, which returns an empty line */
  async line(atEnd?: 'end'): Promise<string> {
    for (;;) {
      const at = this.rest.indexOf('\n');
      if (at >= 0) {
        const line = this.rest.toString('latin1', 0, at);
        this.rest = this.rest.subarray(at + 1);
        if (!line.endsWith('\r')) throw new S3Error('InvalidRequest', 'A line of the body does not end with CRLF.');
        return line.slice(0, -1);
      }
      if (this.rest.length > LINE_MAX) throw new S3Error('InvalidRequest', 'A line of the body is too long.');
      if (await this.more()) continue;
      if (atEnd && !this.rest.length) return '';
      throw new S3Error('IncompleteBody');
    }
  }

  async hasMore(): Promise<boolean> {
    return this.rest.length > 0 || this.more();
  }

  private async more(): Promise<boolean> {
    const { value, done } = await this.source.next();
    if (done) return false;
    this.rest = this.rest.length ? Buffer.concat([this.rest, value]) : value;
    return value.length > 0 || this.more();
  }
}
