// Every header and member of the query that the API of Amazon S3 defines, in every operation that is offered: honoured
// by it, or refused. Nothing is passed over.
import { sendSigned, startSignedS3, type Call, type SignedWorld } from '../support/object_storage/s3_signed';

let world: SignedWorld;

beforeAll(async () => (world = await startSignedS3()), 120_000);
afterAll(() => world.close());

function send([method, path, own = {}]: Call, headers: Record<string, string> = {}, body = '') {
  const at = path.startsWith('//') ? path.slice(1) : `/${world.bucketName}${path}`;
  return sendSigned(world, [method, at, { ...own, ...headers }], body);
}

const SOURCE = { 'x-amz-copy-source': 'BUCKET/a' };
/** By their names in the API Reference. */
const OPERATIONS: Record<string, Call> = {
  ListBuckets: ['GET', '//'],
  HeadBucket: ['HEAD', ''],
  ListObjects: ['GET', ''],
  ListObjectsV2: ['GET', '?list-type=2'],
  ListObjectVersions: ['GET', '?versions'],
  ListMultipartUploads: ['GET', '?uploads'],
  DeleteObjects: ['POST', '?delete'],
  GetBucketLocation: ['GET', '?location'],
  ...Object.fromEntries(
    [
      ...['GetBucketVersioning', 'PutBucketVersioning', 'GetBucketCors', 'PutBucketCors', 'DeleteBucketCors'],
      ...['GetBucketLifecycle', 'PutBucketLifecycle', 'DeleteBucketLifecycle', 'GetBucketPolicy', 'PutBucketPolicy'],
      ...['DeleteBucketPolicy', 'GetBucketWebsite', 'PutBucketWebsite', 'DeleteBucketWebsite', 'GetBucketAcl'],
      ...['PutBucketAcl', 'GetBucketTagging', 'GetBucketEncryption', 'DeleteBucketEncryption'],
      ...['GetBucketLogging', 'PutBucketLogging', 'GetBucketAccelerate', 'GetBucketReplication'],
    ].map((name): [string, Call] => {
      const [, verb = '', what = ''] = /^(Get|Put|Delete)Bucket(\w+)$/.exec(name) ?? [];
      return [name, [verb.toUpperCase(), `?${what.toLowerCase()}`]];
    }),
  ),
  GetBucketRequestPayment: ['GET', '?requestPayment'],
  PutBucketRequestPayment: ['PUT', '?requestPayment'],
  CreateBucket: ['PUT', '//never-made'],
  DeleteBucket: ['DELETE', ''],
  GetPublicAccessBlock: ['GET', '?publicAccessBlock'],
  PutPublicAccessBlock: ['PUT', '?publicAccessBlock'],
  DeletePublicAccessBlock: ['DELETE', '?publicAccessBlock'],
  GetBucketOwnershipControls: ['GET', '?ownershipControls'],
  PutBucketOwnershipControls: ['PUT', '?ownershipControls'],
  DeleteBucketOwnershipControls: ['DELETE', '?ownershipControls'],
  GetBucketPolicyStatus: ['GET', '?policyStatus'],
  GetObjectLockConfiguration: ['GET', '?object-lock'],
  PutObjectLockConfiguration: ['PUT', '?object-lock'],
  GetObject: ['GET', '/a'],
  HeadObject: ['HEAD', '/a'],
  PutObject: ['PUT', '/a'],
  CopyObject: ['PUT', '/a', SOURCE],
  DeleteObject: ['DELETE', '/a'],
  GetObjectTagging: ['GET', '/a?tagging'],
  PutObjectTagging: ['PUT', '/a?tagging'],
  DeleteObjectTagging: ['DELETE', '/a?tagging'],
  GetObjectAcl: ['GET', '/a?acl'],
  PutObjectAcl: ['PUT', '/a?acl'],
  GetObjectAttributes: ['GET', '/a?attributes'],
  GetObjectRetention: ['GET', '/a?retention'],
  PutObjectRetention: ['PUT', '/a?retention'],
  GetObjectLegalHold: ['GET', '/a?legal-hold'],
  PutObjectLegalHold: ['PUT', '/a?legal-hold'],
  CreateMultipartUpload: ['POST', '/a?uploads'],
  UploadPart: ['PUT', '/a?uploadId=x&partNumber=1'],
  UploadPartCopy: ['PUT', '/a?uploadId=x&partNumber=1', SOURCE],
  CompleteMultipartUpload: ['POST', '/a?uploadId=x'],
  AbortMultipartUpload: ['DELETE', '/a?uploadId=x'],
  ListParts: ['GET', '/a?uploadId=x'],
};
const ALL = Object.keys(OPERATIONS);
const READS = ['GetObject', 'HeadObject'];
const COPIES = ['CopyObject', 'UploadPartCopy'];
const MAKES = ['PutObject', 'CopyObject', 'CreateMultipartUpload'];
const WRITES = ['PutObject', 'CopyObject', 'CompleteMultipartUpload'];
const BODIES = [
  ...['DeleteObjects', 'PutBucketVersioning', 'PutBucketCors', 'PutBucketLifecycle', 'PutBucketPolicy'],
  ...['PutBucketWebsite', 'PutBucketAcl', 'PutObject', 'PutObjectTagging', 'PutObjectAcl', 'UploadPart'],
  ...['CompleteMultipartUpload', 'PutObjectLockConfiguration', 'PutObjectRetention', 'PutObjectLegalHold'],
  ...['CreateBucket', 'PutPublicAccessBlock', 'PutBucketOwnershipControls', 'PutBucketLogging'],
  'PutBucketRequestPayment',
];
const LISTS = ['ListObjects', 'ListObjectsV2', 'ListObjectVersions'];
const SSE = 'x-amz-server-side-encryption';
const LOCK = 'x-amz-object-lock';
/** Operations that a key of the client opens objects or parts for. */
const KEYED = [
  ...[...READS, ...MAKES, 'GetObjectAttributes'],
  ...['UploadPart', 'UploadPartCopy', 'CompleteMultipartUpload', 'ListParts'],
];

