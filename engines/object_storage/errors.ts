// Error codes of S3.
import { isDiskFull } from '../../core/driver';
import { ObjectRefused, type Refusal } from '../../core/protocols/objects';

const STATUSES = {
  AccessControlListNotSupported: [400, 'The bucket does not allow ACLs (BucketOwnerEnforced).'],
  AccessDenied: [403, 'Access denied.'],
  AuthorizationHeaderMalformed: [400, 'The authorization that you provided is malformed.'],
  AuthorizationQueryParametersError: [400, 'The authorization in the query is malformed.'],
  BadDigest: [400, 'The checksum that you sent does not match the content that was received.'],
  BucketAlreadyExists: [409, 'The name belongs to a bucket of somebody else. Names are unique on the whole platform.'],
  BucketAlreadyOwnedByYou: [409, 'The bucket exists already, and you own it.'],
  BucketNotEmpty: [409, 'The bucket has objects, versions or delete markers.'],
  EntityTooLarge: [400, 'The upload is larger than an object may be in one request.'],
  EntityTooSmall: [400, 'A part other than the last one is smaller than 5 MiB.'],
  IncompleteBody: [400, 'The body is shorter than its announced length.'],
  InternalError: [500, 'The request failed because of an internal error. Try again.'],
  InvalidAccessKeyId: [403, 'The access key does not exist, is disabled, or has expired.'],
  InvalidArgument: [400, 'An argument is not valid.'],
  InvalidBucketAclWithBlockPublicAccessError: [400, 'New buckets block public ACLs.'],
  InvalidBucketAclWithObjectOwnership: [
    400,
    'A bucket whose objects have no ACLs (BucketOwnerEnforced) has none itself.',
  ],
  InvalidBucketName: [400, 'The name must have 3 to 63 lower-case letters, digits and hyphens.'],
  InvalidBucketState: [409, 'The bucket has object lock, which needs versioning.'],
  InvalidDigest: [400, 'The Content-MD5 or checksum value is not valid.'],
  InvalidEncryptionAlgorithmError: [400, 'The encryption algorithm can only be AES256.'],
  InvalidLocationConstraint: [400, 'This installation has no such region.'],
  InvalidPart: [400, 'One of the parts was not found, or its entity tag does not match.'],
  InvalidPartNumber: [416, 'The object has no part of this number.'],
  InvalidPartOrder: [400, 'The parts are not in ascending order.'],
  InvalidPolicyDocument: [400, 'The policy of the form is not valid.'],
  InvalidRange: [416, 'The range lies outside of the object.'],
  InvalidRequest: [400, 'The request is not valid.'],
  InvalidRetentionPeriod: [400, 'Retention is for 1 to 36500 days, or 1 to 100 years.'],
  InvalidTag: [400, 'The tags are not valid.'],
  InvalidURI: [400, 'The URI cannot be decoded.'],
  KeyTooLongError: [400, 'The key is longer than 1024 bytes.'],
  MalformedACLError: [400, 'The ACL is not well-formed.'],
  MalformedPOSTRequest: [400, 'The body is not a well-formed multipart/form-data document.'],
  MalformedPolicy: [400, 'The policy is not valid.'],
  MalformedXML: [400, 'The XML is not well-formed, or not what this request expects.'],
  MetadataTooLarge: [400, 'The user metadata is larger than 2 KiB.'],
  MethodNotAllowed: [405, 'The method is not allowed for this resource.'],
  MissingContentLength: [411, 'The header Content-Length is missing.'],
  NoSuchBucket: [404, 'The bucket does not exist.'],
  NoSuchBucketPolicy: [404, 'The bucket has no policy.'],
  NoSuchObjectLockConfiguration: [404, 'The version has no such lock.'],
  NoSuchCORSConfiguration: [404, 'The bucket has no CORS rules.'],
  NoSuchKey: [404, 'The object does not exist.'],
  NoSuchLifecycleConfiguration: [404, 'The bucket has no lifecycle rules.'],
  NoSuchPublicAccessBlockConfiguration: [404, 'The bucket has no public access block.'],
  NoSuchTagSet: [404, 'The bucket has no tags.'],
  NoSuchUpload: [404, 'The upload does not exist: it may have been completed or aborted.'],
  NoSuchVersion: [404, 'The version does not exist.'],
  NoSuchWebsiteConfiguration: [404, 'The bucket is not served as a website.'],
  NotImplemented: [501, 'This function of S3 is not offered.'],
  NotModified: [304, 'Not modified.'],
  ObjectLockConfigurationNotFoundError: [404, 'The bucket has no object lock.'],
  OperationAborted: [409, 'A bucket of this name is being deleted. Try again.'],
  OwnershipControlsNotFoundError: [404, 'The bucket has no ownership controls.'],
  PreconditionFailed: [412, 'A condition of the request does not hold.'],
  QuotaExceeded: [403, 'The bucket or its project has reached its storage limit.'],
  ReplicationConfigurationNotFoundError: [404, 'The bucket is not replicated.'],
  RequestTimeTooSkewed: [403, 'The time of the request differs too much from that of the server.'],
  ServerSideEncryptionConfigurationNotFoundError: [404, 'The bucket has no default encryption.'],
  ServiceUnavailable: [503, 'The service cannot answer at the moment. Try again.'],
  SlowDown: [503, 'The rate limit of writes is used up. Try again in a minute.'],
  SignatureDoesNotMatch: [403, 'The signature does not match. Check the secret access key and how you sign.'],
  TooManyBuckets: [400, 'The project has as many buckets as its quota allows.'],
  XAmzContentSHA256Mismatch: [400, 'The content does not match x-amz-content-sha256.'],
} as const satisfies Record<string, readonly [number, string]>;

