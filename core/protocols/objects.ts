// Objects of a bucket, as engines keep and lists show them.

/** One entry of a list: an object, a version of one, a delete marker, or a group of keys. */
export interface ListedObject {
  type: 'object' | 'prefix' | 'delete_marker';
  key: string;
  size_bytes: number | null;
  etag: string | null;
  last_modified_at: string | null;
  version_id: string | null;
  /** Among the versions of its key, for the cursor. */
  position: string;
}

export interface ObjectsQuestion {
  prefix: string;
  delimiter: string | null;
  versions: boolean;
  /** The last entry of the page before. */
  after: { key: string; position: string } | null;
  limit: number;
}

const LAST_CHARACTER = 0x10ffff;
/** Longer than a key may be, and after all keys. */
const AFTER_ALL_KEYS = String.fromCodePoint(LAST_CHARACTER).repeat(257);

/** The first text after all that begin with the prefix, in the order of code points, which is that of UTF-8. */
export function endOfPrefix(prefix: string): string {
  const characters = Array.from(prefix);
  const last = characters.pop();
  if (last === undefined) return AFTER_ALL_KEYS;
  const code = last.codePointAt(0) as number;
  if (code === LAST_CHARACTER) return prefix + AFTER_ALL_KEYS;
  // U+D800 to U+DFFF are no characters.
  return characters.join('') + String.fromCodePoint(code === 0xd7ff ? 0xe000 : code + 1);
}

export const KEY_BYTES_MAX = 1024;

/** What travels with an object beside its content. */
export interface ObjectMetadata {
  /** Standard headers, such as content-type, by their names in lower case. */
  headers: Record<string, string>;
  /** x-amz-meta-…, without that. */
  user: Record<string, string>;
  checksum_algorithm?: string | null;
  /** FULL_OBJECT or COMPOSITE. */
  checksum_type?: string | null;
  checksum?: string | null;
  /** Of its files at rest. */
  encryption?: 'AES256' | null;
}

export type RetentionMode = 'governance' | 'compliance';

/** How long a version has to stay. A legal hold has no end; null where none was ever set. */
export interface ObjectLock {
  retain_mode: RetentionMode | null;
  /** ISO 8601; null if there is no mode. */
  retain_until: string | null;
  legal_hold: boolean | null;
}

/** Retention of versions that bring none, from when they are written. */
export interface DefaultRetention {
  mode: RetentionMode;
  /** One of the two is null. */
  days: number | null;
  years: number | null;
}

/** A version of an object, as it is kept. */
export interface StoredObject extends ObjectLock {
  id: number;
  key: string;
  version_id: string;
  is_latest: boolean;
  is_delete_marker: boolean;
  size: number;
  etag: string;
  /** null for a delete marker, and for an object of several files. */
  file_id: string | null;
  part_count: number | null;
  upload_id: string | null;
  modified_at: string;
  metadata: ObjectMetadata;
  tags: Record<string, string> | null;
  is_public: boolean;
}

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
  /** Conditions on what has the key now. */
  if_none_match?: boolean;
  if_match?: string;
}

/** What a request says of an object beside its content. */
export type DescribedObject = Pick<NewObject, 'metadata' | 'tags' | 'is_public' | keyof ObjectLock>;

export interface StoredUpload {
  id: string;
  bucket_id: string;
  key: string;
  /** What the object will have. */
  object: DescribedObject;
  created_at: string;
}

export interface Deletion {
  key: string;
  version_id: string | null;
  /** What is removed must be so, or nothing is; what is not there meets all of them. */
  conditions?: DeletionConditions;
  /** Also what governance retains. Whoever sets it has checked that the caller may. */
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
  /** Of the version that went, or of the marker that was made. */
  version_id: string | null;
  is_delete_marker: boolean;
  deleted: boolean;
  /** A condition that does not hold, or a lock that does. */
  refusal: Refusal | null;
}

/** Why the database refused a write of an object; everything of the write was rolled back. */
export type Refusal =
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

  constructor(readonly reason: Refusal) {
    super(reason);
  }
}
