// Object storage over the S3 protocol. Engines: engines/object_storage, an endpoint of this host with files on its
// disk; drivers/rgw, a Ceph RADOS Gateway.
import type { Permission } from '../../core/protocols/buckets/bucket_actions';
import type { PolicyStatement } from '../../core/protocols/buckets/bucket_policy';
import type { ListedObject, ObjectsQuestion } from '../../core/protocols/objects';
import type { Credentials } from '../../core/protocols/sigv4';
import type { DriverContext, ResourceDriver } from '../../core/driver';

export interface CorsRule {
  /** Rule id of S3. */
  id?: string;
  allowed_origins: string[];
  allowed_methods: string[];
  allowed_headers: string[];
  expose_headers: string[];
  max_age_seconds: number;
  /** The rule was written by an S3 client without a max age, and is returned without one. */
  max_age_implied?: true;
}

export interface LifecycleRule {
  id: string;
  enabled: boolean;
  prefix: string;
  /** The rule was written by an S3 client with the deprecated top-level prefix, and is returned with it. */
  prefix_of_rule?: true;
  /** It was written by an S3 client with a filter without a prefix, and is returned so. */
  filter_is_empty?: true;
  expire_after_days: number | null;
  expire_noncurrent_after_days: number | null;
  abort_incomplete_uploads_after_days: number | null;
}

/** Desired state of a bucket. */
export interface BucketSpec {
  /** Unique on the platform; also the name at the engine. */
  name: string;
  access: 'private' | 'public_read';
  versioning: boolean;
  /** Versioning was enabled at some time. */
  versioned: boolean;
  /** In bytes; null = no quota. */
  quota_bytes: number | null;
  website: { index_document: string; error_document: string | null } | null;
  cors: CorsRule[];
  lifecycle: LifecycleRule[];
  policy: PolicyStatement[];
  /** Access keys of the project; permission null: no grant on this bucket. A policy may name any of them. */
  keys: { id: string; access_key_id: string; permission: Permission | null }[];
  /** The owner's key, which signs URLs of the API. It is passed to the engine only. */
  owner: Credentials;
}

/** Usage reported by the engine; null where the platform counts by itself. */
export interface BucketObserved {
  usage: { object_count: number; size_bytes: number } | null;
  /** Traffic by day (YYYY-MM-DD), as far as the engine keeps it. */
  days: { day: string; egress_bytes: number; requests: number }[];
}

export interface BucketDriver extends ResourceDriver<BucketSpec, BucketObserved> {
  /** Interval of `observe`, which reads the counters of the engine; null = never. */
  readonly measureMs: number | null;
  /** Whether the engine applies lifecycle rules by itself. */
  readonly appliesLifecycle: boolean;
}

/** Desired state of an access key. The secret is in plain text: it is passed to the engine only. */
export interface AccessKeySpec {
  access_key_id: string;
  secret: string;
  enabled: boolean;
}

export type AccessKeyDriver = ResourceDriver<AccessKeySpec, Record<string, never>>;

export interface ObjectStorage {
  buckets: BucketDriver;
  /** Null where the engine reads the rows of keys by itself. */
  keys: AccessKeyDriver | null;
  /** Null where the objects are rows in the database of the platform. */
  list:
    | ((
        bucket: { name: string; owner: Credentials },
        query: ObjectsQuestion,
        ctx: DriverContext,
      ) => Promise<ListedObject[]>)
    | null;
}
