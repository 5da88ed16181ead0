// Periodic work as rows with a due time: what is to be cleared away, and the look for orphans. One worker at a time does
// a task, whichever comes first.
import type { Owned } from '../drivers/driver';
import { expireBackups, scheduleBackups } from '../models/database_backup/work';
import {
  ensureSchedules,
  sweepActivity,
  sweepIdempotencyRecords,
  sweepInvitations,
  sweepRateWindows,
  sweepSessions,
  withoutVolumeRow,
  type Swept,
} from '../models/schedule';
import type { Session } from '../db/control_database';
import { rotateDays } from '../models/observation_day';
import { LOOK_MS, runAutoscalerTask } from './autoscaler';
import {
  jittered,
  progressing,
  settled,
  type Job,
  type JobContext,
  type LoopRow,
  type Outcome,
  type Values,
} from './job';

interface Task {
  everyMs: number;
  /** Bounded; answers whether there is more to do at once, and what to keep in the row for the operator. */
  run(ctx: JobContext): Promise<{ more: boolean; report: Values }>;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const BETWEEN_BATCHES_MS = 100;
const OWNED_BATCH = 500;
const REPORTED_MAX = 100;
const BACKUPS_AT_ONCE = 100;

const tasks: Record<string, Task> = {
  sweep_activity: { everyMs: HOUR_MS, run: (ctx) => runSweep(ctx, sweepActivity) },
  sweep_idempotency_records: { everyMs: 10 * MINUTE_MS, run: (ctx) => runSweep(ctx, sweepIdempotencyRecords) },
  sweep_sessions: { everyMs: HOUR_MS, run: (ctx) => runSweep(ctx, sweepSessions) },
  sweep_invitations: { everyMs: HOUR_MS, run: (ctx) => runSweep(ctx, sweepInvitations) },
  sweep_rate_windows: { everyMs: 10 * MINUTE_MS, run: (ctx) => runSweep(ctx, sweepRateWindows) },
  autoscale: { everyMs: LOOK_MS, run: runAutoscalerTask },
  turn_observation_days: { everyMs: HOUR_MS, run: rotateObservationDays },
  schedule_backups: { everyMs: MINUTE_MS, run: (ctx) => runBatch(ctx, scheduleBackups) },
  expire_backups: { everyMs: 10 * MINUTE_MS, run: (ctx) => runBatch(ctx, expireBackups) },
  find_orphans: { everyMs: HOUR_MS, run: findOrphans },
};

export const job: Job = {
  table: 'schedules',
  prepare: (sql) => ensureSchedules(sql, Object.keys(tasks)),
  reconcile,
};

async function reconcile(row: LoopRow, ctx: JobContext): Promise<Outcome> {
  const task = tasks[row.id];
  // Of another version of the program: its workers know what to do.
  if (!task) return progressing(HOUR_MS);
  const { more, report } = await task.run(ctx);
  return settled(
    { observed: { ...report, at: new Date().toISOString() } },
    more ? BETWEEN_BATCHES_MS : jittered(task.everyMs),
  );
}

async function runSweep(
  ctx: JobContext,
  sweep: (sql: Session) => Promise<Swept>,
): Promise<{ more: boolean; report: Values }> {
  const { rows, full } = await sweep(ctx.sql);
  if (rows) ctx.log.info({ rows }, 'swept');
  return { more: full, report: { rows } };
}

async function runBatch(
  ctx: JobContext,
  work: (sql: Session, batch: number) => Promise<number>,
): Promise<{ more: boolean; report: Values }> {
  const rows = await work(ctx.sql, BACKUPS_AT_ONCE);
  return { more: rows === BACKUPS_AT_ONCE, report: { rows } };
}

/** Logs and metrics are kept by the day: a day ahead is made, one that is over goes as a whole. */
async function rotateObservationDays(ctx: JobContext): Promise<{ more: boolean; report: Values }> {
  const { dropped, kept } = await rotateDays(ctx.sql);
  if (dropped) ctx.log.info({ partitions: dropped }, 'old logs and metrics dropped');
  return { more: false, report: { dropped, busy: kept } };
}

/** Things of ours on the host whose row is gone. They are reported, never touched: an operator decides. */
async function findOrphans(ctx: JobContext): Promise<{ more: boolean; report: Values }> {
  const orphans: Values[] = [];
  for (const driver of ctx.drivers.volumes.byName.values()) {
    for await (const batch of batches(driver.list(ctx))) {
      const lost = new Set(
        await withoutVolumeRow(
          ctx.sql,
          batch.map(({ owner_id }) => owner_id),
        ),
      );
      orphans.push(
        ...batch.filter(({ owner_id }) => lost.has(owner_id)).map(({ ref, owner_id }) => ({ ...ref, owner_id })),
      );
    }
  }
  for (const orphan of orphans) ctx.log.warn({ orphan }, 'an orphan: its resource is gone');
  return { more: false, report: { count: orphans.length, orphans: orphans.slice(0, REPORTED_MAX) } };
}

async function* batches(owned: AsyncIterable<Owned>): AsyncIterable<Owned[]> {
  let batch: Owned[] = [];
  for await (const one of owned) {
    if (batch.push(one) < OWNED_BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length) yield batch;
}
