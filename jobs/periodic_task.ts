// Periodic tasks as rows with a due time: cleanup, and the search for orphans. Each task runs in one worker at a time:
// the first that claims it.
import { diskUsedPercent } from '../drivers/host';
import { evictOldest, isBeingTornDown, type Evicted } from '../models/bin/evict';
import { emptyBin } from '../models/bin/purge';
import { expireBackups, scheduleBackups } from '../models/databases/database_backup/job_queries';
import { expireVolumeBackups, scheduleVolumeBackups } from '../models/volumes/volume_backup/job_queries';
import { scheduleProof } from '../models/databases/database_proof';
import { warnOfCertificates } from '../models/domains/certificate/expiry_warnings';
import { sweepIncidents } from '../models/observers/notification/delivery';
import { remindOfIncidents } from '../models/observers/observer/incident_moves';
import { watchRegions } from '../models/observers/observer/region_watch';
import { trimUndos } from '../models/projects/activity/keep_undo';
import { ensureSchedules, RETENTIONS, sweep, type Swept } from '../models/periodic_task';
import { sweepRuns } from '../models/runs/run/job_queries';
import { sweepScheduleFirings } from '../models/runs/schedule/sweep';
import { sweepSourceUploads } from '../models/deployments/source_upload/job_queries';
import type { Session } from '../db/control_database';
import { rotateDays } from '../models/observers/observation_day';
import { allLeftovers } from './all_jobs';
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
  /** Bounded. @param before what the last run has kept in the row */
  run(ctx: JobContext, before: Values): Promise<Ran>;
}

