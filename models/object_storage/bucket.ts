import type { Context } from '../../core/context';
import { problem, validationFailed } from '../../core/errors';
import type { ObjectOwnership, PublicAccessBlock } from '../../core/protocols/buckets/bucket_access';
import type { PolicyStatement } from '../../core/protocols/buckets/bucket_policy';
import type { DefaultRetention } from '../../core/protocols/objects';
import { named } from '../../db/statement';
import type { Values } from '../../db/table';
import type {
  BucketAccess,
  BucketCorsRule,
  BucketLifecycleRule,
  BucketWebsite,
  BucketWebsiteInput,
  CreateBucketInput,
  UpdateBucketInput,
} from '../../schema/types';
import { isKept, type Bin } from '../base/bin';
import { requireUnprotected } from '../base/deletion_protection';
import { removeToBin } from '../base/purge';
import { Resource } from '../base/resource';
import { bucketBin, removeGrants } from './bucket/bin';
import { publicUrlOf, requireObjectStorage, requireWebsites } from './bucket/endpoint';
import { askEngine } from './bucket/engine';
import { lockChanges } from './bucket/lock';
import { requireNoZoneBefore } from '../base/cdn_origin';
import { requireRegion } from '../reference/region';

const INDEX_DOCUMENT = 'index.html';
const EMPTY = named(`select 1 from bucket_objects where bucket_id = $1 limit 1`);
const KEPT_BY_OTHERS = named(`select 1 from buckets b where name = $1 and deleted_at is not null and project_id <> $2
  and ${isKept('b')}`);
const LOCK_BUCKET = named('select hold_bucket($1)');
const ABORT = named('select abort_bucket_upload(bucket_id, id) from bucket_uploads where bucket_id = $1');

/** A container for objects. It exists at once; the loop brings what the engine has to know of it. */
export class Bucket extends Resource {
  static readonly table = 'buckets';
  static readonly kind = 'bucket';
  static readonly idPrefix = 'bkt';
  static override readonly projectChild = 'buckets';
  static override readonly filters = { name: 'name = ?', region: 'region = ?', access: 'access = ?' };
  static override readonly sorts = ['name', 'size_bytes'];
  static override readonly bin: Bin<Bucket> = bucketBin;
  static override readonly quotas = [
    { resource: 'buckets' as const },
    { resource: 'bucket_storage_bytes' as const, sum: 'size_bytes' },
  ];

  declare name: string;
  declare region: string;
  declare access: BucketAccess;
  declare versioning: boolean;
  /** Since when the bucket has had versions; null if it never had. */
  declare versioned_at: string | null;
  declare website: BucketWebsite | null;
  declare quota_gb: number | null;
  declare cors: BucketCorsRule[];
  declare lifecycle: BucketLifecycleRule[];
  declare policy: PolicyStatement[];
  /** The policy as a client of S3 has written it; null if the API has. */
  declare policy_document: string | null;
  /** Versions can be locked. It is never switched off, and versioning stays on with it. */
  declare object_lock: boolean;
  declare default_retention: DefaultRetention | null;
  /** Of clients of S3; null where they have set none. */
  declare public_access_block: PublicAccessBlock | null;
  declare object_ownership: ObjectOwnership | null;
  declare deletion_protection: boolean;
  declare object_count: number;
  declare size_bytes: number;
  declare lifecycle_at: string | null;