/** Value, and the operations that honour it; none: it is offered nowhere. */
const HEADERS: Record<string, [string, readonly string[]]> = {
  'if-match': ['"x"', [...READS, ...WRITES, 'DeleteObject']],
  'if-none-match': ['"x"', [...READS, ...WRITES]],
  'if-modified-since': ['Sat, 01 Jan 2000 00:00:00 GMT', READS],
  'if-unmodified-since': ['Sat, 01 Jan 2000 00:00:00 GMT', READS],
  'x-amz-acl': ['private', [...MAKES, 'PutObjectAcl', 'PutBucketAcl', 'CreateBucket']],
  'x-amz-bucket-object-lock-enabled': ['true', ['CreateBucket']],
  'x-amz-bucket-object-lock-token': ['x', []],
  'x-amz-bypass-governance-retention': ['true', ['DeleteObject', 'DeleteObjects', 'PutObjectRetention']],
  'x-amz-checksum-algorithm': ['CRC32', ['CopyObject', 'CreateMultipartUpload', ...BODIES]],
  ...Object.fromEntries(
    ['crc32', 'crc32c', 'crc64nvme', 'md5', 'sha1', 'sha256', 'sha512', 'xxhash3', 'xxhash64', 'xxhash128'].map(
      (name) => [`x-amz-checksum-${name}`, ['AAAAAA==', BODIES]],
    ),
  ),
  'x-amz-checksum-mode': ['ENABLED', READS],
  'x-amz-checksum-type': ['COMPOSITE', ['CreateMultipartUpload', 'CompleteMultipartUpload']],
  'x-amz-client-token': ['x', []],
  'x-amz-confirm-remove-self-bucket-access': ['true', ['PutBucketPolicy']],
  'x-amz-copy-source-if-match': ['"x"', COPIES],
  'x-amz-copy-source-if-modified-since': ['Sat, 01 Jan 2000 00:00:00 GMT', COPIES],
  'x-amz-copy-source-if-none-match': ['"x"', COPIES],
  'x-amz-copy-source-if-unmodified-since': ['Sat, 01 Jan 2000 00:00:00 GMT', COPIES],
  'x-amz-copy-source-range': ['bytes=0-1', ['UploadPartCopy']],
  [`x-amz-copy-source-${SSE.slice(6)}-customer-algorithm`]: ['AES256', COPIES],
  [`x-amz-copy-source-${SSE.slice(6)}-customer-key`]: ['AAAA', COPIES],
  [`x-amz-copy-source-${SSE.slice(6)}-customer-key-md5`]: ['AAAA', COPIES],
  'x-amz-create-session-mode': ['ReadOnly', []],
  'x-amz-expected-bucket-owner': ['123456789012', ALL],
  'x-amz-grant-full-control': ['id=x', []],
  'x-amz-grant-read': ['id=x', []],
  'x-amz-grant-read-acp': ['id=x', []],
  'x-amz-grant-write': ['id=x', []],
  'x-amz-grant-write-acp': ['id=x', []],
  'x-amz-if-match-initiated-time': ['Sat, 01 Jan 2000 00:00:00 GMT', []],
  'x-amz-if-match-last-modified-time': ['Sat, 01 Jan 2000 00:00:00 GMT', ['DeleteObject']],
  'x-amz-if-match-size': ['1', ['DeleteObject']],
  'x-amz-max-parts': ['1', ['GetObjectAttributes']],
  'x-amz-meta-color': ['blue', MAKES],
  'x-amz-metadata-directive': ['REPLACE', ['CopyObject']],
  'x-amz-mfa': ['1 2', []],
  'x-amz-mp-object-size': ['1', ['CompleteMultipartUpload']],
  'x-amz-object-attributes': ['ETag', ['GetObjectAttributes']],
  [`${LOCK}-legal-hold`]: ['ON', MAKES],
  [`${LOCK}-mode`]: ['GOVERNANCE', MAKES],
  [`${LOCK}-retain-until-date`]: ['2100-01-01T00:00:00Z', MAKES],
  'x-amz-object-ownership': ['ObjectWriter', ['CreateBucket']],
  'x-amz-optional-object-attributes': ['RestoreStatus', LISTS],
  'x-amz-part-number-marker': ['1', ['GetObjectAttributes']],
  'x-amz-rename-source': ['/x', []],
  'x-amz-rename-source-if-match': ['"x"', []],
  'x-amz-request-payer': ['requester', ALL],
  'x-amz-sdk-checksum-algorithm': ['CRC32', BODIES],
  [SSE]: ['AES256', MAKES],
  [`${SSE}-aws-kms-key-id`]: ['x', []],
  [`${SSE}-bucket-key-enabled`]: ['true', []],
  [`${SSE}-context`]: ['x', []],
  [`${SSE}-customer-algorithm`]: ['AES256', KEYED],
  [`${SSE}-customer-key`]: ['AAAA', KEYED],
  [`${SSE}-customer-key-md5`]: ['AAAA', KEYED],
  'x-amz-security-token': ['x', []],
  'x-amz-skip-destination-validation': ['true', []],
  'x-amz-source-expected-bucket-owner': ['123456789012', COPIES],
  'x-amz-storage-class': ['STANDARD', MAKES],
  'x-amz-tagging': ['a=b', MAKES],
  'x-amz-tagging-directive': ['REPLACE', ['CopyObject']],
  'x-amz-transition-default-minimum-object-size': ['varies_by_storage_class', ['PutBucketLifecycle']],
  'x-amz-website-redirect-location': ['/b', MAKES],
  'x-amz-write-offset-bytes': ['1', []],
  'x-amz-of-tomorrow': ['x', []],
};

