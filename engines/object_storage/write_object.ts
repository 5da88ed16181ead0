// PUT, copy and DELETE of objects, their tags and their canned access.
import type { DescribedObject, NewObject, ObjectMetadata, StoredObject } from '../../core/protocols/objects';
import { requireCopyConditions, writeConditions } from './conditions';
import { requireGranted, type Exchange, type ObjectExchange } from './endpoint_context';
import { S3Error } from './errors';
import {
  checksumHeaders,
  encryptionHeaders,
  isPublicRequest,
  metadataOf,
  requireCannedAcl,
  tagsOfDocument,
  tagsOfHeader,
} from './metadata';
import { lockOfHeaders } from './settings/object_lock';
import { requireOwner } from './operations';
import { findVersion, readFile } from './read_object';
import { decode, headerOf, queryOf } from './request';
import { sendEmpty, sendXml } from './respond';
import { receive, receiveText } from './upload';
import { parseXml } from './xml';

const XML_BYTES_MAX = 2 * 2 ** 20;

export async function putObject(exchange: ObjectExchange): Promise<void> {
  const { request, bucket, catalog, blobs, key } = exchange;
  requireGranted(exchange, 's3:PutObject', key);
  const described = describe(exchange);
  const received = await receive(exchange, described.metadata.encryption);
  const object: NewObject = {
    ...described,
    ...{ key, size: received.size, etag: received.md5, file_id: received.fileId },
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
    ...encryptionHeaders(stored.metadata),
  });
}

/** Metadata of the object that a request creates. @throws S3Error */
export function describe(exchange: ObjectExchange): DescribedObject {
  const { request, key } = exchange;
  const is_public = isPublicRequest(request);
  if (is_public) requireGranted(exchange, 's3:PutObjectAcl', key);
  const tags = tagsOfHeader(request);
  if (tags) requireGranted(exchange, 's3:PutObjectTagging', key);
  return { metadata: metadataOf(request), tags, is_public, ...lockOfHeaders(exchange) };
}

export function versionHeader({ version_id }: Pick<StoredObject, 'version_id'>): Record<string, string> {
  return version_id === 'null' ? {} : { 'x-amz-version-id': version_id };
}

/** The object named by x-amz-copy-source, if the caller may read it. @throws S3Error */
export async function copySource(exchange: ObjectExchange): Promise<{ object: StoredObject; from: ObjectExchange }> {
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
  return { object, from };
}

/** Files never change, so a copy is a hard link, except where the copy is to be encrypted. */
export async function copyObject(exchange: ObjectExchange): Promise<void> {
  const { request, bucket, catalog, key } = exchange;
  requireGranted(exchange, 's3:PutObject', key);
  const { object, from } = await copySource(exchange);
  const replaces = headerOf(request, 'x-amz-metadata-directive')?.toUpperCase() === 'REPLACE';
  if (!replaces && from.bucket.id === bucket.id && from.key === key && !from.versionId)
    throw new S3Error('InvalidRequest', 'A copy of an object onto itself has to replace its metadata.');
  const described = describe(exchange);
  const { checksum_algorithm, checksum, checksum_type } = object.metadata;
  requireSameChecksum(exchange, checksum ? checksum_algorithm : null);
  const sums = checksum && { checksum_algorithm, checksum, checksum_type };
  const encryption = described.metadata.encryption ?? object.metadata.encryption;
  // A lock belongs to one version: the lock of the source is not copied.
  const made = {
    ...described,
    metadata: { ...(replaces ? described.metadata : object.metadata), ...sums, ...(encryption && { encryption }) },
    tags: takesTags(exchange) ? described.tags : object.tags,
  };
  if (!object.file_id) return copyParts(exchange, object, from, made);
  const file_id = await copyFile(exchange, from, { ...object, file_id: object.file_id }, made.metadata);
  const stored = await catalog.put(bucket.id, {
    ...{ key, size: object.size, etag: object.etag, file_id, ...made },
    ...writeConditions(request),
  });
  answerCopy(exchange, stored, object);
}

/** @returns file id of the copy */
async function copyFile(
  { blobs, bucket }: Exchange,
  from: Exchange,
  { file_id, size, metadata }: Pick<StoredObject, 'size' | 'metadata'> & { file_id: string },
  { encryption }: ObjectMetadata,
): Promise<string> {
  if (!encryption || metadata.encryption) return blobs.copy({ bucketId: from.bucket.id, fileId: file_id }, bucket.id);
  const source = await blobs.open(from.bucket.id, file_id, null);
  return (await blobs.write(bucket.id, readFile(source, 0, size), undefined, encryption)).fileId;
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
      'A copy keeps the checksum of its source. Another checksum cannot be ' + 'requested.',
    );
}

/** An object with several files becomes a multipart upload of copied parts, with the same durability per step. */
async function copyParts(
  exchange: ObjectExchange,
  object: StoredObject,
  from: ObjectExchange,
  made: DescribedObject,
): Promise<void> {
  const { bucket, catalog, key } = exchange;
  const uploadId = await catalog.createUpload(bucket.id, { key, object: made });
  const fileIds: string[] = [];
  try {
    for (const { number, file_id, size, checksums } of await catalog.partsOf(object.id)) {
      const copy = await copyFile(exchange, from, { file_id, size, metadata: object.metadata }, made.metadata);
      await catalog.putPart(bucket.id, key, uploadId, { number, file_id: copy, size, etag: '', checksums });
      fileIds.push(copy);
    }
    const stored = await catalog.completeUpload(bucket.id, uploadId, fileIds, {
      ...{ key, size: object.size, etag: object.etag, file_id: null, part_count: fileIds.length, ...made },
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
      ...encryptionHeaders(stored.metadata),
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
  requireCannedAcl(exchange.request);
  await exchange.catalog.setPublic((await requireObject(exchange)).id, isPublicRequest(exchange.request));
  sendEmpty(exchange, 200);
}

export async function getAcl(exchange: ObjectExchange): Promise<void> {
  requireGranted(exchange, 's3:GetObjectAcl', exchange.key);
  sendXml(exchange, 'AccessControlPolicy', aclOf(exchange, (await requireObject(exchange)).is_public));
}

export function aclOf({ bucket }: Exchange, isPublic: boolean): Record<string, never> {
  const grant = (grantee: object, Permission: string): object => ({ Grantee: grantee, Permission });
  const everybody = grant({ 'xsi:type': 'Group', URI: 'http://acs.amazonaws.com/groups/global/AllUsers' }, 'READ');
  const Grant = [
    grant({ 'xsi:type': 'CanonicalUser', ID: bucket.project_id }, 'FULL_CONTROL'),
    ...(isPublic ? [everybody] : []),
  ];
  return { Owner: { ID: bucket.project_id }, AccessControlList: { Grant } } as never;
}

export function hasCopySource({ request }: Exchange): boolean {
  return headerOf(request, 'x-amz-copy-source') !== undefined;
}

export function versionOf(exchange: Exchange): string | null {
  return queryOf(exchange.request, 'versionId') || null;
}
