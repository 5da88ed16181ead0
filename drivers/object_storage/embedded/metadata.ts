// Headers that are kept with an object, and how they come back.
import type { ObjectMetadata, StoredObject } from '../../../core/objects';
import { S3Error } from './errors';
import { headerOf, queryOf, type S3Request } from './request';

const KEPT = [
  'content-type',
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'expires',
  'x-amz-website-redirect-location',
];
const USER = 'x-amz-meta-';
const USER_BYTES_MAX = 2048;
const TAGS_MAX = 10;
const TYPE = 'application/octet-stream';
/** Functions that would be a promise: refused rather than ignored. */
const NOT_OFFERED = [
  'x-amz-server-side-encryption',
  'x-amz-server-side-encryption-customer-algorithm',
  'x-amz-object-lock-mode',
  'x-amz-object-lock-legal-hold',
  'x-amz-object-lock-retain-until-date',
  'x-amz-grant-read',
  'x-amz-grant-full-control',
  'x-amz-grant-write-acp',
  'x-amz-grant-read-acp',
];

/** @throws S3Error NotImplemented, InvalidArgument */
export function requireOffered(request: S3Request): void {
  const name = NOT_OFFERED.find((header) => headerOf(request, header) !== undefined);
  if (name) throw new S3Error('NotImplemented', `The header ${name} is not offered.`);
  const storage = headerOf(request, 'x-amz-storage-class');
  if (storage !== undefined && storage !== 'STANDARD')
    throw new S3Error('NotImplemented', 'The only storage class is STANDARD.');
}

/** @throws S3Error MetadataTooLarge */
export function metadataOf(request: S3Request): ObjectMetadata {
  const headers: Record<string, string> = {};
  for (const name of KEPT) {
    const value = headerOf(request, name);
    const kept = name === 'content-encoding' ? value?.replace(/\s*aws-chunked\s*,?\s*/i, '') : value;
    if (kept) headers[name] = kept;
  }
  const user: Record<string, string> = {};
  let bytes = 0;
  for (const name of Object.keys(request.raw.headers).filter((header) => header.startsWith(USER))) {
    const value = headerOf(request, name) ?? '';
    user[name.slice(USER.length)] = value;
    bytes += name.length - USER.length + value.length;
  }
  if (bytes > USER_BYTES_MAX) throw new S3Error('MetadataTooLarge');
  return { headers, user };
}

/** Canned access: everything but private and public-read would be a promise. @throws S3Error NotImplemented */
export function isPublicRequest(request: S3Request): boolean {
  const acl = headerOf(request, 'x-amz-acl') ?? 'private';
  if (['private', 'bucket-owner-full-control', 'bucket-owner-read'].includes(acl)) return false;
  if (acl === 'public-read') return true;
  throw new S3Error('NotImplemented', 'The canned ACLs are private and public-read.');
}

export function tagsOfHeader(request: S3Request): Record<string, string> | null {
  const text = headerOf(request, 'x-amz-tagging');
  return text === undefined ? null : checkedTags([...new URLSearchParams(text).entries()]);
}

/** @throws S3Error InvalidTag */
export function checkedTags(pairs: readonly (readonly [string, string])[]): Record<string, string> {
  const tags = Object.fromEntries(pairs);
  const isValid = pairs.every(([key, value]) => key.length > 0 && key.length <= 128 && value.length <= 256);
  if (!isValid || pairs.length > TAGS_MAX || Object.keys(tags).length < pairs.length) throw new S3Error('InvalidTag');
  return tags;
}

const OVERRIDES: Record<string, string> = {
  'response-content-type': 'content-type',
  'response-cache-control': 'cache-control',
  'response-content-disposition': 'content-disposition',
  'response-content-encoding': 'content-encoding',
  'response-content-language': 'content-language',
  'response-expires': 'expires',
};

/** The headers of a response that shows an object. */
export function objectHeaders(object: StoredObject, request: S3Request, isSigned: boolean): Record<string, string> {
  const { metadata } = object;
  const headers: Record<string, string> = {
    'content-type': TYPE,
    ...metadata.headers,
    etag: `"${object.etag}"`,
    'last-modified': new Date(object.modified_at).toUTCString(),
    'accept-ranges': 'bytes',
  };
  for (const [name, value] of Object.entries(metadata.user)) headers[USER + name] = value;
  if (object.version_id !== 'null') headers['x-amz-version-id'] = object.version_id;
  if (object.tags) headers['x-amz-tagging-count'] = String(Object.keys(object.tags).length);
  // Only for those who have signed: else anybody could make a page of a text.
  if (isSigned)
    for (const [query, name] of Object.entries(OVERRIDES)) {
      const value = queryOf(request, query);
      if (value !== undefined && /^[\x20-\x7e]*$/.test(value)) headers[name] = value;
    }
  return headers;
}

export function checksumHeaders({ metadata }: Pick<StoredObject, 'metadata'>): Record<string, string> {
  const { checksum_algorithm, checksum, checksum_type } = metadata;
  if (!checksum_algorithm || !checksum) return {};
  return {
    [`x-amz-checksum-${checksum_algorithm.toLowerCase()}`]: checksum,
    'x-amz-checksum-type': checksum_type ?? 'FULL_OBJECT',
  };
}
