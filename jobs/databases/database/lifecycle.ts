// The steps of the data of a database, and of its restart (steps.ts).
import { randomBytes } from 'node:crypto';
import { DriverError, StillRunning, type Desired } from '../../../core/driver';
import type { MaskRule } from '../../../core/mask_rules';
import type { RestoreFrom, ServerSpec } from '../../../drivers/database';
import { databaseStatus } from '../../../models/databases/database_proof';
import { endPromotion, findServer, wakeReplicas } from '../../../models/databases/database/job_queries';
import { progressing, settled, type JobContext, type Outcome, type Values } from '../../job';
import { reconcileServer } from './reconcile';
import { requireEngineDriver, type DatabaseRow } from './row';
import { desiredServer } from './spec';

const WATCH_MS = 2_000;

export async function promoteServer(row: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  await requireEngineDriver(ctx, row).promote(await desiredServer(row, ctx), ctx);
  await endPromotion(ctx.sql, row.server_id);
  return progressing(0, begunWith(row));
}

export async function copyData(row: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  const desired = await desiredServer(row, ctx);
  const origin = await findOrigin(row, ctx);
  if (row.mask) return copyMasked({ ...row, mask: row.mask }, desired, origin, ctx);
  const from = { id: 'copy', ...origin };
  await requireEngineDriver(ctx, row).restore(desired, from, ctx);
  return progressing(0, begunWith(row));
}

/** Nobody gets in until it is done: the server is stopped, and has neither users nor passwords of the rows. */
async function copyMasked(
  row: DatabaseRow & { mask: readonly MaskRule[] },
  { id, spec }: Desired<ServerSpec>,
  { server_id, backup_id }: Omit<RestoreFrom, 'id'>,
  ctx: JobContext,
): Promise<Outcome> {
  const driver = requireEngineDriver(ctx, row);
  if (!driver.copyMasked || backup_id === null)
    throw new DriverError('unsupported', 'This host cannot mask databases of this engine.');
  const users = spec.users.filter(({ second_of }) => second_of === undefined);
  const closed: ServerSpec = {
    ...{ ...spec, running: false, archive: false, allowed_sources: [], replicas: [] },
    users: users.map(({ username, access }) => ({ username, access, password: randomPassword() })),
  };
  const from = { server_id, backup_id };
  const copying = untilDeleted(row.id, ctx, async (own) =>
    driver.copyMasked!({ id, spec: closed }, from, row.mask, own),
  );
  const { unmasked } = await copying.catch(async (error) => {
    // The next attempt begins anew: nothing that is half masked stays.
    if (!(error instanceof StillRunning) && !ctx.signal.aborted) await driver.forget(id, ctx);
    throw error;
  });
  return progressing(0, { ...begunWith(row), unmasked_columns: unmasked });
}

/** An expression may take hours. The signal of the work ends with the database. */
async function untilDeleted<T>(id: string, ctx: JobContext, work: (own: JobContext) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const look = async (): Promise<void> => {
    if ((await databaseStatus(ctx.sql, id)) === null) stop.abort();
  };
  const timer = setInterval(() => void look().catch(() => undefined), WATCH_MS);
  try {
    return await work({ ...ctx, signal: AbortSignal.any([ctx.signal, stop.signal]) });
  } finally {
    clearInterval(timer);
  }
}

const randomPassword = (): string => randomBytes(24).toString('base64url');

function begunWith({ engine, observed }: DatabaseRow): Values {
  return { driver: engine, observed: { ...observed, begun: true } };
}

async function findOrigin(
  { restore_from }: DatabaseRow,
  ctx: JobContext,
): Promise<{ server_id: string; backup_id: string | null; until: string | null }> {
  const server_id = restore_from && (await findServer(ctx.sql, restore_from.database_id));
  if (!restore_from || !server_id) throw new DriverError('invalid', 'The database to restore from no longer exists.');
  return { server_id, backup_id: restore_from.backup_id, until: restore_from.point_in_time };
}

/** Replicas that are woken before the row is written wait until the database is available again. */
export async function restoreData(row: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  const { backup_id = null, point_in_time = null } = row.restoring_from ?? {};
  const desired = await desiredServer(row, ctx);
  const from = { id: `v${row.version}`, server_id: row.server_id, backup_id, until: point_in_time };
  await requireEngineDriver(ctx, row).restore(desired, from, ctx);
  await wakeReplicas(ctx.sql, row.id);
  return progressing(0, { restoring_from: null, observed: { ...row.observed, data: `restored by ${row.version}` } });
}

export async function upgradeData(row: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  const version = row.wanted_version ?? row.engine_version;
  const { id, spec } = await desiredServer(row, ctx);
  await requireEngineDriver(ctx, row).upgrade({ id, spec: { ...spec, version } }, row.engine_version, ctx);
  await wakeReplicas(ctx.sql, row.id);
  return progressing(0, {
    engine_version: version,
    wanted_version: null,
    observed: { ...row.observed, data: `of version ${version}` },
  });
}

export async function stopForRestart(row: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  const engine = requireEngineDriver(ctx, row);
  const { id, spec } = await desiredServer(row, ctx);
  const desired = { id, spec: { ...spec, running: false } };
  const { requeueMs } = await engine.ensure(desired, await engine.observe(desired, ctx), ctx);
  return requeueMs === undefined
    ? progressing(0, { observed: { ...row.observed, stopped_for: row.version } })
    : progressing(requeueMs);
}

/** One that was in service before is looked at again and again: its server may run. */
export async function reviveServer(row: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  if (!row.observed?.begun) return settled();
  if (row.restoring_from) await ctx.record({ restoring_from: null });
  return reconcileServer(row, ctx);
}
