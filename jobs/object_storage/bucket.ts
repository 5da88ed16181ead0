// Buckets: what the engine has to know of them, their lifecycle rules, and their tear-down.
import type { PolicyStatement } from '../../core/protocols/buckets/bucket_policy';
import { driverContext, DriverError, type Desired, type ExternalRef } from '../../core/driver';
import type { BucketObserved, BucketSpec, ObjectStorage } from '../../engines/object_storage';
import { openObjectStorage } from '../../drivers/object_storage/open';
import { Bucket } from '../../models/object_storage/bucket';
import { applyLifecycle, LIFECYCLE_START, type LifecyclePosition } from '../../models/object_storage/bucket/lifecycle';
import { ownerCredentials } from '../../models/object_storage/bucket/presign';
import {
  bucketKeys,
  bucketsWithoutRow,
  forgetFiles,
  recordMeasured,
} from '../../models/object_storage/bucket/job_queries';
import { allAtOnce, type Leftovers } from '../declarations';
import {
  gone,
  jittered,
  progressing,
  requireHost,
  settled,
  type Job,
  type JobContext,
  type LoopRow,
  type Outcome,
} from '../job';

declare module '../job' {
  interface HostDrivers {
    /** null where S3_PORT is 0, or the settings of another engine are missing. */
    objectStorage: ObjectStorage | null;
  }
}

type BucketRow = LoopRow &
  Pick<
    Bucket,
    | 'project_id'
    | 'name'
    | 'access'
    | 'versioning'
    | 'versioned_at'
    | 'website'
    | 'quota_gb'
    | 'cors'
    | 'lifecycle'
    | 'lifecycle_at'
  > & {
    policy: PolicyStatement[];
    ref: ExternalRef | null;
    observed: { lifecycle?: LifecyclePosition } | null;
    parked_at: string | null;
  };

const OBSERVE_MS = 5_000;
const RETRY_MS = 3_600_000;
const DAY_MS = 86_400_000;
const PAGES_MS = 5_000;
const AT_ONCE_MS = 1;
const GIGABYTE_BYTES = 2 ** 30;

const leftovers: Leftovers = {
  kind: 'bucket',
  async *list({ host }, ctx) {
    const { objectStorage } = host ?? {};
    if (!objectStorage) return;
    const ids: string[] = [];
    for await (const { owner_id } of objectStorage.buckets.list(ctx)) ids.push(owner_id);
    yield* allAtOnce(Promise.resolve(ids));
  },
  withoutRow: bucketsWithoutRow,
};

export const job: Job<BucketRow> = {
  table: Bucket.table,
  host: true,
  leftovers: [leftovers],
  openDrivers: ({ config }) => ({ objectStorage: openObjectStorage(config) }),
  park,
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : reconcile(row, ctx)),
};

async function reconcile(row: BucketRow, ctx: JobContext): Promise<Outcome> {
  const storage = requireHost(ctx).objectStorage;
  if (!storage) return progressing(jittered(RETRY_MS));
  const { buckets } = storage;
  if (row.driver !== null && row.driver !== buckets.name) throw madeElsewhere();
  const desired = await desiredBucket(row, ctx);
  const observe = () => buckets.observe(desired, driverContext(OBSERVE_MS, ctx.signal));
  let found = await observe();
  let { ref } = row;
  if (found.state !== 'present' || !found.upToDate) {
    if (row.driver === null) await ctx.record({ driver: buckets.name });
    ({ ref } = await buckets.ensure(desired, found, ctx));
    found = await observe();
  }
  if (found.state !== 'present' || !found.upToDate)
    throw new DriverError('transient', 'The object storage has not applied the settings of the bucket yet.');
  await measure(row, found.observed, ctx);
  const columns = { driver: buckets.name, ref: ref ?? { driver: buckets.name, name: row.id } };
  if (buckets.appliesLifecycle) return settled(columns, buckets.measureMs && jittered(buckets.measureMs));
  return lifecycle(row, ctx, columns);
}

function madeElsewhere(): DriverError {
  return new DriverError(
    'unsupported',
    'The bucket is stored in an object storage engine that this installation no longer uses.',
  );
}

async function measure(row: BucketRow, { usage, days }: BucketObserved, ctx: JobContext): Promise<void> {
  if (usage) await recordMeasured(ctx.sql, row.id, usage, days);
}

/** Some seconds of pages in one step; where it stands is kept with the row. */
async function lifecycle(row: BucketRow, ctx: JobContext, columns: object): Promise<Outcome> {
  if (!row.lifecycle.length) return settled({ ...columns, observed: {} });
  const dueInMs = row.lifecycle_at ? Date.parse(row.lifecycle_at) + DAY_MS - Date.now() : 0;
  if (dueInMs > 0) return settled({ ...columns, observed: {} }, dueInMs);
  let position: LifecyclePosition | null = row.observed?.lifecycle ?? LIFECYCLE_START;
  const until = Date.now() + PAGES_MS;
  while (position && Date.now() < until && !ctx.signal.aborted)
    position = await applyLifecycle(ctx.sql, row.id, row.lifecycle, position);
  if (position) return progressing(AT_ONCE_MS, { ...columns, observed: { lifecycle: position } });
  return settled({ ...columns, observed: {}, lifecycle_at: new Date().toISOString() }, jittered(DAY_MS));
}

/** An empty bucket has nothing but its row: the engine makes it again. */
async function park(row: BucketRow, ctx: JobContext): Promise<Outcome> {
  if (row.parked_at === null) {
    const outcome = await tearDown(row, ctx);
    if (outcome.kind !== 'gone') return outcome;
  }
  return settled({ driver: null, ref: null, observed: {}, parked_at: row.parked_at ?? new Date().toISOString() });
}

async function tearDown(row: BucketRow, ctx: JobContext): Promise<Outcome> {
  // Its name may be that of another one.
  if (row.parked_at !== null) return gone;
  const storage = requireHost(ctx).objectStorage;
  // No driver: nothing was ever made, but the files of an upload may be there.
  if (!storage) return row.driver === null ? gone : progressing(jittered(RETRY_MS));
  if (row.driver !== null && row.driver !== storage.buckets.name) throw madeElsewhere();
  const desired = await desiredBucket(row, ctx);
  await storage.buckets.remove(
    desired,
    await storage.buckets.observe(desired, driverContext(OBSERVE_MS, ctx.signal)),
    ctx,
  );
  await forgetFiles(ctx.sql, row.id);
  return gone;
}

async function desiredBucket(row: BucketRow, ctx: JobContext): Promise<Desired<BucketSpec>> {
  const { name, access, versioning, versioned_at, website, quota_gb, cors, lifecycle: rules, policy } = row;
  const spec = {
    ...{ name, access, versioning, versioned: versioned_at !== null, cors, policy },
    website: website && { ...website, error_document: website.error_document ?? null },
    quota_bytes: quota_gb === null ? null : quota_gb * GIGABYTE_BYTES,
    lifecycle: rules as BucketSpec['lifecycle'],
    keys: await bucketKeys(ctx.sql, row),
    owner: ownerCredentials(ctx.secrets, row.id),
  };
  return { id: row.id, spec, ...(row.ref && { ref: row.ref }) };
}
