// Multipart uploads. Parts stay separate files, so that completing an upload copies nothing.
import { createHash } from 'node:crypto';
import type { StoredObject, StoredPart, StoredUpload } from '../../core/protocols/objects';
import {
  ALGORITHMS,
  canBe,
  checksum,
  combined,
  isAlgorithm,
  usualType,
  type ChecksumAlgorithm,
  type ChecksumType,
} from './files/checksums';
import { writeConditions } from './conditions';
import { requireGranted, type ObjectExchange } from './endpoint_context';
import { S3Error } from './errors';
import { checksumHeaders, encryptionHeaders } from './metadata';
import { piecesOf, readFile } from './read_object';
import { headerOf, numberInQuery, queryOf, type S3Request } from './request';
import { sendEmpty, sendXml } from './respond';
import { customerKeyOf, encryptionOfPart } from './settings/customer_keys';
import { etagOf, receive, receiveText, type Received } from './upload';
import { copySource, describe, versionHeader } from './write_object';
import { childElements, parseXml, elementText, requireMembers, type XmlNode } from './xml';

/** Parts per upload; part numbers start at 1. */
export const PARTS_MAX = 10_000;
const PART_BYTES_MIN = 5 * 2 ** 20;
const XML_BYTES_MAX = 4 * 2 ** 20;
const COMPLETE = 'CompleteMultipartUpload';

export async function createUpload(exchange: ObjectExchange): Promise<void> {
  const { request, bucket, catalog, key } = exchange;
  requireGranted(exchange, 's3:PutObject', key);
  const described = describe(exchange);
  const algorithm = headerOf(request, 'x-amz-checksum-algorithm')?.toUpperCase();
  if (algorithm !== undefined && !isAlgorithm(algorithm))
    throw new S3Error('InvalidRequest', 'The checksum algorithm is not offered.');
  if (algorithm === undefined && headerOf(request, 'x-amz-checksum-type') !== undefined)
    throw new S3Error('InvalidRequest', 'x-amz-checksum-type needs x-amz-checksum-algorithm.');
  const type =
    algorithm && ((headerOf(request, 'x-amz-checksum-type')?.toUpperCase() ?? usualType(algorithm)) as ChecksumType);
  if (algorithm && type && !canBe(algorithm, type))
    throw new S3Error('InvalidRequest', `The checksum ${algorithm} cannot be ${type}.`);
  const metadata = { ...described.metadata, ...(algorithm && { checksum_algorithm: algorithm, checksum_type: type }) };
  const UploadId = await catalog.createUpload(bucket.id, {
    key,
    object: { ...described, ...aclOf(request), metadata },
  });
  sendXml(
    exchange,
    'InitiateMultipartUploadResult',
    { Bucket: bucket.name, Key: key, UploadId },
    {
      ...(algorithm && type && { 'x-amz-checksum-algorithm': algorithm, 'x-amz-checksum-type': type }),
      ...encryptionHeaders(metadata, request),
    },
  );
}

export async function putPart(exchange: ObjectExchange): Promise<void> {
  const { upload, number } = await requirePart(exchange);
  const received = await receive(exchange, encryptionOfPart(upload.object.metadata, exchange.request));
  await storePart(exchange, upload, number, received);
  const sums =
    received.checksum && received.algorithm
      ? { [`x-amz-checksum-${received.algorithm.toLowerCase()}`]: received.checksum }
      : {};
  const { metadata } = upload.object;
  sendEmpty(exchange, 200, {
    ...{ etag: `"${received.etag}"`, ...sums },
    ...encryptionHeaders(metadata, exchange.request),
  });
}

async function storePart(
  exchange: ObjectExchange,
  upload: StoredUpload,
  number: number,
  received: Received,
): Promise<string> {
  const { bucket, catalog, blobs, key } = exchange;
  const checksums = received.algorithm && received.checksum ? { [received.algorithm]: received.checksum } : {};
  const part = { number, file_id: received.fileId, size: received.size, etag: received.etag, checksums };
  return catalog.putPart(bucket.id, key, upload.id, part).catch(async (error: unknown) => {
    if ((error as { name?: string }).name === 'ObjectRefused') await blobs.remove(bucket.id, received.fileId);
    throw error;
  });
}

