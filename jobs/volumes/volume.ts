// Volumes: created, grown, measured, repaired and removed through the driver that each was created with.
import { driverContext, DriverError, type Desired, type ExternalRef, type Observation } from '../../core/driver';
import type { VolumeDriver, VolumeObserved, VolumeSpec } from '../../drivers/volume';
import type { LoopRow } from '../../db/lease';
import { withoutVolumeRow } from '../../models/periodic_task';
import { Volume } from '../../models/volumes/volume';
import type { Leftover, Leftovers } from '../declarations';
import { jittered, gone, progressing, settled, type Job, type JobContext, type Outcome, type Values } from '../job';
import { restoreFiles, type RestoringFrom } from './volume/restore';

interface VolumeRow extends LoopRow {
  project_id: string;
  size_gb: number;
  application_id: string | null;
  ref: ExternalRef | null;
  restoring_from: RestoringFrom | null;
  restore_failure: string | null;
}

type Observed = Observation<VolumeObserved>;

const MEASURE_MS = 60_000;
const OBSERVE_MS = 5_000;
/** Of steps other than restores. */
const STEP_MS = 25_000;
const RESTORE_MS = 12 * 3_600_000;

const LISTED_AT_ONCE = 500;

/** Data of users: they are reported, and an operator decides. */
const volumeLeftovers: Leftovers = {
  kind: 'volume',
  async *list({ volumes }, ctx) {
    for (const driver of volumes.byName.values()) {
      let batch: Leftover[] = [];
      for await (const { owner_id: id, ref } of driver.list(ctx)) {
        if (batch.push({ id, ref: { ...ref } }) < LISTED_AT_ONCE) continue;
        yield batch;
        batch = [];
      }
      if (batch.length) yield batch;
    }
  },
  withoutRow: withoutVolumeRow,
};

export const job: Job<VolumeRow> = {
  table: Volume.table,
  leftovers: [volumeLeftovers],
  states: Volume.states,
  watchFailedMs: MEASURE_MS,
  stepMs: RESTORE_MS,
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, withinStep(ctx)) : ensureOrRestore(row, ctx)),
};

async function ensureOrRestore(row: VolumeRow, ctx: JobContext): Promise<Outcome> {
  if (row.restoring_from === null || row.status === 'failed') return ensureVolume(row, withinStep(ctx));
  const driver = driverOf(row, ctx);
  if (row.driver === null) await ctx.record({ driver: driver.name });
  const restored = await restoreFiles({ ...row, restoring_from: row.restoring_from }, driver, desired(row), ctx);
  if (restored !== null) return restored;
  // Its files are in place.
  const columns = { restoring_from: null, restore_failure: null };
  const outcome = await ensureVolume({ ...row, ...columns }, withinStep(ctx));
  return outcome.kind === 'gone' ? outcome : { ...outcome, columns: { ...outcome.columns, ...columns } };
}

function withinStep(ctx: JobContext): JobContext {
  return { ...ctx, ...driverContext(STEP_MS, ctx.signal) };
}

async function ensureVolume(row: VolumeRow, ctx: JobContext): Promise<Outcome> {
  const driver = driverOf(row, ctx);
  const before = await observe(driver, row, ctx);
  if (before.state === 'present' && before.upToDate) return settledWith(row, driver, before.observed, null);
  // Its files may come back by themselves, for instance with the disk that they are on.
  if (ctx.gaveUp) return progressing(jittered(MEASURE_MS));
  // Recorded before the volume is created: after a crash its driver must be known, even if the default has changed.
  if (row.driver === null) await ctx.record({ driver: driver.name });
  const made = await driver.ensure(desired(row), before, ctx);
  if (made.requeueMs !== undefined) return progressing(made.requeueMs, { ref: made.ref });
  const after = await observe(driver, row, ctx);
  if (after.state === 'present' && (after.upToDate || made.waiting !== undefined))
    return settledWith({ ...row, ref: made.ref }, driver, after.observed, made.waiting ?? null);
  throw new DriverError('transient', 'The volume is not ready yet.');
}

async function tearDown(row: VolumeRow, ctx: JobContext): Promise<Outcome> {
  // No driver: nothing was ever made.
  if (row.driver === null) return gone;
  const driver = driverOf(row, ctx);
  await driver.remove(desired(row), await observe(driver, row, ctx), ctx);
  return gone;
}

/** @param waiting the pending change, see `Ensured` */
function settledWith(row: VolumeRow, driver: VolumeDriver, observed: VolumeObserved, waiting: string | null): Outcome {
  const columns: Values = {
    driver: driver.name,
    ref: row.ref ?? { driver: driver.name, name: row.id },
    observed: { ...observed },
    status: Volume.settledStatus(row),
    status_reason: waiting ?? row.restore_failure,
    enforcement: observed.enforcement,
    over_quota: observed.over_quota,
    // If the measurement timed out, the last value is kept.
    used_bytes: observed.used_bytes ?? undefined,
  };
  return settled(columns, jittered(MEASURE_MS));
}

// The driver that a volume was made with stays, whatever is the default of this host by now.
function driverOf(row: VolumeRow, ctx: JobContext): VolumeDriver {
  const { volumes } = ctx.drivers;
  const driver = row.driver === null ? volumes.default : volumes.byName.get(row.driver);
  if (!driver)
    throw new DriverError(
      'unsupported',
      'The volume driver that this volume was created with is not available on this host.',
    );
  return driver;
}

function observe(driver: VolumeDriver, row: VolumeRow, ctx: JobContext): Promise<Observed> {
  return driver.observe(desired(row), driverContext(OBSERVE_MS, ctx.signal));
}

function desired(row: VolumeRow): Desired<VolumeSpec> {
  return { id: row.id, spec: { project_id: row.project_id, size_gb: row.size_gb }, ...(row.ref && { ref: row.ref }) };
}
