// PUT, copy and DELETE of objects, their tags and their canned access.
import type { NewObject, StoredObject } from '../../../core/objects';
import { requireCopyConditions, writeConditions } from './conditions';
import { mayDo, requireGranted, type Exchange, type ObjectExchange } from './endpoint_context';
import { S3Error } from './errors';
import { checkedTags, checksumHeaders, isPublicRequest, metadataOf, requireOffered, tagsOfHeader } from './metadata';
import { findVersion } from './read_object';
import { decode, headerOf, queryOf } from './request';
import { sendEmpty, sendXml } from './respond';
import { receive, receiveText } from './upload';
import { childElement, childElements, parseXml, elementText } from './xml';

const XML_BYTES_MAX = 2 * 2 ** 20;
const DELETIONS_MAX = 1000;

export async function putObject(exchange: ObjectExchange): Promise<void> {
  const { request, bucket, catalog, blobs, key } = exchange;
  requireGranted(exchange, 's3:PutObject', key);
  requireOffered(request);
  const described = describe(exchange);
  const received = await receive(exchange);
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
    // Whether the row was written is not known where the database went away: then the sweep decides.
    if ((error as { name?: string }).name === 'ObjectRefused') await blobs.remove(bucket.id, received.fileId);
    throw error;
  });
  exchange.wakeSweep();
  sendEmpty(exchange, 200, { etag: `"${stored.etag}"`, ...versionHeader(stored), ...checksumHeaders(stored) });
}

/** What a request says of the object that it makes. @throws S3Error */
export function describe(exchange: ObjectExchange): Pick<NewObject, 'metadata' | 'tags' | 'is_public'> {
  const { request, key } = exchange;
  const is_public = isPublicRequest(request);
  if (is_public) requireGranted(exchange, 's3:PutObjectAcl', key);
  const tags = tagsOfHeader(request);
  if (tags) requireGranted(exchange, 's3:PutObjectTagging', key);
  return { metadata: metadataOf(request), tags, is_public };
}

export function versionHeader({ version_id }: Pick<StoredObject, 'version_id'>): Record<string, string> {
  return version_id === 'null' ? {} : { 'x-amz-version-id': version_id };
}