/** UploadPartCopy: the bytes are copied, since a part has its own entity tag. */
export async function copyPart(exchange: ObjectExchange): Promise<void> {
  const { bucket, catalog, blobs, request } = exchange;
  const { upload, number } = await requirePart(exchange);
  const { object, from, encryption: before } = await copySource(exchange);
  const header = headerOf(request, 'x-amz-copy-source-range');
  const range = header === undefined ? null : copyRangeOf(header, object.size);
  const parts = object.part_count ? await catalog.partsOf(object.id) : [];
  const { checksum_algorithm: algorithm } = upload.object.metadata;
  const encryption = encryptionOfPart(upload.object.metadata, request);
  const sums = algorithm ? checksum(algorithm as ChecksumAlgorithm) : null;
  async function* content(): AsyncGenerator<Buffer> {
    for (const { fileId, start, end } of piecesOf(object, parts, range ?? { start: 0, end: object.size }))
      yield* readFile(await blobs.open(from.bucket.id, fileId, before), start, end);
  }
  const written = await blobs.write(
    bucket.id,
    content(),
    {
      piece: (piece) => sums?.update(piece),
      end: () => undefined,
    },
    encryption,
  );
  const received = {
    ...{ ...written, etag: etagOf(written, encryption) },
    ...{ algorithm: (algorithm as ChecksumAlgorithm) ?? null, checksum: sums && sums.digest() },
  };
  const LastModified = await storePart(exchange, upload, number, received);
  sendXml(
    exchange,
    'CopyPartResult',
    { LastModified, ETag: `"${received.etag}"` },
    encryptionHeaders(upload.object.metadata, request),
  );
}

/** Both ends are required and must lie within the source. @throws S3Error InvalidArgument, InvalidRange */
function copyRangeOf(header: string, size: number): { start: number; end: number } {
  const [, first = '', last = ''] = /^bytes=(\d{1,15})-(\d{1,15})$/.exec(header) ?? [];
  const range = { start: Number(first), end: Number(last) + 1 };
  if (!first || range.end <= range.start)
    throw new S3Error('InvalidArgument', 'x-amz-copy-source-range is not a range such as bytes=0-9.');
  if (range.end > size) throw new S3Error('InvalidRange');
  return range;
}

async function requirePart(exchange: ObjectExchange): Promise<{ upload: StoredUpload; number: number }> {
  const upload = await requireGrantedUpload(exchange);
  const number = numberInQuery(exchange.request, 'partNumber', 0, Infinity);
  if (number < 1 || number > PARTS_MAX)
    throw new S3Error('InvalidArgument', `partNumber must be from 1 to ${PARTS_MAX}.`);
  if (!upload) throw new S3Error('NoSuchUpload');
  return { upload, number };
}

const aclOf = (request: S3Request): Pick<StoredUpload['object'], 'acl'> => {
  const acl = headerOf(request, 'x-amz-acl');
  return acl === undefined ? {} : { acl };
};

/** Conditions of policies see what the upload has asked for. @throws S3Error AccessDenied */
async function requireGrantedUpload(exchange: ObjectExchange): Promise<StoredUpload | null> {
  const { request, bucket, catalog, key } = exchange;
  const upload = await catalog.upload(bucket.id, key, queryOf(request, 'uploadId') ?? '');
  if (upload) request.upload = upload.object;
  requireGranted(exchange, 's3:PutObject', key);
  return upload;
}

export async function requireUpload({ catalog, bucket, key, request }: ObjectExchange): Promise<StoredUpload> {
  const upload = await catalog.upload(bucket.id, key, queryOf(request, 'uploadId') ?? '');
  if (!upload) throw new S3Error('NoSuchUpload');
  return upload;
}

export async function completeUpload(exchange: ObjectExchange): Promise<void> {
  const { request, bucket, catalog } = exchange;
  const upload = await requireGrantedUpload(exchange);
  const listed = listedParts(parseXml(await receiveText(exchange, XML_BYTES_MAX, 'of the object'), COMPLETE));
  if (!upload) return repeated(exchange, queryOf(request, 'uploadId') ?? '');
  requireSameKey(upload, request);
  const parts = chosenParts(listed, await catalog.uploadParts(upload.id));
  const object = completedObject(upload, parts);
  requireAnnounced(request, object);
  const ids = parts.map(({ file_id }) => file_id);
  const stored = await catalog.completeUpload(bucket.id, upload.id, ids, { ...object, ...writeConditions(request) });
  exchange.wakeSweep();
  answer(exchange, stored);
}

/** A key is not needed, and one that is sent has to be that of the upload. @throws S3Error */
export function requireSameKey({ object }: StoredUpload, request: S3Request): void {
  if (customerKeyOf(request)) encryptionOfPart(object.metadata, request);
}

interface ListedPart {
  number: number;
  etag: string;
  /** By algorithm. */
  checksums: [string, string][];
}

/** @throws S3Error MalformedXML, NotImplemented */
function listedParts(document: XmlNode): ListedPart[] {
  requireMembers(document, ['Part'], ['Part']);
  const listed = childElements(document, 'Part').map((part) => {
    requireMembers(part, ['PartNumber', 'ETag', ...ALGORITHMS.map((name) => `Checksum${name}`)]);
    return {
      number: Number(elementText(part, 'PartNumber')),
      etag: (elementText(part, 'ETag') ?? '').replace(/^"|"$/g, ''),
      checksums: ALGORITHMS.flatMap((name): [string, string][] => {
        const value = elementText(part, `Checksum${name}`);
        return value === undefined ? [] : [[name, value]];
      }),
    };
  });
  if (!listed.length || listed.length > PARTS_MAX) throw new S3Error('MalformedXML');
  return listed;
}

