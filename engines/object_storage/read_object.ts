// GET and HEAD of an object: whole, a range or a part, streamed from its files.
import { parseByteRange } from '../../core/protocols/byte_range';
import type { StoredObject, StoredPart } from '../../core/protocols/objects';
import { requireConditions } from './conditions';
import { mayDo, requireGranted, type ObjectExchange } from './endpoint_context';
import { S3Error } from './errors';
import { checksumHeaders, objectHeaders } from './metadata';
import { encryptionOf } from './settings/customer_keys';
import { lockHeaders } from './settings/object_lock';
import type { OpenFile } from '../../core/files/open_files';
import { headerOf, numberInQuery, queryOf } from './request';
import { sendFile } from '../../core/files/send_file';

const PIECE_BYTES = 256 * 1024;
const PARTS_MAX = 10_000;
/** The object may be overwritten between reading its row and opening its file. */
const TRIES = 3;

interface Range {
  /** First byte, and the byte after the last one. */
  start: number;
  end: number;
}

/** The requested version, if the caller may know of it. @throws S3Error */
export async function findVersion(
  exchange: ObjectExchange,
  action: 'GetObject' | 'GetObjectTagging' | 'GetObjectAttributes',
): Promise<StoredObject> {
  const { catalog, bucket, key, versionId } = exchange;
  const object = await catalog.find(bucket.id, key, versionId);
  const versioned =
    action === 'GetObject'
      ? 's3:GetObjectVersion'
      : (`s3:${action.replace('Object', 'ObjectVersion')}` as 's3:GetObjectVersionTagging');
  const needed = versionId ? versioned : (`s3:${action}` as const);
  // A caller with s3:ListBucket may learn that the key does not exist.
  if (object || !mayDo(exchange, 's3:ListBucket', key))
    requireGranted(exchange, needed, key, !versionId && object?.is_public === true);
  if (object && !object.is_delete_marker) return object;
  const isListed = mayDo(exchange, 's3:ListBucket', key) || exchange.caller.key === null;
  // Without s3:ListBucket, a missing key must look like a forbidden one.
  if (!isListed) throw new S3Error('AccessDenied');
  if (object && versionId) throw new S3Error('MethodNotAllowed', undefined, marker(object));
  throw new S3Error(versionId ? 'NoSuchVersion' : 'NoSuchKey', undefined, object ? marker(object) : {});
}

function marker(object: StoredObject): Record<string, string> {
  return {
    'x-amz-delete-marker': 'true',
    ...(object.version_id !== 'null' && { 'x-amz-version-id': object.version_id }),
  };
}

/** @returns bytes of content sent */
export async function readObject(exchange: ObjectExchange): Promise<number> {
  for (let tries = 1; ; tries += 1) {
    const object = await findVersion(exchange, 'GetObject');
    if (!exchange.isErrorDocument) requireConditions(exchange.request, object);
    try {
      return await send(exchange, object);
    } catch (error) {
      if (
        (error as NodeJS.ErrnoException).code !== 'ENOENT' ||
        tries === TRIES ||
        exchange.request.response.headersSent
      )
        throw error;
    }
  }
}

async function send(exchange: ObjectExchange, object: StoredObject): Promise<number> {
  const { request, catalog, caller } = exchange;
  const { response } = request;
  const encryption = encryptionOf(object.metadata, request);
  const parts = object.part_count ? await catalog.partsOf(object.id) : [];
  const part = partOf(exchange, object, parts);
  const header = exchange.isErrorDocument ? undefined : headerOf(request, 'range');
  const range = part ?? rangeOf(header, object.size, headerOf(request, 'if-range'), object.etag);
  const { start, end } = range ?? { start: 0, end: object.size };
  const headers: Record<string, string> = {
    ...objectHeaders(object, request, caller.key !== null || caller.isOwner),
    ...lockHeaders(exchange, object),
    'content-length': String(end - start),
    ...(range && { 'content-range': `bytes ${start}-${end - 1}/${object.size}` }),
    ...(object.part_count && part && { 'x-amz-mp-parts-count': String(parts.length) }),
    ...(headerOf(request, 'x-amz-checksum-mode')?.toUpperCase() === 'ENABLED' &&
      sumsOf(object, parts, { range, part })),
  };
  const status = exchange.isErrorDocument ? 404 : range ? 206 : 200;
  if (request.method === 'HEAD' || start === end) {
    response.writeHead(status, headers).end();
    return 0;
  }
  const pieces = piecesOf(object, parts, { start, end });
  for (const [index, piece] of pieces.entries()) {
    const file = await exchange.blobs.open(exchange.bucket.id, piece.fileId, encryption);
    if (index === 0) response.writeHead(status, headers);
    try {
      await sendFile(response, file, piece, index === pieces.length - 1 ? 'end' : 'more');
    } finally {
      file.release();
    }
  }
  return end - start;
}

