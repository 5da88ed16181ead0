// Lists: of buckets, of objects (version 1 and 2), and of versions.
import { GROUP, LAST_VERSION, type ListedVersion } from '../../core/protocols/objects';
import { uriEncodePath } from '../../core/protocols/sigv4';
import { requireGranted, type EndpointContext, type Exchange } from './endpoint_context';
import { S3Error } from './errors';
import { permissionIn } from '../../core/protocols/buckets/bucket_access';
import { numberInQuery, queryOf, type S3Request } from './request';
import { sendXml } from './respond';
import type { Caller } from './signature';
import type { XmlElements } from './xml';

const KEYS_MAX = 1000;
const BUCKETS_MAX = 10_000;

/** Buckets that the key may use, by name. */
export async function listBuckets(context: EndpointContext & { request: S3Request; caller: Caller }): Promise<void> {
  const { caller, catalog, request } = context;
  const { key } = caller;
  if (!key) throw new S3Error('AccessDenied');
  const prefix = queryOf(request, 'prefix') ?? '';
  const region = queryOf(request, 'bucket-region');
  const token = queryOf(request, 'continuation-token');
  const after = token === undefined ? '' : (fromToken(token)?.key ?? '');
  const max = numberInQuery(request, 'max-buckets', BUCKETS_MAX, BUCKETS_MAX);
  if (max < 1) throw new S3Error('InvalidArgument', `max-buckets is not a whole number from 1 to ${BUCKETS_MAX}.`);
  const buckets = (await catalog.bucketsOf(key.projectId)).filter(
    (one) =>
      permissionIn(key.grants, one.id) !== null &&
      one.name.startsWith(prefix) &&
      one.name > after &&
      (region === undefined || one.region === region),
  );
  const shown = buckets.slice(0, max);
  const last = shown.at(-1);
  sendXml(context, 'ListAllMyBucketsResult', {
    Owner: { ID: key.projectId },
    Buckets: {
      Bucket: shown.map(({ name, created_at, region: BucketRegion }) => ({
        Name: name,
        CreationDate: created_at,
        BucketRegion,
      })),
    },
    ContinuationToken: buckets.length > max && last ? tokenOf([last.name]) : null,
    Prefix: queryOf(request, 'prefix'),
  });
}

interface ListQuery {
  prefix: string;
  delimiter: string | null;
  max: number;
  encode: (text: string) => string;
  encodingType: string | null;
}

/** @throws S3Error InvalidArgument */
export function encodingOf(request: S3Request): 'url' | null {
  const encodingType = queryOf(request, 'encoding-type') ?? null;
  if (encodingType !== null && encodingType !== 'url')
    throw new S3Error('InvalidArgument', 'encoding-type can only be url.');
  return encodingType;
}

function listQueryOf(request: S3Request): ListQuery {
  const encodingType = encodingOf(request);
  return {
    prefix: queryOf(request, 'prefix') ?? '',
    delimiter: queryOf(request, 'delimiter') || null,
    max: numberInQuery(request, 'max-keys', KEYS_MAX, KEYS_MAX),
    encode: encodingType ? (text) => uriEncodePath(text) : (text) => text,
    encodingType,
  };
}

export async function listObjects(exchange: Exchange): Promise<void> {
  const { request } = exchange;
  const isV2 = queryOf(request, 'list-type') === '2';
  const { prefix, delimiter, max, encode, encodingType } = listQueryOf(request);
  requireGranted(exchange, 's3:ListBucket', prefix);
  // An empty token requests the first page.
  const token = isV2 ? queryOf(request, 'continuation-token') : undefined;
  const start = queryOf(request, isV2 ? 'start-after' : 'marker');
  const { entries, isTruncated } = await listed(exchange, {
    prefix,
    delimiter,
    max,
    after: token ? fromToken(token) : afterMarker(start, prefix, delimiter),
  });
  const last = entries.at(-1);
  const objects = entries.filter(({ common_prefix }) => common_prefix === null);
  const isOwned = !isV2 || queryOf(request, 'fetch-owner') === 'true';
  const owner = isOwned ? bucketOwner(exchange) : {};
  const common = {
    ...{ Name: exchange.bucket.name, Prefix: encode(prefix), Delimiter: delimiter && encode(delimiter), MaxKeys: max },
    ...{ EncodingType: encodingType, IsTruncated: isTruncated },
    Contents: objects.map((entry): XmlElements => ({ Key: encode(entry.key), ...shown(entry), ...owner })),
    CommonPrefixes: groups(entries, encode),
  };
  if (!isV2)
    return sendXml(exchange, 'ListBucketResult', {
      ...common,
      Marker: encode(start ?? ''),
      NextMarker: isTruncated && last ? encode(last.common_prefix ?? last.key) : null,
    });
  sendXml(exchange, 'ListBucketResult', {
    ...common,
    ...{ KeyCount: entries.length, ContinuationToken: token, StartAfter: start === undefined ? null : encode(start) },
    NextContinuationToken: isTruncated && last ? toToken(last) : null,
  });
}