/** Requires that the size and the checksum that the client has announced match the object. @throws S3Error */
function requireAnnounced(request: S3Request, object: Pick<StoredObject, 'size' | 'metadata'>): void {
  const { checksum_algorithm, checksum: value, checksum_type } = object.metadata;
  const size = headerOf(request, 'x-amz-mp-object-size');
  if (size !== undefined && size !== String(object.size))
    throw new S3Error('InvalidRequest', `The object has ${object.size} bytes, not those of x-amz-mp-object-size.`);
  const type = headerOf(request, 'x-amz-checksum-type')?.toUpperCase();
  if (type !== undefined && type !== checksum_type)
    throw new S3Error('InvalidRequest', `The checksum of this upload is not of the type ${type.slice(0, 20)}.`);
  const own = `x-amz-checksum-${String(checksum_algorithm).toLowerCase()}`;
  for (const name of Object.keys(request.raw.headers).filter((one) => one.startsWith('x-amz-checksum-'))) {
    if (name === 'x-amz-checksum-type') continue;
    if (name !== own) throw new S3Error('InvalidRequest', `The upload does not use the checksum ${name}.`);
    if (headerOf(request, name) !== value) throw new S3Error('BadDigest');
  }
}

/** A repeated CompleteMultipartUpload, after the client has missed the response, succeeds again. */
async function repeated(exchange: ObjectExchange, uploadId: string): Promise<void> {
  const stored = await exchange.catalog.find(exchange.bucket.id, exchange.key, null);
  if (!uploadId || stored?.upload_id !== uploadId) throw new S3Error('NoSuchUpload');
  answer(exchange, stored);
}

function answer(exchange: ObjectExchange, stored: StoredObject): void {
  const { checksum_algorithm: algorithm, checksum: value, checksum_type: type } = stored.metadata;
  const { bucket, key } = exchange;
  sendXml(
    exchange,
    'CompleteMultipartUploadResult',
    {
      ...{ Location: `/${bucket.name}/${key}`, Bucket: bucket.name, Key: key, ETag: `"${stored.etag}"` },
      ...(algorithm && value && { [`Checksum${algorithm}`]: value, ChecksumType: type }),
    },
    { ...versionHeader(stored), ...checksumHeaders(stored), ...encryptionHeaders(stored.metadata, exchange.request) },
  );
}

function chosenParts(listed: readonly ListedPart[], parts: readonly StoredPart[]): StoredPart[] {
  const known = new Map(parts.map((part) => [part.number, part]));
  return listed.map(({ number, etag, checksums }, index) => {
    if (index && number <= (listed[index - 1]?.number as number)) throw new S3Error('InvalidPartOrder');
    const part = known.get(number);
    if (part?.etag !== etag) throw new S3Error('InvalidPart');
    if (checksums.some(([name, value]) => part.checksums[name] !== value))
      throw new S3Error('InvalidPart', `The checksum of part ${number} does not match.`);
    if (index < listed.length - 1 && part.size < PART_BYTES_MIN) throw new S3Error('EntityTooSmall');
    return part;
  });
}

function completedObject(upload: StoredUpload, parts: readonly StoredPart[]) {
  const md5 = createHash('md5');
  for (const { etag } of parts) md5.update(Buffer.from(etag, 'hex'));
  const { checksum_algorithm: algorithm, checksum_type: type } = upload.object.metadata;
  const sums = algorithm ? parts.map(({ checksums, size }) => ({ checksum: checksums[algorithm] ?? '', size })) : [];
  if (sums.some((sum) => !sum.checksum))
    throw new S3Error('InvalidPart', `A part has no checksum of the type ${algorithm}.`);
  const total = algorithm ? combined(algorithm as ChecksumAlgorithm, type as ChecksumType, sums) : null;
  return {
    ...upload.object,
    ...{ key: upload.key, file_id: null, part_count: parts.length, upload_id: upload.id },
    size: parts.reduce((sum, { size }) => sum + size, 0),
    etag: `${md5.digest('hex')}-${parts.length}`,
    metadata: { ...upload.object.metadata, ...(total && { checksum: total }) },
  };
}

export async function abortUpload(exchange: ObjectExchange): Promise<void> {
  requireGranted(exchange, 's3:AbortMultipartUpload', exchange.key);
  await exchange.catalog.abortUpload(exchange.bucket.id, (await requireUpload(exchange)).id);
  exchange.wakeSweep();
  sendEmpty(exchange, 204);
}
