// Receiving content: decoded, measured, verified against the announced length and checksums, and durable at the end.
import { createHash, createHmac } from 'node:crypto';
import { UNSIGNED_PAYLOAD } from '../../core/protocols/sigv4';
import type { Encrypted, Written } from './files/blobs';
import { checksum, isAlgorithm, isChecksumValue, type ChecksumAlgorithm } from './files/checksums';
import { dechunked } from './files/chunked';
import { S3Error } from './errors';
import type { Exchange } from './endpoint_context';
import { headerOf, type S3Request } from './request';

/** Maximum size of one PUT. */
const PUT_BYTES_MAX = 5 * 2 ** 30;
const SIGNED_CHUNKS = /^STREAMING-AWS4-HMAC-SHA256-PAYLOAD(-TRAILER)?$/;
const UNSIGNED_CHUNKS = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER';

export interface Received extends Written {
  /** The MD5 of the content, unless a key of a client hides it. */
  etag: string;
  algorithm: ChecksumAlgorithm | null;
  /** Base64. */
  checksum: string | null;
}

/** @param encryption of the file @throws S3Error; no file remains then */
export async function receive(exchange: Exchange, encryption: Encrypted): Promise<Received> {
  const { blobs, bucket, request } = exchange;
  const body = bodyOf(exchange);
  const expected = expectedChecksum(request);
  const sums = expected && checksum(expected.algorithm);
  const sha256 = /^[0-9a-f]{64}$/.test(exchange.caller.payload) ? createHash('sha256') : null;
  const content = measured(body.content, body.length, () => {
    if (sha256 && sha256.digest('hex') !== exchange.caller.payload) throw new S3Error('XAmzContentSHA256Mismatch');
  });
  let value: string | null = null;
  const written = await blobs.write(
    bucket.id,
    content,
    {
      piece(piece) {
        sums?.update(piece);
        sha256?.update(piece);
      },
      end(md5) {
        value = sums && sums.digest();
        const given = expected && (expected.value ?? body.trailers.get(expected.header) ?? null);
        if (given !== null && given !== value) throw new S3Error('BadDigest');
        requireMd5(request, md5);
      },
    },
    encryption,
  );
  return { ...written, etag: etagOf(written, encryption), algorithm: expected?.algorithm ?? null, checksum: value };
}

const ETAG_LENGTH = 32;

/**
 * As at Amazon S3, the entity tag of content that a key of a client encrypts is not its MD5, which would identify it. A
 * part that is sent again has the same one.
 */
export function etagOf({ md5 }: Pick<Written, 'md5'>, encryption: Encrypted): string {
  if (!Buffer.isBuffer(encryption)) return md5;
  return createHmac('sha256', encryption).update(`entity tag of ${md5}`).digest('hex').slice(0, ETAG_LENGTH);
}

/**
 * Reads a small body, such as an XML document, into a string.
 * @param checksums whether checksum headers belong to the object that the document is about, not to the document
 * @throws S3Error
 */
export async function receiveText(
  exchange: Pick<Exchange, 'request' | 'caller'>,
  bytesMax: number,
  checksums?: 'of the object',
): Promise<string> {
  const body = bodyOf(exchange);
  if (body.length > bytesMax) throw new S3Error('EntityTooLarge');
  const expected = checksums ? null : expectedChecksum(exchange.request);
  const pieces: Buffer[] = [];
  for await (const piece of measured(body.content, body.length, () => undefined)) pieces.push(piece);
  const whole = Buffer.concat(pieces);
  const { payload } = exchange.caller;
  if (/^[0-9a-f]{64}$/.test(payload) && createHash('sha256').update(whole).digest('hex') !== payload)
    throw new S3Error('XAmzContentSHA256Mismatch');
  if (expected) {
    const sum = checksum(expected.algorithm);
    sum.update(whole);
    const given = expected.value ?? body.trailers.get(expected.header);
    if (given !== undefined && given !== sum.digest()) throw new S3Error('BadDigest');
  }
  requireMd5(exchange.request, createHash('md5').update(whole).digest('hex'));
  return whole.toString('utf8');
}

interface Body {
  content: AsyncIterable<Buffer>;
  length: number;
  trailers: Map<string, string>;
}

