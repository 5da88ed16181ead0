// Parameters supported by each S3 operation: Amazon headers, conditions (RFC 9110 §13) and query parameters, named as
// in the Amazon S3 API Reference. An unsupported parameter is rejected, never ignored.
import type { ServedBucket } from './catalog';
import { ABSENT_SETTINGS } from './settings/absent_settings';
import { GRANT_HEADERS } from './settings/acl';
import { CUSTOMER_HEADERS, SOURCE_CUSTOMER_HEADERS } from './settings/customer_keys';
import { S3Error } from './errors';
import { headerOf, queryOf, type S3Request } from './request';

interface Operation {
  headers?: readonly string[];
  query?: readonly string[];
  /** The body may have a checksum. */
  body?: true;
}

const ENCODING = ['encoding-type'];
const LIST = [...ENCODING, 'prefix', 'delimiter', 'max-keys'];
const READ = [
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'x-amz-checksum-mode',
  ...CUSTOMER_HEADERS,
];
const OVERRIDES = ['type', 'cache-control', 'disposition', 'encoding', 'language'].map((name) =>
  name === 'cache-control' ? `response-${name}` : `response-content-${name}`,
);
const READ_QUERY = ['versionId', 'partNumber', 'response-expires', ...OVERRIDES];
const WRITE = ['if-match', 'if-none-match'];
const LOCK = ['mode', 'retain-until-date', 'legal-hold'].map((name) => `x-amz-object-lock-${name}`);
const DESCRIBE = [
  'x-amz-server-side-encryption',
  ...CUSTOMER_HEADERS,
  ...LOCK,
  ...GRANT_HEADERS,
  ...['x-amz-acl', 'x-amz-tagging', 'x-amz-storage-class', 'x-amz-website-redirect-location'],
];
const SOURCE = ['match', 'none-match', 'modified-since', 'unmodified-since'].map(
  (name) => `x-amz-copy-source-if-${name}`,
);
const COPY = ['x-amz-copy-source', 'x-amz-source-expected-bucket-owner', ...SOURCE, ...SOURCE_CUSTOMER_HEADERS];
const UPLOAD = ['uploadId', 'partNumber'];
const ATTRIBUTES = ['x-amz-optional-object-attributes'];