/** The object that x-amz-copy-source names, if the caller may read it. @throws S3Error */
export async function copySource(exchange: ObjectExchange): Promise<{ object: StoredObject; from: ObjectExchange }> {
  const { request, catalog } = exchange;
  const [path = '', version] = (headerOf(request, 'x-amz-copy-source') ?? '').replace(/^\//, '').split('?versionId=');
  const text = decode(path);
  const at = text.indexOf('/');
  if (at < 1 || at === text.length - 1)
    throw new S3Error('InvalidArgument', 'x-amz-copy-source is not a bucket and a key.');
  const bucket = await catalog.bucket(text.slice(0, at));
  if (!bucket) throw new S3Error('NoSuchBucket');
  const from = { ...exchange, bucket, key: text.slice(at + 1), versionId: version ?? null };
  const object = await findVersion(from, 'GetObject');
  requireCopyConditions(request, object);
  return { object, from };
}

/** Files are never changed, so a copy is another name for them. */
export async function copyObject(exchange: ObjectExchange): Promise<void> {
  const { request, bucket, catalog, blobs, key } = exchange;
  requireGranted(exchange, 's3:PutObject', key);
  requireOffered(request);
  const { object, from } = await copySource(exchange);
  const replaces = headerOf(request, 'x-amz-metadata-directive')?.toUpperCase() === 'REPLACE';
  if (!replaces && from.bucket.id === bucket.id && from.key === key && !from.versionId)
    throw new S3Error('InvalidRequest', 'A copy of an object onto itself has to replace its metadata.');
  const described = describe(exchange);
  const { checksum_algorithm, checksum, checksum_type } = object.metadata;
  const sums = checksum && { checksum_algorithm, checksum, checksum_type };
  if (!object.file_id) return copyParts(exchange, object, from, replaces ? described.metadata : object.metadata);
  const file_id = await blobs.copy({ bucketId: from.bucket.id, fileId: object.file_id }, bucket.id);
  const takesTags = headerOf(request, 'x-amz-tagging-directive')?.toUpperCase() === 'REPLACE';
  const stored = await catalog.put(bucket.id, {
    ...{ key, size: object.size, etag: object.etag, file_id, is_public: described.is_public },
    metadata: { ...(replaces ? described.metadata : object.metadata), ...sums },
    tags: takesTags ? described.tags : object.tags,
    ...writeConditions(request),
  });
  answerCopy(exchange, stored, object);
}

/** An object of several files becomes an upload whose parts are copied: each step is as durable as those of clients. */
async function copyParts(
  exchange: ObjectExchange,
  object: StoredObject,
  from: ObjectExchange,
  metadata: StoredObject['metadata'],
): Promise<void> {
  const { bucket, catalog, blobs, key } = exchange;
  const { is_public } = describe(exchange);
  const uploadId = await catalog.createUpload(bucket.id, { key, object: { metadata, tags: object.tags, is_public } });
  const fileIds: string[] = [];
  try {
    for (const { number, file_id, size, checksums } of await catalog.partsOf(object.id)) {
      const copy = await blobs.copy({ bucketId: from.bucket.id, fileId: file_id }, bucket.id);
      await catalog.putPart(bucket.id, key, uploadId, { number, file_id: copy, size, etag: '', checksums });
      fileIds.push(copy);
    }
    const stored = await catalog.completeUpload(bucket.id, uploadId, fileIds, {
      ...{
        key,
        size: object.size,
        etag: object.etag,
        file_id: null,
        part_count: fileIds.length,
        metadata,
        tags: object.tags,
        is_public,
      },
      ...writeConditions(exchange.request),
    });
    answerCopy(exchange, stored, object);
  } catch (error) {
    await catalog.abortUpload(bucket.id, uploadId).catch(() => undefined); // lifecycle, or the end of the bucket
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
      ...(source.version_id !== 'null' && { 'x-amz-copy-source-version-id': source.version_id }),
    },
  );
}

export async function deleteObject(exchange: ObjectExchange): Promise<void> {
  const { bucket, catalog, key, versionId } = exchange;
  requireGranted(exchange, versionId ? 's3:DeleteObjectVersion' : 's3:DeleteObject', key);
  const [done] = await catalog.delete(bucket.id, [{ key, version_id: versionId }]);
  exchange.wakeSweep();
  sendEmpty(exchange, 204, {
    ...(done?.is_delete_marker && { 'x-amz-delete-marker': 'true' }),
    ...(done?.version_id && done.version_id !== 'null' && { 'x-amz-version-id': done.version_id }),
  });
}

/** POST ?delete: up to 1000 keys; those that the caller may not delete are reported, the others go together. */
export async function deleteObjects(exchange: Exchange): Promise<void> {
  const { bucket, catalog } = exchange;
  const document = parseXml(await receiveText(exchange, XML_BYTES_MAX), 'Delete');
  const wanted = childElements(document, 'Object').map((node) => ({
    key: elementText(node, 'Key') ?? '',
    version_id: elementText(node, 'VersionId') ?? null,
  }));
  if (!wanted.length || wanted.length > DELETIONS_MAX || wanted.some(({ key }) => !key))
    throw new S3Error('MalformedXML');
  const allowed = wanted.filter(({ key, version_id }) =>
    mayDo(exchange, version_id ? 's3:DeleteObjectVersion' : 's3:DeleteObject', key),
  );
  const done = allowed.length ? await catalog.delete(bucket.id, allowed) : [];
  exchange.wakeSweep();
  const isQuiet = elementText(document, 'Quiet') === 'true';
  sendXml(exchange, 'DeleteResult', {
    Deleted: isQuiet
      ? []
      : allowed.map(({ key, version_id }, index) => ({
          Key: key,
          VersionId: version_id,
          ...(done[index]?.is_delete_marker && { DeleteMarker: true, DeleteMarkerVersionId: done[index].version_id }),
        })),
    Error: wanted
      .filter((one) => !allowed.includes(one))
      .map(({ key, version_id }) => ({
        Key: key,
        VersionId: version_id,
        Code: 'AccessDenied',
        Message: 'Access denied.',
      })),
  });
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
  const set = document && childElements(childElement(document, 'TagSet') ?? document, 'Tag');
  await catalog.setTags(
    object.id,
    set && checkedTags(set.map((tag) => [elementText(tag, 'Key') ?? '', elementText(tag, 'Value') ?? ''])),
  );
  sendEmpty(exchange, tags ? 200 : 204, versionHeader(object));
}

