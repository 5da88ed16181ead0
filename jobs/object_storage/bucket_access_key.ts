// Access keys: registered with engines that store keys themselves, and removed when they expire.
import { driverContext, DriverError, type Desired } from '../../core/driver';
import type { AccessKeyDriver, AccessKeySpec } from '../../engines/object_storage';
import { wakeRows } from '../../db/loop_rows';
import { BucketAccessKey, statusAt } from '../../models/object_storage/bucket_access_key';
import { keysWithoutRow } from '../../models/object_storage/bucket/job_queries';
import { openSecret } from '../../models/object_storage/bucket_access_key/secret';
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

type KeyRow = LoopRow &
  Pick<
    BucketAccessKey,
    'project_id' | 'access_key_id' | 'sealed_secret' | 'enabled' | 'expires_at' | 'status' | 'grants'
  >;

const OBSERVE_MS = 5_000;
const RETRY_MS = 3_600_000;

const leftovers: Leftovers = {
  kind: 'bucket_access_key',
  async *list({ host }, ctx) {
    const keys = host?.objectStorage?.keys;
    if (!keys) return;
    const ids: string[] = [];
    for await (const { owner_id } of keys.list(ctx)) ids.push(owner_id);
    yield* allAtOnce(Promise.resolve(ids));
  },
  withoutRow: keysWithoutRow,
};

export const job: Job<KeyRow> = {
  table: BucketAccessKey.table,
  host: true,
  leftovers: [leftovers],
  quiet: true,
  states: BucketAccessKey.states,
  park,
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : reconcile(row, ctx)),
};

async function reconcile(row: KeyRow, ctx: JobContext): Promise<Outcome> {
  const storage = requireHost(ctx).objectStorage;
  const status = statusAt(row, Date.now());
  if (storage?.keys) await applyKey(storage.keys, row, ctx);
  const untilExpiryMs = row.expires_at && status !== 'expired' ? Date.parse(row.expires_at) - Date.now() : null;
  const nextMs = untilExpiryMs === null ? null : Math.max(untilExpiryMs, 1);
  return storage
    ? settled({ status }, nextMs)
    : progressing(Math.min(jittered(RETRY_MS), nextMs ?? RETRY_MS), { status });
}

/** The key, and then the buckets that its grants concern. */
async function applyKey(driver: AccessKeyDriver, row: KeyRow, ctx: JobContext): Promise<void> {
  const desired = desiredKey(row, ctx);
  const observe = () => driver.observe(desired, driverContext(OBSERVE_MS, ctx.signal));
  const before = await observe();
  if (before.state !== 'present' || !before.upToDate) {
    if (row.driver === null) await ctx.record({ driver: driver.name });
    await driver.ensure(desired, before, ctx);
    const after = await observe();
    if (after.state !== 'present' || !after.upToDate)
      throw new DriverError('transient', 'The object storage has not applied the settings of the access key yet.');
  }
  await wakeBuckets(row, ctx);
}

/** In the bin: engines that store keys themselves have it no more. */
async function park(row: KeyRow, ctx: JobContext): Promise<Outcome> {
  const outcome = await tearDown(row, ctx);
  return outcome.kind === 'gone' ? settled({ driver: null }) : outcome;
}

async function tearDown(row: KeyRow, ctx: JobContext): Promise<Outcome> {
  const driver = requireHost(ctx).objectStorage?.keys;
  if (!driver) return gone;
  const desired = desiredKey(row, ctx);
  await driver.remove(desired, await driver.observe(desired, driverContext(OBSERVE_MS, ctx.signal)), ctx);
  await wakeBuckets(row, ctx);
  return gone;
}

/** Engines that store keys themselves keep grants in bucket policies. */
async function wakeBuckets({ project_id }: KeyRow, ctx: JobContext): Promise<void> {
  await wakeRows(ctx.sql, { table: 'buckets', where: 'project_id = $1 and deleted_at is null', values: [project_id] });
}

function desiredKey(row: KeyRow, ctx: JobContext): Desired<AccessKeySpec> {
  const { id, access_key_id } = row;
  const enabled = statusAt(row, Date.now()) === 'active';
  return { id, spec: { access_key_id, secret: openSecret(ctx.secrets, row), enabled } };
}