/** By method, level and selecting query parameter; ` copy` marks requests with a source. */
const OPERATIONS: Record<string, Operation> = {
  'GET service': { query: ['prefix', 'max-buckets', 'continuation-token', 'bucket-region'] },
  'PUT bucket': {
    headers: ['x-amz-acl', ...GRANT_HEADERS, 'x-amz-bucket-object-lock-enabled', 'x-amz-object-ownership'],
    body: true,
  },
  'DELETE bucket': {},
  'HEAD bucket': {},
  'GET bucket': {
    headers: ATTRIBUTES,
    query: [...LIST, 'list-type', 'marker', 'start-after', 'continuation-token', 'fetch-owner'],
  },
  'GET bucket?versions': { headers: ATTRIBUTES, query: [...LIST, 'key-marker', 'version-id-marker'] },
  'GET bucket?uploads': { query: [...ENCODING, 'prefix', 'max-uploads', 'key-marker', 'upload-id-marker'] },
  'POST bucket?delete': { headers: ['x-amz-bypass-governance-retention'], body: true },
  'GET bucket?location': {},
  'GET bucket?versioning': {},
  'PUT bucket?versioning': { body: true },
  'GET bucket?cors': {},
  'PUT bucket?cors': { body: true },
  'DELETE bucket?cors': {},
  'GET bucket?lifecycle': {},
  'PUT bucket?lifecycle': { headers: ['x-amz-transition-default-minimum-object-size'], body: true },
  'DELETE bucket?lifecycle': {},
  'GET bucket?policy': {},
  'PUT bucket?policy': { headers: ['x-amz-confirm-remove-self-bucket-access'], body: true },
  'DELETE bucket?policy': {},
  'GET bucket?policyStatus': {},
  'GET bucket?website': {},
  'PUT bucket?website': { body: true },
  'DELETE bucket?website': {},
  'GET bucket?acl': {},
  'PUT bucket?acl': { headers: ['x-amz-acl', ...GRANT_HEADERS], body: true },
  'GET bucket?publicAccessBlock': {},
  'PUT bucket?publicAccessBlock': { body: true },
  'DELETE bucket?publicAccessBlock': {},
  'GET bucket?ownershipControls': {},
  'PUT bucket?ownershipControls': { body: true },
  'DELETE bucket?ownershipControls': {},
  ...Object.fromEntries(
    Object.entries(ABSENT_SETTINGS).flatMap(([name, { missing }]) => [
      [`GET bucket?${name}`, {}],
      [`PUT bucket?${name}`, { body: true }],
      ...(missing ? [[`DELETE bucket?${name}`, {}]] : []),
    ]),
  ),
  'GET bucket?object-lock': {},
  'PUT bucket?object-lock': { body: true },
  'GET object': { headers: READ, query: READ_QUERY },
  'HEAD object': { headers: READ, query: READ_QUERY },
  'PUT object': { headers: [...WRITE, ...DESCRIBE], body: true },
  'PUT object copy': {
    headers: [
      ...[...WRITE, ...DESCRIBE, ...COPY, 'x-amz-metadata-directive', 'x-amz-tagging-directive'],
      'x-amz-checksum-algorithm',
    ],
  },
  'DELETE object': {
    headers: [
      ...['if-match', 'x-amz-if-match-last-modified-time', 'x-amz-if-match-size'],
      'x-amz-bypass-governance-retention',
    ],
    query: ['versionId'],
  },
  'POST object?uploads': { headers: [...DESCRIBE, 'x-amz-checksum-algorithm', 'x-amz-checksum-type'] },
  'GET object?uploadId': { headers: CUSTOMER_HEADERS, query: ['uploadId', 'max-parts', 'part-number-marker'] },
  'PUT object?uploadId': { headers: CUSTOMER_HEADERS, query: UPLOAD, body: true },
  'PUT object?uploadId copy': { headers: [...COPY, ...CUSTOMER_HEADERS, 'x-amz-copy-source-range'], query: UPLOAD },
  'POST object?uploadId': {
    headers: [...WRITE, ...CUSTOMER_HEADERS, 'x-amz-checksum-type', 'x-amz-mp-object-size'],
    query: ['uploadId'],
    body: true,
  },
  'DELETE object?uploadId': { query: ['uploadId'] },
  'GET object?tagging': { query: ['versionId'] },
  'PUT object?tagging': { query: ['versionId'], body: true },
  'DELETE object?tagging': { query: ['versionId'] },
  'GET object?acl': { query: ['versionId'] },
  'PUT object?acl': { headers: ['x-amz-acl', ...GRANT_HEADERS], query: ['versionId'], body: true },
  'GET object?retention': { query: ['versionId'] },
  'PUT object?retention': { headers: ['x-amz-bypass-governance-retention'], query: ['versionId'], body: true },
  'GET object?legal-hold': { query: ['versionId'] },
  'PUT object?legal-hold': { query: ['versionId'], body: true },
  'GET object?attributes': {
    headers: [...CUSTOMER_HEADERS, 'x-amz-object-attributes', 'x-amz-max-parts', 'x-amz-part-number-marker'],
    query: ['versionId'],
  },
};

/** Headers of every request: signature, transfer and owner. */
const GENERAL = [
  ...['x-amz-date', 'x-amz-content-sha256', 'x-amz-decoded-content-length', 'x-amz-trailer', 'x-amz-user-agent'],
  ...['x-amz-cf-id', 'x-amz-expected-bucket-owner', 'x-amz-request-payer'],
];
const CHECKSUMS = /^x-amz-(sdk-checksum-algorithm|checksum-[a-z0-9]+)$/;
const SIGNING = /^x-amz-(algorithm|credential|date|expires|signedheaders|signature|content-sha256)$/;
/** Headers named like body checksums that are not. */
const NO_CHECKSUMS = ['x-amz-checksum-mode', 'x-amz-checksum-type'];
const USER = 'x-amz-meta-';
const TAKES_USER = ['PUT object', 'PUT object copy', 'POST object?uploads'];
const CONDITIONS = ['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'];
/**
 * Values that are accepted because they change nothing here: there is no requester-pays, and no other storage location.
 */
