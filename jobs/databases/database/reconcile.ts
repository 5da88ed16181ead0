// The server is brought to what its row wants, started again when it has ended, and looked at now and then.
import { isDeepStrictEqual } from 'node:util';
import { DriverError, StillRunning, isUpToDate, type Observation } from '../../../core/driver';
import type { EngineDriver, ObservedServer } from '../../../drivers/database';
import { markEndpointsApplied, markUsersApplied } from '../../../models/databases/database/job_queries';
import { endUnappliedRotations, endRotations } from '../../../models/databases/database_user/rotation';
import { restartForUsers } from '../../../models/databases/database_attachment/restart';
import { refreshPools } from '../database_endpoint/refresh_pools';
import { jittered, progressing, settled, type JobContext, type Outcome, type Values } from '../../job';
import { backoffAfterExit } from './exits';
import { applyExtensions } from './extensions';
import { retryReasonOf } from './failure';
import { measureServer } from './measure';
import { leaveTakenPort } from './port';
import { requireEngineDriver, isPastDeadline, type DatabaseRow } from './row';
import { desiredServer, type DesiredServer } from './spec';

const POLL_MS = 30_000;
/** While applications get a new password. */
const ROTATION_POLL_MS = 1_000;
const SOON_MS = 500;
const BUSY_MS = 2_000;
const FULL = 'The storage is full. Delete data or increase `storage_gb`; until then, writes fail.';

/** One step to what the row wants, and the outcome of it. */
export async function reconcileServer(row: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  const engine = requireEngineDriver(ctx, row);
  const wanted = await desiredServer(row, ctx);
  const before = await engine.observe(wanted, ctx);
  if (before.state === 'foreign') throw new DriverError('conflict', before.detail);
  const moved = await moveFromTakenPort(row, before, ctx);
  if (moved) return moved;
  const pause = await pauseAfterExit(row, before, ctx);
  if (pause) return pause;
  // A stopped one has nothing that could drift.
  if (!row.running && isUpToDate(before) && row.observed?.generation === row.generation)
    return settleServer(row, wanted, before.observed, engine, ctx);
  const cut = await endRotationWhereLoginsDiffer(row, wanted, engine, before, ctx);
  if (cut) return cut;
  const { requeueMs, failure } = await ensureServer(engine, wanted, before, ctx);
  if (requeueMs !== undefined)
    return progressing(requeueMs, { driver: row.engine, ...(failure && unfinished(row, failure)) });
  const after = await engine.observe(wanted, ctx);
  return isUpToDate(after)
    ? settleServer(row, wanted, after.observed, engine, ctx)
    : progressing(SOON_MS, { driver: row.engine });
}

/** Checked before each start: a server whose port is taken would be restarted for ever. */
async function moveFromTakenPort(
  row: DatabaseRow,
  before: Observation<ObservedServer>,
  ctx: JobContext,
): Promise<Outcome | null> {
  const isUp = before.state === 'present' && ['running', 'starting'].includes(before.observed.state);
  // In the cluster each has an address of its own.
  if (isUp || !row.running || row.on_cluster) return null;
  return leaveTakenPort({ kind: 'database', id: row.id, database_id: row.id }, row, ctx);
}

/** A second login must be equal to its user. Where code of the tenant would tell them apart, there is none. */
async function endRotationWhereLoginsDiffer(
  row: DatabaseRow,
  desired: DesiredServer,
  engine: EngineDriver,
  before: Observation<ObservedServer>,
  ctx: JobContext,
): Promise<Outcome | null> {
  const begins = desired.users.some(
    (user) => user.is_pending && user.login !== null && user.previous_password !== null,
  );
  if (!begins || !engine.secondLoginDiffers || !isRunning(before)) return null;
  const why = await engine.secondLoginDiffers(desired, ctx);
  if (why === null) return null;
  const names = await endUnappliedRotations(ctx.sql, row.id);
  if (!names.length) return null;
  const status_reason =
    `The previous password of ${names.join(', ')} ended at once instead of when all applications have the new one, ` +
    `because ${why}.`;
  return progressing(0, { status_reason });
}

/** The first failure may be a server that is slow; of the next one, the owner learns the reason. */
function unfinished({ observed }: DatabaseRow, failure: DriverError): Values {
  const status_reason = retryReasonOf(failure);
  return { observed: { ...observed, unfinished: true }, ...(observed?.unfinished && { status_reason }) };
}

