// Lifecycle of the data of a database: restored from a backup, from a replica or to a point in time, and upgraded to a
// newer version. Each operation stays recorded in the row until it is done, so it continues after a crash; what follows
// a failure is in failure.ts.
import { DriverError } from '../../../core/driver';
import { endPromotion, findServer, wakeReplicas } from '../../../models/databases/database/job_queries';
import { progressing, settled, type JobContext, type Outcome } from '../../job';
import { reconcileServer } from './reconcile';
import { requireEngineDriver, type DatabaseRow } from './row';
import { desiredServer, type DesiredServer } from './spec';

/** A new database begins empty, as a copy of another one, or as what a replica was. */
export async function provisionDatabase(row: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  if (row.observed?.begun || (row.server_id === row.id && !row.restore_from)) return reconcileServer(row, ctx);
  const engine = requireEngineDriver(ctx, row.engine);
  const desired = await desiredServer(row, ctx);
  if (row.server_id !== row.id) await promote(row, desired, ctx);
  else await engine.restore(desired, { id: 'copy', ...(await findOrigin(row, ctx)) }, ctx);
  await ctx.record({ driver: row.engine, observed: { ...row.observed, begun: true } });
  return progressing(0);
}

async function promote(row: DatabaseRow, desired: DesiredServer, ctx: JobContext): Promise<void> {
  await requireEngineDriver(ctx, row.engine).promote(desired, ctx);
  await endPromotion(ctx.sql, row.server_id);
}

async function findOrigin(
  { restore_from }: DatabaseRow,
  ctx: JobContext,
): Promise<{ server_id: string; backup_id: string | null; until: string | null }> {
  const server_id = restore_from && (await findServer(ctx.sql, restore_from.database_id));
  if (!restore_from || !server_id) throw new DriverError('invalid', 'The database to restore from no longer exists.');
  return { server_id, backup_id: restore_from.backup_id, until: restore_from.point_in_time };
}

export async function restoreDatabase(row: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  if (!row.restoring_from) return reconcileServer(row, ctx);
  const { backup_id, point_in_time } = row.restoring_from;
  const desired = await desiredServer(row, ctx);
  await requireEngineDriver(ctx, row.engine).restore(
    desired,
    { id: `v${row.version}`, server_id: row.server_id, backup_id, until: point_in_time },
    ctx,
  );
  await ctx.record({ restoring_from: null, observed: { ...row.observed, data: `restored by ${row.version}` } });
  await wakeReplicas(ctx.sql, row.id);
  return progressing(0);
}

export async function upgradeDatabase(row: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  const { wanted_version, engine_version } = row;
  if (!wanted_version || wanted_version === engine_version)
    return reconcileServer({ ...row, wanted_version: null }, ctx);
  const { id, spec } = await desiredServer(row, ctx);
  const desired = { id, spec: { ...spec, version: wanted_version } };
  await requireEngineDriver(ctx, row.engine).upgrade(desired, engine_version, ctx);
  await ctx.record({
    engine_version: wanted_version,
    wanted_version: null,
    observed: { ...row.observed, data: `of version ${wanted_version}` },
  });
  await wakeReplicas(ctx.sql, row.id);
  return progressing(0);
}

/** One that was in service before is looked at again and again: its server may run. */
export async function reviveDatabase(row: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  if (!row.observed?.begun) return settled();
  if (row.restoring_from) await ctx.record({ restoring_from: null });
  return reconcileServer(row, ctx);
}

/** Stopped once for this restart, then started as always. */
export async function restartDatabase(row: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  if (row.observed?.stopped_for === row.version) return reconcileServer(row, ctx);
  const engine = requireEngineDriver(ctx, row.engine);
  const { id, spec } = await desiredServer(row, ctx);
  const desired = { id, spec: { ...spec, running: false } };
  const { requeueMs } = await engine.ensure(desired, await engine.observe(desired, ctx), ctx);
  if (requeueMs !== undefined) return progressing(requeueMs);
  await ctx.record({ observed: { ...row.observed, stopped_for: row.version } });
  return progressing(0);
}
