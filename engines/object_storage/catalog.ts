// The database interface of the endpoint, implemented by models/object_storage/bucket_object/catalog.ts. Every write
// and its change of the bucket's usage are one transaction. Writes throw ObjectRefused.
import type { Grant, ObjectOwnership, PublicAccessBlock } from '../../core/protocols/buckets/bucket_access';
import type { PolicyStatement } from '../../core/protocols/buckets/bucket_policy';
import type {
  BucketSetting,
  DefaultRetention,
  Deleted,
  Deletion,
  ListedVersion,
  NewObject,
  ObjectLock,
  ObjectsQuery,
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
  /** null: an S3 client has set none. */
  public_access_block: PublicAccessBlock | null;
  object_ownership: ObjectOwnership | null;
  created_at: string;
}

export interface ServedKey extends Credentials {
  id: string;
  name: string;
  projectId: string;
  grants: Grant[];
  /** Enabled and not expired now. */
  isActive: boolean;
}

interface NewBucket extends Pick<ServedBucket, 'name' | 'object_lock' | 'public_access_block' | 'object_ownership'> {
  /** null: the default region of the project. */
  region: string | null;
  request_id: string;
}

type BucketChange = Partial<Pick<ServedBucket, BucketSetting>>;

export interface ObjectCatalog {
  /** @param fresh bypasses the cache, whose rows are at most half a second old */
  bucket(name: string, fresh?: 'fresh'): Promise<ServedBucket | null>;
  key(accessKeyId: string, fresh?: 'fresh'): Promise<ServedKey | null>;
  ownerCredentials(bucketId: string): Credentials;
  bucketsOf(projectId: string): Promise<ServedBucket[]>;
  /** Access keys that a policy may name as principals. */
  principalsOf(projectId: string): Promise<Set<string>>;
  /** In the project of the key. Resolves once the bucket can be used. */
  createBucket(key: ServedKey, bucket: NewBucket): Promise<void>;
  deleteBucket(key: ServedKey, bucket: Pick<ServedBucket, 'id' | 'name'>, requestId: string): Promise<void>;
  /** Later reads see the change. */
  changeBucket(bucket: Pick<ServedBucket, 'id' | 'name'>, change: BucketChange): Promise<void>;

  /** Without a version id the latest version. */
  find(bucketId: string, key: string, versionId: string | null): Promise<StoredObject | null>;
  partsOf(objectId: number): Promise<StoredPart[]>;
  put(bucketId: string, object: NewObject): Promise<StoredObject>;
  /** In order and in one transaction; `refusal` names the deletions that were rejected. */
  delete(bucketId: string, deletions: readonly Deletion[]): Promise<Deleted[]>;
  list(query: ObjectsQuery): Promise<ListedVersion[]>;
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
  listUploads(query: Omit<ObjectsQuery, 'versions'>): Promise<StoredUpload[]>;
  putPart(bucketId: string, key: string, uploadId: string, part: Omit<StoredPart, 'modified_at'>): Promise<string>;
  uploadParts(uploadId: string): Promise<StoredPart[]>;
  completeUpload(bucketId: string, uploadId: string, fileIds: string[], object: NewObject): Promise<StoredObject>;
  abortUpload(bucketId: string, uploadId: string): Promise<void>;
}