/** As of headers. */
const QUERY: Record<string, readonly string[]> = {
  'bucket-region': ['ListBuckets'],
  'continuation-token': ['ListBuckets', 'ListObjects', 'ListObjectsV2'],
  delimiter: LISTS,
  'encoding-type': [...LISTS, 'ListMultipartUploads'],
  'fetch-owner': ['ListObjects', 'ListObjectsV2'],
  'key-marker': ['ListObjectVersions', 'ListMultipartUploads'],
  marker: ['ListObjects', 'ListObjectsV2'],
  'max-buckets': ['ListBuckets'],
  'max-directory-buckets': [],
  'max-keys': LISTS,
  'max-parts': ['ListParts'],
  'max-uploads': ['ListMultipartUploads'],
  'part-number-marker': ['ListParts'],
  partNumber: [...READS, 'UploadPart', 'UploadPartCopy'],
  prefix: ['ListBuckets', ...LISTS, 'ListMultipartUploads'],
  'response-cache-control': READS,
  'response-content-disposition': READS,
  'response-content-encoding': READS,
  'response-content-language': READS,
  'response-content-type': READS,
  'response-expires': READS,
  'start-after': ['ListObjects', 'ListObjectsV2'],
  'upload-id-marker': ['ListMultipartUploads'],
  'version-id-marker': ['ListObjectVersions'],
  versionId: [
    ...[...READS, 'DeleteObject', 'GetObjectTagging', 'PutObjectTagging', 'DeleteObjectTagging', 'GetObjectAcl'],
    ...['PutObjectAcl', 'GetObjectAttributes', 'GetObjectRetention', 'PutObjectRetention', 'GetObjectLegalHold'],
    'PutObjectLegalHold',
  ],
  restore: [],
  renameObject: [],
  analytics: [],
};

const isRefused = (status: number): boolean => status === 400 || status === 405 || status === 501;

test.each(Object.keys(OPERATIONS))(
  '%s refuses the headers that it does not honour',
  async (name) => {
    const [method, path, own] = OPERATIONS[name] as Call;
    const call: Call = [method, path, own && { 'x-amz-copy-source': `${world.bucketName}/a` }];
    const passedOver: string[] = [];
    for (const [header, [value, honouredBy]] of Object.entries(HEADERS)) {
      if (honouredBy.includes(name)) continue;
      const { status } = await send(call, { [header]: value });
      if (!isRefused(status)) passedOver.push(`${header}: ${status}`);
    }
    expect(passedOver).toEqual([]);
    expect(await send(['GET', '/a'])).toMatchObject({ status: 200 });
  },
  60_000,
);

test.each(Object.keys(OPERATIONS))(
  '%s refuses the members of the query that it does not honour',
  async (name) => {
    const [method, path, own] = OPERATIONS[name] as Call;
    const passedOver: string[] = [];
    for (const [member, honouredBy] of Object.entries(QUERY)) {
      if (honouredBy.includes(name)) continue;
      const more = `${path}${path.includes('?') ? '&' : '?'}${member}=1`;
      const call: Call = [method, more, own && { 'x-amz-copy-source': `${world.bucketName}/a` }];
      const { status } = await send(call);
      if (!isRefused(status)) passedOver.push(`${member}: ${status}`);
    }
    expect(passedOver).toEqual([]);
    expect(await send(['GET', '/a'])).toMatchObject({ status: 200 });
  },
  60_000,
);