export async function listVersions(exchange: Exchange): Promise<void> {
  const { request } = exchange;
  const { prefix, delimiter, max, encode, encodingType } = listQueryOf(request);
  requireGranted(exchange, 's3:ListBucketVersions', prefix);
  const [marker, versionMarker] = [
    queryOf(request, 'key-marker') || undefined,
    queryOf(request, 'version-id-marker') || undefined,
  ];
  const after = await afterVersion(exchange, marker, versionMarker, { prefix, delimiter });
  const { entries, isTruncated } = await listed(exchange, { prefix, delimiter, max, after, versions: true });
  const last = entries.at(-1);
  sendXml(exchange, 'ListVersionsResult', {
    ...{
      Name: exchange.bucket.name,
      Prefix: encode(prefix),
      KeyMarker: encode(marker ?? ''),
      VersionIdMarker: versionMarker ?? '',
    },
    ...(isTruncated &&
      last && {
        NextKeyMarker: encode(last.common_prefix ?? last.key),
        NextVersionIdMarker: last.common_prefix === null ? last.version_id : null,
      }),
    ...{
      MaxKeys: max,
      Delimiter: delimiter && encode(delimiter),
      EncodingType: encodingType,
      IsTruncated: isTruncated,
    },
    ...versionRows(exchange, entries, encode),
    CommonPrefixes: groups(entries, encode),
  });
}

function versionRows(exchange: Exchange, entries: readonly ListedVersion[], encode: ListQuery['encode']): XmlElements {
  const owner = bucketOwner(exchange);
  const versions = entries.filter(({ common_prefix }) => common_prefix === null);
  const row = ({ key, version_id, is_latest }: ListedVersion): XmlElements => ({
    ...{ Key: encode(key), VersionId: version_id, IsLatest: is_latest },
  });
  return {
    Version: versions
      .filter((entry) => !entry.is_delete_marker)
      .map((entry) => ({ ...row(entry), ...shown(entry), ...owner })),
    DeleteMarker: versions
      .filter((entry) => entry.is_delete_marker)
      .map((entry) => ({ ...row(entry), LastModified: entry.modified_at, ...owner })),
  };
}

/** The project owns all objects and uploads of a bucket. */
export function bucketOwner({ bucket }: Pick<Exchange, 'bucket'>): XmlElements {
  return { Owner: { ID: bucket.project_id } };
}

type After = { key: string; position: string } | null;

async function listed(
  { catalog, bucket }: Exchange,
  query: { prefix: string; delimiter: string | null; max: number; after: After; versions?: boolean },
): Promise<{ entries: ListedVersion[]; isTruncated: boolean }> {
  const { prefix, delimiter, max, after, versions = false } = query;
  if (max === 0) return { entries: [], isTruncated: false };
  const found = await catalog.list({ bucketId: bucket.id, prefix, delimiter, versions, after, limit: max + 1 });
  // The bucket may just have been deleted.
  if (!found.length && (await catalog.bucket(bucket.name, 'fresh'))?.id !== bucket.id)
    throw new S3Error('NoSuchBucket');
  return { entries: found.slice(0, max), isTruncated: found.length > max };
}

/** The position after a marker; a marker that is a group, as in NextMarker, or a key in one, skips the whole group. */
function afterMarker(marker: string | undefined, prefix: string, delimiter: string | null): After {
  if (!marker) return null;
  const isGroup =
    delimiter !== null && marker.startsWith(prefix) && marker.length > prefix.length && marker.endsWith(delimiter);
  return { key: marker, position: isGroup ? GROUP : LAST_VERSION };
}

async function afterVersion(
  { catalog, bucket }: Exchange,
  marker: string | undefined,
  versionId: string | undefined,
  { prefix, delimiter }: { prefix: string; delimiter: string | null },
): Promise<After> {
  if (marker === undefined || versionId === undefined) return afterMarker(marker, prefix, delimiter);
  const version = await catalog.find(bucket.id, marker, versionId);
  return { key: marker, position: version ? String(version.id) : LAST_VERSION };
}

function shown({ etag, size, modified_at, checksum_algorithm, checksum_type }: ListedVersion): XmlElements {
  return {
    ...{
      LastModified: modified_at,
      ETag: `"${etag}"`,
      ChecksumAlgorithm: checksum_algorithm,
      ChecksumType: checksum_type,
    },
    ...{ Size: size, StorageClass: 'STANDARD' },
  };
}

function groups(entries: readonly ListedVersion[], encode: (text: string) => string): XmlElements[] {
  return entries.flatMap(({ common_prefix }) => (common_prefix === null ? [] : [{ Prefix: encode(common_prefix) }]));
}

function toToken({ common_prefix, key }: ListedVersion): string {
  return tokenOf(common_prefix === null ? [key] : [common_prefix, GROUP]);
}

function tokenOf(position: readonly string[]): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

/** @throws S3Error InvalidArgument */
function fromToken(token: string): After {
  try {
    const [key, position] = JSON.parse(Buffer.from(token, 'base64url').toString()) as [unknown, unknown];
    if (typeof key === 'string' && !key.includes('\0'))
      return { key, position: position === GROUP ? GROUP : LAST_VERSION };
  } catch {
    // An invalid token: see below.
  }
  throw new S3Error('InvalidArgument', 'The continuation token is not valid.');
}