interface Ran {
  /** Whether there is more to do at once. */
  more: boolean;
  /** When to run again otherwise, in the place of `everyMs`. */
  nextMs?: number;
  /** What to keep in the row for the operator. */
  report: Values;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const BETWEEN_BATCHES_MS = 100;
const REPORTED_MAX = 100;
const BACKUPS_AT_ONCE = 100;
const PURGED_AT_ONCE = 20;
/** Between two looks at a disk that is too full. */
const EVICTED_MS = 3_000;

const retentions = RETENTIONS.map((retention): [string, Task] => [
  `sweep_${retention.table}`,
  { everyMs: retention.everyMs, run: (ctx) => runSweep(ctx, (sql) => sweep(sql, retention)) },
]);

const tasks: Record<string, Task> = {
  ...Object.fromEntries(retentions),
  sweep_source_uploads: { everyMs: HOUR_MS, run: (ctx) => runSweep(ctx, sweepSourceUploads) },
  trim_activity_undos: { everyMs: 10 * MINUTE_MS, run: trimAllUndos },
  sweep_runs: { everyMs: HOUR_MS, run: (ctx) => runSweep(ctx, sweepRuns) },
  sweep_schedule_firings: { everyMs: HOUR_MS, run: (ctx) => runSweep(ctx, sweepScheduleFirings) },
  turn_observation_days: { everyMs: HOUR_MS, run: rotateObservationDays },
  remind_of_incidents: { everyMs: MINUTE_MS / 4, run: (ctx) => runBatch(ctx, remindAtOnce) },
  watch_regions: { everyMs: MINUTE_MS / 6, run: watchAllRegions },
  sweep_incidents: { everyMs: HOUR_MS, run: (ctx) => runBatch(ctx, sweepIncidents) },
  schedule_backups: { everyMs: MINUTE_MS, run: (ctx) => runBatch(ctx, scheduleBackups) },
  schedule_volume_backups: { everyMs: MINUTE_MS / 2, run: scheduleVolumesAtOnce },
  expire_volume_backups: { everyMs: 10 * MINUTE_MS, run: (ctx) => runBatch(ctx, expireVolumeBackups) },
  prove_backups: { everyMs: MINUTE_MS / 2, run: proveNext },
  warn_of_certificates: { everyMs: 10 * MINUTE_MS, run: warnAtOnce },
  expire_backups: { everyMs: 10 * MINUTE_MS, run: (ctx) => runBatch(ctx, expireBackups) },
  empty_bin: { everyMs: MINUTE_MS, run: emptyBinAtOnce },
  find_orphans: { everyMs: HOUR_MS, run: findOrphans },
};

export const job: Job = {
  table: 'schedules',
  prepare: (sql) => ensureSchedules(sql, Object.keys(tasks)),
  reconcile,
};

async function reconcile(row: LoopRow, ctx: JobContext): Promise<Outcome> {
  const task = tasks[row.id];
  // A task of another program version, which its own workers run.
  if (!task) return progressing(HOUR_MS);
  const { more, nextMs, report } = await task.run(ctx, (row.observed as Values | null) ?? {});
  return settled(
    { observed: { ...report, at: new Date().toISOString() } },
    more ? BETWEEN_BATCHES_MS : (nextMs ?? jittered(task.everyMs)),
  );
}

async function runSweep(ctx: JobContext, sweep: (sql: Session) => Promise<Swept>): Promise<Ran> {
  const { rows, full } = await sweep(ctx.sql);
  if (rows) ctx.log.info({ rows }, 'swept');
  return { more: full, report: { rows } };
}

async function runBatch(ctx: JobContext, work: (sql: Session, batch: number) => Promise<number>): Promise<Ran> {
  const rows = await work(ctx.sql, BACKUPS_AT_ONCE);
  return { more: rows === BACKUPS_AT_ONCE, report: { rows } };
}

/** Logs and metrics are kept by the day: a day ahead is made, one that is over goes as a whole. */
async function rotateObservationDays(ctx: JobContext): Promise<Ran> {
  const { dropped, kept } = await rotateDays(ctx.sql);
  if (dropped) ctx.log.info({ partitions: dropped }, 'old logs and metrics dropped');
  return { more: false, report: { dropped, busy: kept } };
}

/** The values from before changes, where a project has too many of them. */
async function trimAllUndos(ctx: JobContext): Promise<Ran> {
  return { more: false, report: { projects: await trimUndos(ctx.sql) } };
}

/** The reminder of an incident and its messages are written together. */
function remindAtOnce(sql: Session, batch: number): Promise<number> {
  return sql.transaction((session) => remindOfIncidents(session, batch));
}

/** The backup of a due time and the next due time are written together. */
function scheduleVolumesAtOnce(ctx: JobContext): Promise<Ran> {
  return runBatch(ctx, (session, batch) =>
    session.transaction((sql) => scheduleVolumeBackups({ sql, secrets: ctx.secrets }, batch)),
  );
}

async function emptyBinAtOnce(ctx: JobContext, { evicted = null }: Values): Promise<Ran> {
  const rows = await emptyBin(ctx, PURGED_AT_ONCE);
  if (rows === PURGED_AT_ONCE) return { more: true, report: { rows, evicted } };
  const next = await evictOne(ctx, evicted as Evicted | null);
  return { more: false, ...(next && { nextMs: EVICTED_MS }), report: { rows, evicted: next } };
}

/** One after the other: only a disk whose room was made tells whether another must go. @returns the one that goes */
async function evictOne(ctx: JobContext, before: Evicted | null): Promise<Evicted | null> {
  const { evictDeletedAboveDiskPercent: limit, dataDir } = ctx.config;
  if (limit === null) return null;
  if (before && (await isBeingTornDown(ctx.sql, before))) return before;
  const percent = await diskUsedPercent(dataDir);
  if (percent === null || percent <= limit) return null;
  const evicted = await evictOldest(ctx);
  if (evicted)
    ctx.log.warn({ ...evicted, disk_percent: percent }, 'the disk is full: a deleted resource was removed for good');
  return evicted;
}

/** One at a time: the next minute has its own. */
async function proveNext({ sql, config }: JobContext): Promise<Ran> {
  return { more: false, report: { begun: await scheduleProof(sql, config.databasePorts) } };
}

function warnAtOnce(ctx: JobContext): Promise<Ran> {
  return runBatch(ctx, (sql, batch) => warnOfCertificates(sql, batch, ctx));
}

/** Finds regions without a verdict, and regions with late checks. */
async function watchAllRegions({ sql, config, log }: JobContext): Promise<Ran> {
  const watch = { lostSeconds: config.probeLostSeconds, log };
  return { more: false, report: { changed: await sql.transaction((session) => watchRegions(session, watch)) } };
}

/** Reports leftovers of deleted rows that hold data. They are never removed: the operator decides. */
async function findOrphans(ctx: JobContext): Promise<Ran> {
  const orphans: Values[] = [];
  for (const { list, withoutRow } of allLeftovers().filter(({ remove }) => !remove)) {
    for await (const batch of list(ctx.drivers, ctx)) {
      const ids = batch.map(({ id }) => id);
      const gone = new Set(await withoutRow(ctx.sql, ids));
      orphans.push(...batch.filter(({ id }) => gone.has(id)).map(({ id, ref }) => ({ ...ref, owner_id: id })));
    }
  }
  for (const orphan of orphans) ctx.log.warn({ orphan }, 'an orphan: its resource is gone');
  return { more: false, report: { count: orphans.length, orphans: orphans.slice(0, REPORTED_MAX) } };
}