async function requireObject({ catalog, bucket, key, versionId }: ObjectExchange): Promise<StoredObject> {
  const object = await catalog.find(bucket.id, key, versionId);
  if (!object || object.is_delete_marker) throw new S3Error(versionId ? 'NoSuchVersion' : 'NoSuchKey');
  return object;
}

export async function setAcl(exchange: ObjectExchange): Promise<void> {
  requireGranted(exchange, 's3:PutObjectAcl', exchange.key);
  if (headerOf(exchange.request, 'x-amz-acl') === undefined)
    throw new S3Error('NotImplemented', 'Only canned ACLs are offered.');
  await exchange.catalog.setPublic((await requireObject(exchange)).id, isPublicRequest(exchange.request));
  sendEmpty(exchange, 200);
}

export async function getAcl(exchange: ObjectExchange): Promise<void> {
  requireGranted(exchange, 's3:GetObjectAcl', exchange.key);
  sendXml(exchange, 'AccessControlPolicy', aclOf(exchange, (await requireObject(exchange)).is_public));
}

export function aclOf({ bucket }: Exchange, isPublic: boolean): Record<string, never> {
  const grant = (grantee: object, Permission: string): object => ({ Grantee: grantee, Permission });
  const everybody = grant({ URI: 'http://acs.amazonaws.com/groups/global/AllUsers' }, 'READ');
  const Grant = [grant({ ID: bucket.project_id }, 'FULL_CONTROL'), ...(isPublic ? [everybody] : [])];
  return { Owner: { ID: bucket.project_id }, AccessControlList: { Grant } } as never;
}

/** GET ?attributes */
export async function getAttributes(exchange: ObjectExchange): Promise<void> {
  const object = await findVersion(exchange, 'GetObjectAttributes');
  const asked = (headerOf(exchange.request, 'x-amz-object-attributes') ?? '').split(',').map((name) => name.trim());
  const { checksum_algorithm, checksum, checksum_type } = object.metadata;
  const parts = object.part_count && asked.includes('ObjectParts') ? await exchange.catalog.partsOf(object.id) : [];
  sendXml(
    exchange,
    'GetObjectAttributesResponse',
    {
      ETag: asked.includes('ETag') ? object.etag : null,
      Checksum:
        asked.includes('Checksum') && checksum && checksum_algorithm
          ? { [`Checksum${checksum_algorithm}`]: checksum, ChecksumType: checksum_type }
          : null,
      ObjectParts: parts.length
        ? {
            PartsCount: parts.length,
            Part: parts.map(({ number, size }) => ({ PartNumber: number, Size: size })) as never,
          }
        : null,
      StorageClass: asked.includes('StorageClass') ? 'STANDARD' : null,
      ObjectSize: asked.includes('ObjectSize') ? object.size : null,
    },
    { ...versionHeader(object), 'last-modified': new Date(object.modified_at).toUTCString() },
  );
}

export function hasCopySource({ request }: Exchange): boolean {
  return headerOf(request, 'x-amz-copy-source') !== undefined;
}

export function versionOf(exchange: Exchange): string | null {
  return queryOf(exchange.request, 'versionId') || null;
}