const VALUES: Record<string, readonly string[]> = {
  'x-amz-request-payer': ['requester'],
  'x-amz-bypass-governance-retention': ['true', 'false'],
  'x-amz-confirm-remove-self-bucket-access': ['true', 'false'],
  'x-amz-optional-object-attributes': ['RestoreStatus'],
  'x-amz-transition-default-minimum-object-size': ['varies_by_storage_class', 'all_storage_classes_128K'],
  'x-amz-checksum-mode': ['ENABLED'],
  'x-amz-metadata-directive': ['COPY', 'REPLACE'],
  'x-amz-tagging-directive': ['COPY', 'REPLACE'],
  'x-amz-storage-class': ['STANDARD'],
  'x-amz-server-side-encryption': ['AES256'],
  'x-amz-object-lock-mode': ['GOVERNANCE', 'COMPLIANCE'],
  'x-amz-object-lock-legal-hold': ['ON', 'OFF'],
};
const REFUSED_VALUES = ['x-amz-storage-class', 'x-amz-server-side-encryption'];
/** Query parameters with a meaning in S3. Others, such as `x-id` of the SDKs, are ignored. */
const MEANT: ReadonlySet<string> = new Set([
  ...Object.values(OPERATIONS).flatMap(({ query = [] }) => query),
  ...Object.keys(OPERATIONS).flatMap((name) => /\?([\w-]+)/.exec(name)?.slice(1) ?? []),
  ...['abac', 'analytics', 'intelligent-tiering', 'inventory'],
  ...['metadataConfiguration', 'metadataInventoryTable', 'metadataJournalTable', 'metadataTable', 'metrics'],
  ...['renameObject', 'restore', 'select', 'select-type', 'session', 'torrent'],
  ...['max-directory-buckets'],
]);

/**
 * Rejects parameters that the operation does not support.
 * @param sub the query parameter that selects the operation; '' for the bucket or object itself
 * @throws S3Error NotImplemented, InvalidArgument; MethodNotAllowed where there is no such operation
 */
export function requireHonoured(request: S3Request, level: 'service' | 'bucket' | 'object', sub: string): void {
  const isCopy = request.method === 'PUT' && headerOf(request, 'x-amz-copy-source') !== undefined;
  const name = `${request.method} ${level}${sub && `?${sub}`}${isCopy && level === 'object' ? ' copy' : ''}`;
  const operation = OPERATIONS[name] ?? OPERATIONS[name.replace(/ copy$/, '')];
  const { headers = [], query = [], body } = operation ?? {};
  const extra = request.query.find(([one]) => one !== sub && MEANT.has(one) && !query.includes(one));
  if (extra) throw new S3Error('NotImplemented', `${extra[0]} in the query is not offered in this request.`);
  if (!operation) throw new S3Error('MethodNotAllowed');
  for (const header of Object.keys(request.raw.headers)) {
    if (!header.startsWith('x-amz-') && !CONDITIONS.includes(header)) continue;
    const isTaken =
      GENERAL.includes(header) ||
      headers.includes(header) ||
      (header.startsWith(USER) && TAKES_USER.includes(name)) ||
      (body && CHECKSUMS.test(header) && !NO_CHECKSUMS.includes(header));
    if (!isTaken) throw new S3Error('NotImplemented', `The header ${header} is not offered in this request.`);
    requireValue(header, headerOf(request, header) ?? '');
  }
}

function requireValue(header: string, value: string): void {
  const values = VALUES[header];
  if (!values || values.some((one) => one.toLowerCase() === value.toLowerCase())) return;
  const code = REFUSED_VALUES.includes(header) ? 'NotImplemented' : 'InvalidArgument';
  throw new S3Error(code, `${header} can only be ${values.join(' or ')}.`);
}

/**
 * Treats signed headers that a presigned URL carries in its query as headers. Checksums are excluded: the signer did
 * not have the body.
 */
export function applyHoistedHeaders(request: S3Request): void {
  if (queryOf(request, 'X-Amz-Signature') === undefined) return;
  for (const [name, value] of request.query) {
    const header = name.toLowerCase();
    if (header.startsWith('x-amz-') && !SIGNING.test(header) && !CHECKSUMS.test(header))
      request.raw.headers[header] ??= value;
  }
}

/** Checks x-amz-expected-bucket-owner, or its variant for a copy source. @throws S3Error AccessDenied */
export function requireOwner(request: S3Request, { project_id }: ServedBucket, header: string): void {
  const expected = headerOf(request, header);
  if (expected !== undefined && expected !== project_id)
    throw new S3Error('AccessDenied', 'The bucket does not belong to the expected account.');
}

/** Header overrides need a signature: otherwise anyone could serve an object as a web page. @throws S3Error */
export function requireOverrides(request: S3Request, isSigned: boolean): void {
  for (const name of ['response-expires', ...OVERRIDES]) {
    const value = queryOf(request, name);
    if (value === undefined) continue;
    if (!isSigned) throw new S3Error('InvalidRequest', `${name} needs a signed request.`);
    if (!/^[\x20-\x7e]*$/.test(value)) throw new S3Error('InvalidArgument', `${name} has characters beyond ASCII.`);
  }
}
