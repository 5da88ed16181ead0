// S3 actions supported by the endpoint: on objects and on buckets, and the permissions of access keys.

export type Permission = 'read' | 'read_write' | 'full';

const READ_OBJECTS = [
  's3:GetObject',
  's3:GetObjectVersion',
  's3:GetObjectAttributes',
  's3:GetObjectVersionAttributes',
  's3:GetObjectTagging',
  's3:GetObjectVersionTagging',
  's3:GetObjectAcl',
  's3:GetObjectRetention',
  's3:GetObjectLegalHold',
] as const;
const READ_BUCKET = [
  's3:ListBucket',
  's3:ListBucketVersions',
  's3:GetBucketLocation',
  's3:GetBucketVersioning',
  's3:GetBucketCORS',
  's3:GetBucketAcl',
  's3:GetLifecycleConfiguration',
  's3:GetBucketWebsite',
  's3:GetBucketPolicy',
  's3:GetBucketPolicyStatus',
  's3:GetBucketTagging',
  's3:GetBucketObjectLockConfiguration',
  's3:GetBucketPublicAccessBlock',
  's3:GetBucketOwnershipControls',
  's3:GetEncryptionConfiguration',
  's3:GetReplicationConfiguration',
  's3:GetAccelerateConfiguration',
  's3:GetBucketRequestPayment',
  's3:GetBucketLogging',
  's3:GetBucketNotification',
] as const;
const WRITE_OBJECTS = [
  's3:PutObject',
  's3:PutObjectTagging',
  's3:PutObjectAcl',
  // It can lock objects, but not unlock them.
  's3:PutObjectRetention',
  's3:DeleteObject',
  's3:DeleteObjectTagging',
  's3:AbortMultipartUpload',
  's3:ListMultipartUploadParts',
] as const;
const WRITE_BUCKET = ['s3:ListBucketMultipartUploads'] as const;
const FULL_OBJECTS = [
  's3:DeleteObjectVersion',
  's3:PutObjectVersionTagging',
  's3:DeleteObjectVersionTagging',
  's3:PutObjectLegalHold',
  's3:BypassGovernanceRetention',
] as const;
const FULL_BUCKET = [
  's3:PutBucketVersioning',
  's3:PutBucketCORS',
  's3:PutLifecycleConfiguration',
  's3:PutBucketWebsite',
  's3:DeleteBucketWebsite',
  's3:PutBucketPolicy',
  's3:DeleteBucketPolicy',
  's3:PutBucketAcl',
  's3:PutBucketObjectLockConfiguration',
  's3:PutBucketPublicAccessBlock',
  's3:PutBucketOwnershipControls',
  's3:PutEncryptionConfiguration',
  's3:PutReplicationConfiguration',
  's3:PutAccelerateConfiguration',
  's3:PutBucketRequestPayment',
  's3:PutBucketLogging',
  's3:PutBucketNotification',
  's3:PutBucketTagging',
  's3:DeleteBucket',
] as const;

export const objectActions = [...READ_OBJECTS, ...WRITE_OBJECTS, ...FULL_OBJECTS] as const;
export const bucketActions = [...READ_BUCKET, ...WRITE_BUCKET, ...FULL_BUCKET] as const;

export type BucketAction = (typeof objectActions)[number] | (typeof bucketActions)[number];

const READ: readonly BucketAction[] = [...READ_OBJECTS, ...READ_BUCKET];
const WRITE: readonly BucketAction[] = [...READ, ...WRITE_OBJECTS, ...WRITE_BUCKET];

/** Actions allowed by each permission. */
export const permittedActions: Record<Permission, ReadonlySet<BucketAction>> = {
  read: new Set(READ),
  read_write: new Set(WRITE),
  full: new Set([...objectActions, ...bucketActions]),
};

/** Actions allowed to anonymous callers in public buckets and on public objects. */
export const PUBLIC_ACTIONS: readonly BucketAction[] = ['s3:GetObject'];

const LISTS: readonly string[] = ['s3:ListBucket', 's3:ListBucketVersions', 's3:ListBucketMultipartUploads'];
const OF_OBJECTS: ReadonlySet<string> = new Set(objectActions);

/** Whether an action applies to an object; all others apply to the bucket. */
export function isObjectAction(action: BucketAction): boolean {
  return OF_OBJECTS.has(action);
}

/** Whether an action lists the bucket by prefix. */
export function isListAction(action: BucketAction): boolean {
  return LISTS.includes(action);
}
