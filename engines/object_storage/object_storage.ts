// Object storage over the S3 protocol. One engine a folder: engines/object_storage, an endpoint of this host
// with files on its disk; drivers/rgw, a Ceph RADOS Gateway.
import type { Permission } from '../../core/protocols/bucket_actions';
import type { PolicyStatement } from '../../core/protocols/bucket_policy';
import type { ListedObject, ObjectsQuestion } from '../../core/protocols/objects';
import type { Credentials } from '../../core/protocols/sigv4';
import type { DriverContext, ResourceDriver } from '../../core/driver';

export interface CorsRule {
  /** As S3 has it. */
  id?: string;
  allowed_origins: string[];
  allowed_methods: string[];
  allowed_headers: string[];
  expose_headers: string[];
  max_age_seconds: number;
  /** A client of S3 has written no age: it reads none. */
  max_age_implied?: true;
}

export interface LifecycleRule {
  id: string;
  enabled: boolean;
  prefix: string;
  /** A client of S3 has written the prefix in the rule, and not in a filter: it reads it there. */
  prefix_of_rule?: true;
  expire_after_days: number | null;
  expire_noncurrent_after_days: number | null;
  abort_incomplete_uploads_after_days: number | null;
}

/** What an engine should know of a bucket. */
export interface BucketSpec {
  /** Unique on the platform, and its name at the engine. */
  name: string;
  access: 'private' | 'public_read';
  versioning: boolean;
  /** Versions were on at some time. */
  versioned: boolean;
  /** Bytes; null = none. */
  quota_bytes: number | null;
  website: { index_document: string; error_document: string | null } | null;
  cors: CorsRule[];
  lifecycle: LifecycleRule[];
  policy: PolicyStatement[];
  /** Keys of the project; null: without a grant on this bucket. A policy may name any of them. */
  keys: { id: string; access_key_id: string; permission: Permission | null }[];
  /** The key of the owner, which signs the URLs of the API. It goes to an engine and nowhere else. */
  owner: Credentials;
}

/** Bytes and counts as the engine has them; null where the platform counts by itself. */
export interface BucketObserved {
  usage: { object_count: number; size_bytes: number } | null;
  /** Traffic by day (YYYY-MM-DD), as far as the engine keeps it. */
  days: { day: string; egress_bytes: number; requests: number }[];
}

export interface BucketDriver extends ResourceDriver<BucketSpec, BucketObserved> {
  /** How often `observe` should be asked for what the engine has counted; null = never. */
  readonly measureMs: number | null;
  /** Whether the engine follows lifecycle rules by itself. */
  readonly appliesLifecycle: boolean;
}

/** What an engine should know of an access key. The secret is in plain: it goes to the engine and nowhere else. */
export interface AccessKeySpec {
  access_key_id: string;
  secret: string;
  enabled: boolean;
}

export type AccessKeyDriver = ResourceDriver<AccessKeySpec, Record<string, never>>;

export interface ObjectStorage {
  buckets: BucketDriver;
  /** null where the engine reads the rows of keys by itself. */
  keys: AccessKeyDriver | null;
  /** null where objects are rows here. */
  list:
    | ((
        bucket: { name: string; owner: Credentials },
        question: ObjectsQuestion,
        ctx: DriverContext,
      ) => Promise<ListedObject[]>)
    | null;
}
