// The database interface of the endpoint, implemented by models/object_storage/bucket_object/catalog.ts. Every write
// and its change of the bucket's usage are one transaction. Writes throw ObjectRefused.
import type { Grant } from '../../core/protocols/bucket_access';
import type { PolicyStatement } from '../../core/protocols/bucket_policy';
import type {
  DefaultRetention,
  Deleted,
  Deletion,
  NewObject,
  ObjectLock,
  StoredObject,
  StoredPart,
  StoredUpload,
} from '../../core/protocols/objects';
import type { Credentials } from '../../core/protocols/sigv4';
import type { CorsRule, LifecycleRule } from './object_storage';

export interface ServedBucket {
  id: string;
  project_id: string;
  name: string;
  region: string;
  access: 'private' | 'public_read';
  versioning: boolean;
  versioned_at: string | null;
  website: { index_document: string; error_document: string | null } | null;
  cors: CorsRule[];
  lifecycle: LifecycleRule[];
  policy: PolicyStatement[];
  /** The policy as written by an S3 client; null if it was written through the API. */
  policy_document: string | null;
  /** Whether versions can be locked; this implies versioning. */
  object_lock: boolean;
  default_retention: DefaultRetention | null;
  created_at: string;
}

export interface ServedKey extends Credentials {
  projectId: string;
  grants: Grant[];
  /** Enabled and not expired now. */
  isActive: boolean;
}

export interface ListedVersion {
  common_prefix: string | null;
  id: number;
  key: string;
  version_id: string;
  is_latest: boolean;
  is_delete_marker: boolean;
  size: number;
  etag: string;
  modified_at: string;
  checksum_algorithm: string | null;
  checksum_type: string | null;
}

interface ListQuery {
  bucketId: string;
  prefix: string;
  delimiter: string | null;
  versions: boolean;
  after: { key: string; position: string } | null;
  limit: number;
}

type BucketChange = Partial<
  Pick<
    ServedBucket,
    | 'access'
    | 'versioning'
    | 'website'
    | 'cors'
    | 'lifecycle'
    | 'policy'
    | 'policy_document'
    | 'object_lock'
    | 'default_retention'
  >
>;

export interface ObjectCatalog {
  /** @param fresh bypasses the cache, whose rows are at most half a second old */
  bucket(name: string, fresh?: 'fresh'): Promise<ServedBucket | null>;
  key(accessKeyId: string, fresh?: 'fresh'): Promise<ServedKey | null>;
  ownerCredentials(bucketId: string): Credentials;
  bucketsOf(projectId: string): Promise<ServedBucket[]>;
  /** Access keys that a policy may name as principals. */
  principalsOf(projectId: string): Promise<Set<string>>;
  /** Later reads see the change. */
  changeBucket(bucket: Pick<ServedBucket, 'id' | 'name'>, change: BucketChange): Promise<void>;

  /** Without a version id the latest version. */
  find(bucketId: string, key: string, versionId: string | null): Promise<StoredObject | null>;
  partsOf(objectId: number): Promise<StoredPart[]>;
  put(bucketId: string, object: NewObject): Promise<StoredObject>;
  /** In order and in one transaction; `refusal` names the deletions that were rejected. */
  delete(bucketId: string, deletions: readonly Deletion[]): Promise<Deleted[]>;
  list(query: ListQuery): Promise<ListedVersion[]>;
  setTags(objectId: number, tags: Record<string, string> | null): Promise<void>;
  setPublic(objectId: number, isPublic: boolean): Promise<void>;
  /** Null for both removes the retention. */
  setRetention(
    bucketId: string,
    objectId: number,
    retention: Pick<ObjectLock, 'retain_mode' | 'retain_until'> & { bypass: boolean },
  ): Promise<void>;
  setHold(bucketId: string, objectId: number, hold: boolean): Promise<void>;

  createUpload(bucketId: string, upload: Pick<StoredUpload, 'key' | 'object'>): Promise<string>;
  upload(bucketId: string, key: string, id: string): Promise<StoredUpload | null>;
  listUploads(query: Omit<ListQuery, 'versions'>): Promise<StoredUpload[]>;
  putPart(bucketId: string, key: string, uploadId: string, part: Omit<StoredPart, 'modified_at'>): Promise<string>;
  uploadParts(uploadId: string): Promise<StoredPart[]>;
  completeUpload(bucketId: string, uploadId: string, fileIds: string[], object: NewObject): Promise<StoredObject>;
  abortUpload(bucketId: string, uploadId: string): Promise<void>;
}