export type S3Code = keyof typeof STATUSES;

export class S3Error extends Error {
  override readonly name = 'S3Error';
  readonly status: number;

  /** @param headers response headers */
  constructor(
    readonly code: S3Code,
    message?: string,
    readonly headers: Record<string, string> = {},
  ) {
    const [status, usual] = STATUSES[code];
    super(message ?? usual);
    this.status = status;
  }
}

const OUTAGE = /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOSPC|EDQUOT|EMFILE)$/;

/** Object lock errors of the database that have no S3 code. */
const LOCKS = {
  ObjectLocked: ['AccessDenied', 'The version is locked: its retention or legal hold does not allow this.'],
  NoObjectLock: ['InvalidRequest', 'The bucket has no object lock.'],
  RetainUntilPast: ['InvalidArgument', 'The end of the retention is not in the future.'],
} as const satisfies Partial<Record<Refusal, readonly [S3Code, string]>>;

/** The error that S3 has for a refusal of the platform. `sentence`: a message in place of the usual one. */
export function refusalError(refusal: Refusal, sentence?: string): S3Error {
  if (refusal in LOCKS) {
    const [code, message] = LOCKS[refusal as keyof typeof LOCKS];
    return new S3Error(code, message);
  }
  return new S3Error(refusal as Exclude<Refusal, keyof typeof LOCKS>, sentence);
}

/** Converts any failure to an S3 error; `unknown` marks an internal error, to be logged. */
export function s3ErrorOf(error: unknown): { error: S3Error; unknown: boolean } {
  if (error instanceof S3Error) return { error, unknown: false };
  if (error instanceof ObjectRefused) return { error: refusalError(error.reason, error.sentence), unknown: false };
  const { code = '', status, constraint } = error as { code?: string; status?: number; constraint?: string };
  // Versioning and object lock were changed concurrently.
  if (constraint === 'buckets_lock_versions') return { error: new S3Error('InvalidBucketState'), unknown: false };
  if (status === 503 || OUTAGE.test(code)) {
    const full = isDiskFull(error);
    const message = full ? 'The disk of the host is full. An operator has to free space.' : undefined;
    return { error: new S3Error('ServiceUnavailable', message, { 'Retry-After': '5' }), unknown: full };
  }
  return { error: new S3Error('InternalError'), unknown: true };
}
