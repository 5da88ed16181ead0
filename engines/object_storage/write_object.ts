// PUT, copy and DELETE of objects, their tags and their canned access.
import type { DescribedObject, NewObject, StoredObject } from '../../core/protocols/objects';
import type { Encrypted } from './files/blobs';
import { requireCopyConditions, writeConditions } from './conditions';
import { requireGranted, type Exchange, type ObjectExchange } from './endpoint_context';
import { S3Error } from './errors';
import { checksumHeaders, encryptionHeaders, metadataOf, tagsOfDocument, tagsOfHeader } from './metadata';
import { accessOfHeaders, aclOf, hasNoAcls, receivedAccess } from './settings/acl';
import { encryptionOf, encryptionOfPart } from './settings/customer_keys';
import { lockOfHeaders } from './settings/object_lock';
import { requireOwner } from './operations';
import { findVersion, readFile } from './read_object';
import { decode, headerOf, queryOf } from './request';
import { sendEmpty, sendXml } from './respond';
import { etagOf, receive, receiveText } from './upload';
import { parseXml } from './xml';

const XML_BYTES_MAX = 2 * 2 ** 20;

export async function putObject(exchange: ObjectExchange): Promise<void> {
  const { request, bucket, catalog, blobs, key } = exchange;
  requireGranted(exchange, 's3:PutObject', key);
  const described = describe(exchange);
  const received = await receive(exchange, encryptionOfPart(described.metadata, request));
  const object: NewObject = {
    ...described,
    ...{ key, size: received.size, etag: received.etag, file_id: received.fileId },
    metadata: {
      ...described.metadata,
      ...(received.checksum && {
        checksum_algorithm: received.algorithm,
        checksum: received.checksum,
        checksum_type: 'FULL_OBJECT',
      }),
    },
    ...writeConditions(request),
  };
  const stored = await catalog.put(bucket.id, object).catch(async (error: unknown) => {
    // If the database connection was lost, the row may exist: the sweep decides then.
    if ((error as { name?: string }).name === 'ObjectRefused') await blobs.remove(bucket.id, received.fileId);
    throw error;
  });
  exchange.wakeSweep();
  sendEmpty(exchange, 200, {
    ...{ etag: `"${stored.etag}"`, ...versionHeader(stored), ...checksumHeaders(stored) },
    ...encryptionHeaders(stored.metadata, request),
  });
}

/** Metadata of the object that a request creates. @throws S3Error */
export function describe(exchange: ObjectExchange): DescribedObject {
  const { request, key, bucket } = exchange;
  const is_public = accessOfHeaders(request, bucket) === 'public_read';
  if (is_public) requireGranted(exchange, 's3:PutObjectAcl', key);
  const tags = tagsOfHeader(request);
  if (tags) requireGranted(exchange, 's3:PutObjectTagging', key);
  return { metadata: metadataOf(request), tags, is_public, ...lockOfHeaders(exchange) };
}

export function versionHeader({ version_id }: Pick<StoredObject, 'version_id'>): Record<string, string> {
  return version_id === 'null' ? {} : { 'x-amz-version-id': version_id };
}

interface CopySource {
  object: StoredObject;
  from: ObjectExchange;
  /** How its files are opened. */
  encryption: Encrypted;
}

