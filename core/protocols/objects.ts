// Objects of a bucket, as stored by engines and shown in lists.

/** A list entry: an object, an object version, a delete marker, or a group of keys. */
export interface ListedObject {
  type: 'object' | 'prefix' | 'delete_marker';
  key: string;
  size_bytes: number | null;
  etag: string | null;
  last_modified_at: string | null;
  version_id: string | null;
  /** Position among the versions of the key, for the cursor. */
  position: string;
}

export interface ObjectsQuestion {
  prefix: string;
  delimiter: string | null;
  versions: boolean;
  /** The last entry of the previous page. */
  after: { key: string; position: string } | null;
  limit: number;
}

/** The position of `after` is the id of a version, GROUP, or LAST_VERSION. */
export interface ObjectsQuery extends ObjectsQuestion {
  bucketId: string;
}

/** Position of a group of keys. */
export const GROUP = 'group';
/** After all versions of the key: ids fall from -1 on. */
export const LAST_VERSION = '0';

const LAST_CHARACTER = 0x10ffff;
/** Longer than any key, and sorts after all keys. */
const AFTER_ALL_KEYS = String.fromCodePoint(LAST_CHARACTER).repeat(257);

/** The first text after all texts with the prefix, in the order of code points, which is that of UTF-8. */
export function endOfPrefix(prefix: string): string {
  const characters = Array.from(prefix);
  const last = characters.pop();
  if (last === undefined) return AFTER_ALL_KEYS;
  const code = last.codePointAt(0) as number;
  if (code === LAST_CHARACTER) return prefix + AFTER_ALL_KEYS;
  // U+D800 to U+DFFF are surrogates.
  return characters.join('') + String.fromCodePoint(code === 0xd7ff ? 0xe000 : code + 1);
}

export const KEY_BYTES_MAX = 1024;

/** Metadata of an object. */
export interface ObjectMetadata {
  /** Standard headers, such as content-type, by lower-case name. */
  headers: Record<string, string>;
  /** x-amz-meta-…, without the prefix. */
  user: Record<string, string>;
  checksum_algorithm?: string | null;
  /** FULL_OBJECT or COMPOSITE. */
  checksum_type?: string | null;
  checksum?: string | null;
  /** Encryption of the files at rest. */
  encryption?: 'AES256' | null;
  /** The files are encrypted with a key of the client; this recognises the key and does not reveal it. */
  customer_key?: string | null;
}

export type RetentionMode = 'governance' | 'compliance';

/** Retention of a version. A legal hold has no end; null where none was ever set. */
export interface ObjectLock {
  retain_mode: RetentionMode | null;
  /** ISO 8601; null if there is no mode. */
  retain_until: string | null;
  legal_hold: boolean | null;
}

/** Default retention of new versions, from their creation. */
export interface DefaultRetention {
  mode: RetentionMode;
  /** Exactly one of days and years is set. */
  days: number | null;
  years: number | null;
}

/** A stored version of an object. */
export interface StoredObject extends ObjectLock {
  id: number;
  key: string;
  version_id: string;
  is_latest: boolean;
  is_delete_marker: boolean;
  size: number;
  etag: string;
  /** null for a delete marker, and for an object with several files. */
  file_id: string | null;
  part_count: number | null;
  upload_id: string | null;
  modified_at: string;
  metadata: ObjectMetadata;
  tags: Record<string, string> | null;
  is_public: boolean;
}

/** A version of an object as clients of S3 list it. */
export interface ListedVersion extends Pick<
  StoredObject,
  'id' | 'key' | 'version_id' | 'is_latest' | 'is_delete_marker' | 'size' | 'etag' | 'modified_at'
> {
  /** Set for a group of keys, and the rest is null then. */
  common_prefix: string | null;
  checksum_algorithm: string | null;
  checksum_type: string | null;
}

/** Settings of a bucket that clients of S3 change. */
export type BucketSetting =
  | 'access'
  | 'versioning'
  | 'website'
  | 'cors'
  | 'lifecycle'
  | 'policy'
  | 'policy_document'
  | 'object_lock'
  | 'default_retention'
  | 'public_access_block'
  | 'object_ownership';

export interface StoredPart {
  number: number;
  file_id: string;
  size: number;
  etag: string;
  /** By algorithm. */
  checksums: Record<string, string>;
  modified_at: string;
}

export interface NewObject extends Partial<ObjectLock> {
  key: string;
  size: number;
  etag: string;
  file_id: string | null;
  part_count?: number;
  upload_id?: string;
  metadata: ObjectMetadata;
  tags: Record<string, string> | null;
  is_public: boolean;
  /** Conditions on the current object of the key. */
  if_none_match?: boolean;
  if_match?: string;
}

/** Metadata of an object in a request. */
export type DescribedObject = Pick<NewObject, 'metadata' | 'tags' | 'is_public' | keyof ObjectLock>;

export interface StoredUpload {
  id: string;
  bucket_id: string;
  key: string;
  /** Metadata of the object once the upload is completed. */
  object: DescribedObject & {
    /** The canned ACL of the request, for conditions of policies. */
    acl?: string;
  };
  created_at: string;
}

export interface Deletion {
  key: string;
  version_id: string | null;
  /** Conditions on the object to be removed; a missing object meets all of them. */
  conditions?: DeletionConditions;
  /** Also removes objects under governance retention. The caller must check the permission. */
  bypass_governance?: boolean;
}

export interface DeletionConditions {
  /** Without quotes, or `*`. */
  etag?: string;
  /** Bytes. */
  size?: number;
  /** ISO 8601, to the second. */
  modified_at?: string;
}

export interface Deleted {
  /** Id of the removed version, or of the created marker. */
  version_id: string | null;
  is_delete_marker: boolean;
  deleted: boolean;
  /** A failed condition, or a lock. */
  refusal: Refusal | null;
}

/** Why the database rejected a write of an object or a bucket; the whole write was rolled back. */
export type Refusal =
  | 'BucketAlreadyExists'
  | 'BucketAlreadyOwnedByYou'
  | 'AccessDenied'
  | 'BucketNotEmpty'
  | 'InvalidBucketState'
  | 'InvalidLocationConstraint'
  | 'OperationAborted'
  | 'SlowDown'
  | 'TooManyBuckets'
  | 'NoSuchBucket'
  | 'NoSuchKey'
  | 'NoSuchVersion'
  | 'NoSuchUpload'
  | 'InvalidPart'
  | 'PreconditionFailed'
  | 'QuotaExceeded'
  | 'ObjectLocked'
  | 'NoObjectLock'
  | 'RetainUntilPast';

export class ObjectRefused extends Error {
  override readonly name = 'ObjectRefused';

  /** @param sentence for the client, where there is more to say than the reason */
  constructor(
    readonly reason: Refusal,
    readonly sentence?: string,
  ) {
    super(reason);
  }
}
