// Header fields that are stored with an object and returned with it.
import type { ObjectMetadata, StoredObject } from '../../core/protocols/objects';
import { S3Error } from './errors';
import { customerKeyHeaders, encryptionOfRequest } from './settings/customer_keys';
import { headerOf, queryOf, type S3Request } from './request';
import { childElement, childElements, elementText, requireMembers, type XmlNode } from './xml';

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
const ENCRYPTION = 'x-amz-server-side-encryption';
const TYPE = 'application/octet-stream';
/** @throws S3Error MetadataTooLarge */
export function metadataOf(request: S3Request): ObjectMetadata {
  const headers: Record<string, string> = {};
  for (const name of KEPT) {
    const value = headerOf(request, name);
    const kept = name === 'content-encoding' ? value && withoutChunks(value) : value;
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
  return { headers, user, ...encryptionOfRequest(request) };
}

/** `aws-chunked` is the encoding of the transfer, not of the object. */
function withoutChunks(encoding: string): string {
  return encoding
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one.toLowerCase() !== 'aws-chunked')
    .join(', ');
}

/** @throws S3Error InvalidTag, MalformedXML */
export function tagsOfDocument(document: XmlNode): Record<string, string> {
  requireMembers(document, ['TagSet']);
  const set = childElement(document, 'TagSet');
  if (!set) throw new S3Error('MalformedXML');
  requireMembers(set, ['Tag'], ['Tag']);
  const tags = childElements(set, 'Tag');
  for (const tag of tags) requireMembers(tag, ['Key', 'Value']);
  return checkedTags(tags.map((tag) => [elementText(tag, 'Key') ?? '', elementText(tag, 'Value') ?? '']));
}

export function tagsOfHeader(request: S3Request): Record<string, string> | null {
  const text = headerOf(request, 'x-amz-tagging');
  return text === undefined ? null : checkedTags([...new URLSearchParams(text).entries()]);
}

/** @throws S3Error InvalidTag */
function checkedTags(pairs: readonly (readonly [string, string])[]): Record<string, string> {
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

/** Response headers of an object. */
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
  Object.assign(headers, encryptionHeaders(metadata, request));
  if (object.version_id !== 'null') headers['x-amz-version-id'] = object.version_id;
  if (object.tags) headers['x-amz-tagging-count'] = String(Object.keys(object.tags).length);
  // Overrides need a signature, except on websites, which ignore them.
  if (isSigned)
    for (const [query, name] of Object.entries(OVERRIDES)) {
      const value = queryOf(request, query);
      if (value !== undefined) headers[name] = value;
    }
  return headers;
}

/** Header fields of a response that say how the object is encrypted. */
export function encryptionHeaders(metadata: ObjectMetadata, request: S3Request): Record<string, string> {
  const { encryption } = metadata;
  return { ...(encryption && { [ENCRYPTION]: encryption }), ...customerKeyHeaders(request, metadata) };
}

export function checksumHeaders({ metadata }: Pick<StoredObject, 'metadata'>): Record<string, string> {
  const { checksum_algorithm, checksum, checksum_type } = metadata;
  if (!checksum_algorithm || !checksum) return {};
  return {
    [`x-amz-checksum-${checksum_algorithm.toLowerCase()}`]: checksum,
    'x-amz-checksum-type': checksum_type ?? 'FULL_OBJECT',
  };
}