function bodyOf({ request, caller }: Pick<Exchange, 'request' | 'caller'>): Body {
  const trailers = new Map<string, string>();
  const raw = request.raw as AsyncIterable<Buffer>;
  const signed = SIGNED_CHUNKS.exec(caller.payload);
  const isChunked = signed !== null || caller.payload === UNSIGNED_CHUNKS;
  if (!isChunked && caller.payload !== UNSIGNED_PAYLOAD && !/^[0-9a-f]{64}$/.test(caller.payload))
    throw new S3Error('NotImplemented', `x-amz-content-sha256: ${caller.payload.slice(0, 100)} is not offered.`);
  const header = isChunked ? 'x-amz-decoded-content-length' : 'content-length';
  const text = headerOf(request, header);
  if (text === undefined || !/^\d{1,15}$/.test(text))
    throw new S3Error('MissingContentLength', `The header ${header} is missing.`);
  const length = Number(text);
  if (length > PUT_BYTES_MAX) throw new S3Error('EntityTooLarge');
  if (!isChunked) {
    if (headerOf(request, 'x-amz-trailer') !== undefined)
      throw new S3Error('InvalidRequest', 'Trailers need a body in chunks.');
    inviteBody(request);
    return { content: raw, length, trailers };
  }
  if (signed && !caller.chunks) throw new S3Error('AccessDenied', 'Signed chunks need a signed request.');
  const announced = (headerOf(request, 'x-amz-trailer') ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);
  if (announced.length > 1 || announced.some((name) => !name.startsWith('x-amz-checksum-')))
    throw new S3Error('NotImplemented', 'The only trailer is a checksum.');
  const signing = signed ? caller.chunks : null;
  inviteBody(request);
  return { content: dechunked(raw, { signing, announced, trailers }), length, trailers };
}

/** A client that waits for it sends its body. To be called when nothing more can be refused without it. */
export function inviteBody(request: Pick<S3Request, 'raw' | 'response'>): void {
  if (request.raw.headers.expect?.toLowerCase() === '100-continue') request.response.writeContinue();
}

/** Passes on exactly `length` bytes, and calls `end` after the last one. */
async function* measured(content: AsyncIterable<Buffer>, length: number, end: () => void): AsyncGenerator<Buffer> {
  let seen = 0;
  try {
    for await (const piece of content) {
      seen += piece.length;
      if (seen > length) throw new S3Error('InvalidRequest', 'The body is longer than its announced length.');
      yield piece;
    }
  } catch (error) {
    // The client has disconnected, or was too slow.
    if (['ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE'].includes((error as { code?: string }).code ?? ''))
      throw new S3Error('IncompleteBody');
    throw error;
  }
  if (seen < length) throw new S3Error('IncompleteBody');
  end();
}

/** @throws S3Error BadDigest, InvalidDigest */
function requireMd5(request: S3Request, md5: string): void {
  const given = headerOf(request, 'content-md5');
  if (given === undefined) return;
  const bytes = Buffer.from(given, 'base64');
  if (bytes.length !== 16) throw new S3Error('InvalidDigest');
  if (bytes.toString('hex') !== md5) throw new S3Error('BadDigest');
}

interface ExpectedChecksum {
  algorithm: ChecksumAlgorithm;
  header: string;
  /** null: sent in a trailer, or computed only. */
  value: string | null;
}

/** The checksum that the client announces in x-amz-checksum-… headers or trailers. @throws S3Error InvalidRequest */
function expectedChecksum(request: S3Request): ExpectedChecksum | null {
  const names = Object.keys(request.raw.headers).flatMap((name) => /^x-amz-checksum-(\w+)$/.exec(name)?.[1] ?? []);
  const trailer = /x-amz-checksum-(\w+)/i.exec(headerOf(request, 'x-amz-trailer') ?? '')?.[1];
  const given = [...names, ...(trailer ? [trailer.toLowerCase()] : [])].filter(
    (name) => !['algorithm', 'type', 'mode'].includes(name),
  );
  const announced = headerOf(request, 'x-amz-sdk-checksum-algorithm') ?? headerOf(request, 'x-amz-checksum-algorithm');
  if (given.length > 1) throw new S3Error('InvalidRequest', 'Only one checksum may be sent.');
  const name = (given[0] ?? announced)?.toUpperCase();
  if (name === undefined) return null;
  if (announced !== undefined && announced.toUpperCase() !== name)
    throw new S3Error('InvalidRequest', 'The checksum is not of the algorithm that is named.');
  if (!isAlgorithm(name))
    throw new S3Error('InvalidRequest', `The checksum algorithm ${name.slice(0, 20)} is not offered.`);
  const header = `x-amz-checksum-${name.toLowerCase()}`;
  const value = headerOf(request, header) ?? null;
  if (value !== null && !isChecksumValue(name, value))
    throw new S3Error('InvalidRequest', `The value of ${header} is not valid.`);
  return { algorithm: name, header, value };
}