/** A healthy server goes on with what it has: a running backup is no failure at all, others are tried again soon. */
async function ensureServer(
  engine: EngineDriver,
  desired: DesiredServer,
  before: Observation<ObservedServer>,
  ctx: JobContext,
): Promise<{ requeueMs?: number; failure?: DriverError }> {
  try {
    return await engine.ensure(desired, before, ctx);
  } catch (error) {
    if (!(error instanceof DriverError) || error.reason !== 'transient' || !isRunning(before) || ctx.signal.aborted)
      throw error;
    ctx.log.debug({ err: error }, 'not now');
    return {
      requeueMs: error.retryAfterMs ?? BUSY_MS,
      ...(!(error instanceof StillRunning) && { failure: error }),
    };
  }
}

function isRunning(observation: Observation<ObservedServer>): boolean {
  return observation.state === 'present' && observation.observed.state === 'running';
}

async function settleServer(
  row: DatabaseRow,
  desired: DesiredServer,
  seen: ObservedServer,
  engine: EngineDriver,
  ctx: JobContext,
): Promise<Outcome> {
  // Poolers must know a new password before it is reported as valid.
  if (row.observed?.generation !== row.generation) await refreshPools(row.id, ctx);
  const { storage_used_bytes, full } = seen;
  const observed = {
    ...row.observed,
    down: false,
    begun: true,
    data_missing: false,
    unfinished: false,
    degraded: seen.state === 'running' && seen.reason !== null,
    generation: row.generation,
    ...(seen.state === 'running' && { storage_used_bytes, full }),
  };
  if (seen.state !== 'running')
    return settled({ driver: row.engine, observed, status: 'stopped', status_reason: null });
  await recordApplied(row, desired, ctx);
  const { restarts } = await applyExtensions(row, desired, engine, ctx);
  const sample = await measureServer(
    engine,
    desired,
    seen,
    { project_id: row.project_id, database_id: row.id, part_id: row.id },
    row.observed?.sample,
    ctx,
  );
  const extensions = await engine.availableExtensions?.(desired, ctx);
  const columns: Values = {
    driver: row.engine,
    observed: { ...observed, sample, ...(extensions && { extensions }) },
    point_in_time_window: await readRestoreWindow(row, engine, ctx),
  };
  const rotating = await endRotations(ctx.sql, row.id);
  return settled(
    { ...columns, status: 'available', status_reason: statusReasonOf(row, seen) },
    restarts ? 0 : rotating ? ROTATION_POLL_MS : jittered(POLL_MS),
  );
}

/** Records the users, passwords and access rules that the server has applied. */
function recordApplied(
  row: DatabaseRow,
  { users, endpoints }: DesiredServer,
  { sql, secrets, config }: JobContext,
): Promise<void> {
  return sql.transaction(async (session) => {
    const changed = await markUsersApplied(session, users);
    await restartForUsers({ sql: session, secrets, config }, row.id, changed);
    await markEndpointsApplied(session, endpoints);
  });
}

// Why the last change failed stays until the next one.
function statusReasonOf(row: DatabaseRow, { full, reason }: ObservedServer): string | null {
  if (full) return FULL;
  if (reason !== null) return reason;
  const { down, data_missing, unfinished, degraded } = row.observed ?? {};
  const isOver = down || data_missing || unfinished || degraded || row.status_reason === FULL;
  const stays = row.status === 'available' && !isOver;
  return stays ? row.status_reason : null;
}

async function readRestoreWindow(
  row: DatabaseRow,
  engine: EngineDriver,
  ctx: JobContext,
): Promise<DatabaseRow['point_in_time_window']> {
  const found = await engine.window(row.server_id, ctx);
  const known = row.point_in_time_window;
  // Not for the milliseconds: a moment on the wire is compared as it stands.
  return isDeepStrictEqual(found, known) ? known : found;
}

async function pauseAfterExit(
  row: DatabaseRow,
  seen: Observation<ObservedServer>,
  ctx: JobContext,
): Promise<Outcome | null> {
  if (seen.state !== 'present' || seen.observed.state !== 'failed' || !row.running) return null;
  const stopped = seen.observed.reason ?? 'The server has stopped unexpectedly.';
  if (row.status === 'provisioning' && isPastDeadline(row)) throw new DriverError('invalid', stopped);
  return backoffAfterExit(
    {
      observed: row.observed,
      reason: `${stopped} The server is being restarted.`,
      line: { project_id: row.project_id, database_id: row.id, replica_id: null, source: 'server' },
    },
    ctx,
  );
}