  /**
   * @param ofClient settings that only clients of S3 have
   * @throws engine_unavailable, reference_not_found, validation_failed, name_taken, quota_exceeded
   */
  static async create(
    ctx: Context,
    input: CreateBucketInput,
    ofClient: Partial<Pick<Bucket, 'public_access_block' | 'object_ownership'>> = {},
  ): Promise<Bucket> {
    requireObjectStorage(ctx.config);
    const region = input.region ?? ctx.project?.default_region ?? '';
    requireRegion(ctx, region, 'region');
    // Names are of all projects: one that can come back is not for strangers, who would get its visitors.
    if ((await ctx.sql.query(KEPT_BY_OTHERS, [input.name, ctx.project?.id])).length)
      throw problem('name_taken', undefined, { field: 'name' });
    const access = input.access ?? 'private';
    const website = websiteOf(null, input.website);
    if (website) requireWebsites(ctx.config);
    requirePublicWebsite(access, website);
    const { object_lock, default_retention } = lockChanges(ctx, { object_lock: false, default_retention: null }, input);
    const versioning = object_lock || (input.versioning ?? false);
    return Bucket.insert(ctx, {
      name: input.name,
      region,
      access,
      website,
      versioning,
      quota_gb: input.quota_gb ?? null,
      object_lock,
      default_retention,
      deletion_protection: input.deletion_protection ?? false,
      ...ofClient,
      cors: [],
      lifecycle: [],
      policy: [],
      versioned_at: versioning ? new Date().toISOString() : null,
    });
  }

  publicUrl({ config }: Context): string | null {
    return publicUrlOf(config, this);
  }

  /** @throws validation_failed */
  async change(ctx: Context, input: UpdateBucketInput): Promise<this> {
    const access = input.access ?? this.access;
    const website = input.website === undefined ? this.website : websiteOf(this.website, input.website);
    if (website) requireWebsites(ctx.config);
    requirePublicWebsite(access, website);
    if (input.access === 'public_read' && this.access !== 'public_read') requireUnblocked(this);
    const versioning = input.versioning ?? this.versioning;
    const changes: Values = {
      access,
      website,
      ...lockChanges(ctx, { ...this, versioning }, input),
      ...(input.versioning != null && { versioning: input.versioning }),
      ...(input.versioning && !this.versioned_at && { versioned_at: new Date().toISOString() }),
      ...(input.quota_gb !== undefined && { quota_gb: input.quota_gb }),
      ...(input.deletion_protection != null && { deletion_protection: input.deletion_protection }),
    };
    return this.update(ctx, changes);
  }

  /** Whether the engine has objects of the bucket that are no rows here. @throws provider_error */
  static async probe(ctx: Context, id: string): Promise<boolean> {
    if (!ctx.probes.bucketObjects) return false;
    const bucket = await Bucket.get(ctx, id);
    const first = { prefix: '', delimiter: null, versions: true, after: null, limit: 1 };
    return (await askEngine(ctx, bucket, first)).length > 0;
  }

  /**
   * Unfinished uploads go with the bucket.
   * @throws deletion_protected, bucket_not_empty, resource_in_use for the origin of a CDN zone
   */
  async destroy(ctx: Context): Promise<void> {
    await requireUnprotected(ctx, this);
    if (ctx.probed) throw problem('bucket_not_empty');
    // The lock that writers take: writes that are rejected or queued behind it no longer find the bucket.
    await ctx.sql.query(LOCK_BUCKET, [this.id]);
    const objects = await ctx.sql.query(EMPTY, [this.id]);
    if (objects.length) throw problem('bucket_not_empty');
    await requireNoZoneBefore(ctx, 'bucket', this);
    await ctx.sql.query(ABORT, [this.id]);
    await removeToBin(ctx, this, { memo: { keys: await removeGrants(ctx, this) } });
  }
}

function websiteOf(present: BucketWebsite | null, input: BucketWebsiteInput | null | undefined): BucketWebsite | null {
  if (!input) return null;
  const { index_document, error_document } = input;
  return {
    index_document: index_document ?? present?.index_document ?? INDEX_DOCUMENT,
    error_document: error_document === undefined ? (present?.error_document ?? null) : error_document,
  };
}

function requirePublicWebsite(access: BucketAccess, website: BucketWebsite | null): void {
  if (!website || access === 'public_read') return;
  throw validationFailed([{ field: 'website', code: 'depends_on', detail: 'needs `access` public_read' }]);
}

/** @throws validation_failed */
function requireUnblocked({ public_access_block: block }: Bucket): void {
  if (!block?.block_public_acls && !block?.ignore_public_acls) return;
  const detail =
    'is private while the bucket blocks public access. Remove the block over S3 first, with DeletePublicAccessBlock';
  throw validationFailed([{ field: 'access', code: 'depends_on', detail }]);
}