/** The object named by x-amz-copy-source, if the caller may read it. @throws S3Error */
export async function copySource(exchange: ObjectExchange): Promise<CopySource> {
  const { request, catalog } = exchange;
  const [path = '', version] = (headerOf(request, 'x-amz-copy-source') ?? '').replace(/^\//, '').split('?versionId=');
  const text = decode(path);
  const at = text.indexOf('/');
  if (at < 1 || at === text.length - 1)
    throw new S3Error('InvalidArgument', 'x-amz-copy-source is not a bucket and a key.');
  const bucket = await catalog.bucket(text.slice(0, at));
  if (!bucket) throw new S3Error('NoSuchBucket');
  requireOwner(request, bucket, 'x-amz-source-expected-bucket-owner');
  const from = { ...exchange, bucket, key: text.slice(at + 1), versionId: version ?? null };
  const object = await findVersion(from, 'GetObject');
  requireCopyConditions(request, object);
  return { object, from, encryption: encryptionOf(object.metadata, request, 'source') };
}

/** Files never change, so a copy is a hard link, except where the copy is encrypted in another way. */
export async function copyObject(exchange: ObjectExchange): Promise<void> {
  const { request, bucket, catalog, key } = exchange;
  requireGranted(exchange, 's3:PutObject', key);
  const source = await copySource(exchange);
  const { object, from } = source;
  const described = describe(exchange);
  const { encryption, customer_key } = described.metadata;
  const replaces = headerOf(request, 'x-amz-metadata-directive')?.toUpperCase() === 'REPLACE';
  const isSame = from.bucket.id === bucket.id && from.key === key && !from.versionId;
  if (isSame && !replaces && !encryption && !customer_key)
    throw new S3Error('InvalidRequest', 'A copy of an object onto itself has to replace its metadata or encryption.');
  const { checksum_algorithm, checksum, checksum_type } = object.metadata;
  requireSameChecksum(exchange, checksum ? checksum_algorithm : null);
  const sums = checksum && { checksum_algorithm, checksum, checksum_type };
  const { customer_key: _, encryption: __, ...metadata } = replaces ? described.metadata : object.metadata;
  const managed = customer_key ? null : (encryption ?? object.metadata.encryption);
  // A lock belongs to one version: the lock of the source is not copied.
  const made = {
    ...described,
    metadata: {
      ...{ ...metadata, ...sums },
      ...(managed && { encryption: managed }),
      ...(customer_key && { customer_key }),
    },
    tags: takesTags(exchange) ? described.tags : object.tags,
  };
  const copies = copiesOf(exchange, source, encryptionOfPart(made.metadata, request));
  if (!object.file_id) return copyParts(exchange, object, copies, made);
  const copy = await copies({ file_id: object.file_id, size: object.size, etag: object.etag });
  const stored = await catalog.put(bucket.id, {
    ...{ key, size: object.size, etag: copy.etag, file_id: copy.fileId, ...made },
    ...writeConditions(request),
  });
  answerCopy(exchange, stored, object);
}

interface SourceFile {
  file_id: string;
  size: number;
  /** Of the object. */
  etag: string;
}

/** Copies files of the source. What a key of a client encrypts has an entity tag of its own, before and after. */
function copiesOf(
  { blobs, bucket }: Exchange,
  { from, encryption: before }: CopySource,
  after: Encrypted,
): (file: SourceFile) => Promise<{ fileId: string; etag: string }> {
  const isKept = before ? before === after : !after;
  return async ({ file_id, size, etag }) => {
    if (isKept && !Buffer.isBuffer(before))
      return { fileId: await blobs.copy({ bucketId: from.bucket.id, fileId: file_id }, bucket.id), etag };
    const source = await blobs.open(from.bucket.id, file_id, before);
    const written = await blobs.write(bucket.id, readFile(source, 0, size), undefined, after);
    const isHidden = Buffer.isBuffer(before) || Buffer.isBuffer(after);
    return { fileId: written.fileId, etag: isHidden ? etagOf(written, after) : etag };
  };
}

/** Tags of a copy come either from the source or from the request. @throws S3Error InvalidArgument */
function takesTags({ request }: Exchange): boolean {
  const isReplaced = headerOf(request, 'x-amz-tagging-directive')?.toUpperCase() === 'REPLACE';
  if (!isReplaced && headerOf(request, 'x-amz-tagging') !== undefined)
    throw new S3Error('InvalidArgument', 'x-amz-tagging needs x-amz-tagging-directive: REPLACE.');
  return isReplaced;
}

/** A copy does not read the content, so its checksum cannot change. @throws S3Error NotImplemented */
function requireSameChecksum({ request }: Exchange, algorithm: string | null | undefined): void {
  const requested = headerOf(request, 'x-amz-checksum-algorithm')?.toUpperCase();
  if (requested !== undefined && requested !== algorithm)
    throw new S3Error(
      'NotImplemented',
      'A copy keeps the checksum of its source. Another checksum cannot be requested.',
    );
}

/** An object with several files becomes a multipart upload of copied parts, with the same durability per step. */
async function copyParts(
  exchange: ObjectExchange,
  object: StoredObject,
  copies: ReturnType<typeof copiesOf>,
  made: DescribedObject,
): Promise<void> {
  const { bucket, catalog, key } = exchange;
  const uploadId = await catalog.createUpload(bucket.id, { key, object: made });
  const fileIds: string[] = [];
  try {
    let hidden: string | null = null;
    for (const { number, file_id, size, checksums } of await catalog.partsOf(object.id)) {
      const { fileId, etag } = await copies({ file_id, size, etag: object.etag });
      await catalog.putPart(bucket.id, key, uploadId, { number, file_id: fileId, size, etag: '', checksums });
      fileIds.push(fileId);
      if (etag !== object.etag) hidden = etag;
    }
    const stored = await catalog.completeUpload(bucket.id, uploadId, fileIds, {
      ...{ key, size: object.size, file_id: null, part_count: fileIds.length, ...made },
      etag: hidden === null ? object.etag : `${hidden}-${fileIds.length}`,
      ...writeConditions(exchange.request),
    });
    answerCopy(exchange, stored, object);
  } catch (error) {
    await catalog.abortUpload(bucket.id, uploadId).catch(() => undefined); // aborted by lifecycle or bucket removal
    throw error;
  }
}

function answerCopy(exchange: ObjectExchange, stored: StoredObject, source: StoredObject): void {
  exchange.wakeSweep();
  sendXml(
    exchange,
    'CopyObjectResult',
    { LastModified: stored.modified_at, ETag: `"${stored.etag}"` },
    {
      ...versionHeader(stored),
      ...encryptionHeaders(stored.metadata, exchange.request),
      ...(source.version_id !== 'null' && { 'x-amz-copy-source-version-id': source.version_id }),
    },
  );
}

export async function getTags(exchange: ObjectExchange): Promise<void> {
  const object = await findVersion(exchange, 'GetObjectTagging');
  const Tag = Object.entries(object.tags ?? {}).map(([Key, Value]) => ({ Key, Value }));
  sendXml(exchange, 'Tagging', { TagSet: { Tag } }, versionHeader(object));
}

export async function setTags(exchange: ObjectExchange, tags: 'given' | null): Promise<void> {
  const { catalog, key, versionId } = exchange;
  const verb = tags ? 'Put' : 'Delete';
  requireGranted(exchange, versionId ? `s3:${verb}ObjectVersionTagging` : `s3:${verb}ObjectTagging`, key);
  const object = await requireObject(exchange);
  const document = tags && parseXml(await receiveText(exchange, XML_BYTES_MAX), 'Tagging');
  await catalog.setTags(object.id, document && tagsOfDocument(document));
  sendEmpty(exchange, tags ? 200 : 204, versionHeader(object));
}

async function requireObject({ catalog, bucket, key, versionId }: ObjectExchange): Promise<StoredObject> {
  const object = await catalog.find(bucket.id, key, versionId);
  if (!object || object.is_delete_marker) throw new S3Error(versionId ? 'NoSuchVersion' : 'NoSuchKey');
  return object;
}

export async function setAcl(exchange: ObjectExchange): Promise<void> {
  requireGranted(exchange, 's3:PutObjectAcl', exchange.key);
  const object = await requireObject(exchange);
  const access = await receivedAccess(exchange);
  await exchange.catalog.setPublic(object.id, access === 'public_read');
  sendEmpty(exchange, 200);
}

export async function getAcl(exchange: ObjectExchange): Promise<void> {
  requireGranted(exchange, 's3:GetObjectAcl', exchange.key);
  const { is_public } = await requireObject(exchange);
  sendXml(exchange, 'AccessControlPolicy', aclOf(exchange, is_public && !hasNoAcls(exchange.bucket)));
}

export function hasCopySource({ request }: Exchange): boolean {
  return headerOf(request, 'x-amz-copy-source') !== undefined;
}

export function versionOf(exchange: Exchange): string | null {
  return queryOf(exchange.request, 'versionId') || null;
}