interface FilePiece extends Range {
  fileId: string;
}

/** The file ranges that make up a range of the object. */
export function piecesOf(object: StoredObject, parts: readonly StoredPart[], { start, end }: Range): FilePiece[] {
  if (object.file_id) return [{ fileId: object.file_id, start, end }];
  const pieces: FilePiece[] = [];
  let offset = 0;
  for (const { file_id: fileId, size } of parts) {
    const [from, to] = [Math.max(start, offset), Math.min(end, offset + size)];
    if (from < to) pieces.push({ fileId, start: from - offset, end: to - offset });
    offset += size;
  }
  return pieces;
}

/**
 * Yields the bytes of a range, and releases the file. The next piece is read while the consumer handles the current
 * one.
 * @throws Error where the file is shorter
 */
export async function* readFile(file: OpenFile, start: number, end: number): AsyncGenerator<Buffer> {
  const read = async (offset: number): Promise<Buffer> => {
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, end - offset));
    return piece.subarray(0, await file.read(piece, piece.length, offset));
  };
  let ahead: Promise<Buffer> | null = start < end ? read(start) : null;
  try {
    for (let offset = start; ahead;) {
      const piece: Buffer = await ahead;
      offset += piece.length;
      ahead = offset < end ? read(offset) : null;
      ahead?.catch(() => undefined); // the consumer awaits it and sees the error
      yield piece;
    }
  } finally {
    await ahead?.catch(() => undefined);
    file.release();
  }
}

/** Checksums of the whole object or of one part; ranges have none. */
function sumsOf(
  object: StoredObject,
  parts: readonly StoredPart[],
  { range, part }: { range: Range | null; part: (Range & { number: number }) | null },
): Record<string, string> {
  const { checksum_algorithm: algorithm } = object.metadata;
  if (!range || (part && !parts.length)) return checksumHeaders(object);
  const checksum = part && algorithm ? parts[part.number - 1]?.checksums[algorithm] : undefined;
  return checksum ? checksumHeaders({ metadata: { ...object.metadata, checksum } }) : {};
}

/** ?partNumber= @throws S3Error */
function partOf(
  { request }: ObjectExchange,
  object: StoredObject,
  parts: readonly StoredPart[],
): (Range & { number: number }) | null {
  if (queryOf(request, 'partNumber') === undefined) return null;
  if (headerOf(request, 'range') !== undefined)
    throw new S3Error('InvalidRequest', 'Send either a range or partNumber, not both.');
  const number = numberInQuery(request, 'partNumber', 1, PARTS_MAX);
  const index = parts.length ? number - 1 : 0;
  const sizes = parts.length ? parts.map(({ size }) => size) : [object.size];
  if (number < 1 || number > sizes.length) throw new S3Error('InvalidPartNumber');
  const start = sizes.slice(0, index).reduce((sum, size) => sum + size, 0);
  return { start, end: start + (sizes[index] as number), number };
}

/** A single byte range (RFC 9110 §14). Multiple and invalid ranges are ignored. @throws S3Error InvalidRange */
function rangeOf(header: string | undefined, size: number, ifRange?: string, etag?: string): Range | null {
  if (ifRange !== undefined && ifRange !== `"${etag}"`) return null;
  const range = parseByteRange(header?.trim(), size);
  if (range === null || range === 'reversed') return null;
  if (range === 'unsatisfiable') throw new S3Error('InvalidRange', undefined, { 'content-range': `bytes */${size}` });
  return { start: range.start, end: range.end + 1 };
}
