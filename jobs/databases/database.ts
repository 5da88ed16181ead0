// Databases: one server each, kept as its row wants it through the driver of its engine.
import { runSteps } from '../../core/steps';
import type { Session } from '../../db/control_database';
import { releaseAllLeases } from '../../db/lease';
import { ManagedDatabase } from '../../models/databases/database';
import { endPromotion, releasePort, findDependents, wakeAllServers } from '../../models/databases/database/job_queries';
import { serversWithoutRow } from '../../models/databases/database/servers';
import type { Leftovers } from '../declarations';
import { jittered, gone, progressing, settled, type Job, type JobContext, type Outcome } from '../job';
import { openEngines } from './database/drivers';
import { afterFailure, withinDeadline } from './database/failure';
import { databaseLogs } from './database/logs';
import { reportMissingData } from './database/missing_data';
import { requireEngineDriver, type DatabaseRow } from './database/row';
import { stepsFor } from './database/steps';

const MINUTE_MS = 60_000;
const HELD_MS = 500;
/** A last backup has days of grace. */
const KEPT_MS = 10 * MINUTE_MS;

/** Servers of the cluster, with data of users: they are reported, and an operator decides. */
const clusterLeftovers: Leftovers = {
  kind: 'database',
  async *list({ host }, ctx) {
    // Each of them lists the servers of all engines.
    const [driver] = host?.clusterDatabases.values() ?? [];
    if (!driver) return;
    for await (const { owner_id: id, ref } of driver.list(ctx)) yield [{ id, ref: { ...ref } }];
  },
  withoutRow: serversWithoutRow,
};

export const job: Job<DatabaseRow> = {
  table: ManagedDatabase.table,
  host: true,
  // A replica that was promoted goes on with its server.
  units: { prefixes: ['db', 'rep'], column: 'server_id' },
  leftovers: [clusterLeftovers],
  logs: databaseLogs,
  openDrivers: openEngines,
  states: ManagedDatabase.states,
  // A restore of many gigabytes is one step.
  stepMs: 60 * MINUTE_MS,
  deadlineMs: 30 * MINUTE_MS,
  watchFailedMs: MINUTE_MS,
  prepare,
  park,
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : reconcile(row, ctx)),
};

async function reconcile(row: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  try {
    const missing = await reportMissingData(row, ctx);
    if (missing) return missing;
    const outcome = await runSteps(stepsFor(row), row, ctx, (step) => step.run(row, ctx));
    return withinDeadline(row, outcome ?? settled());
  } catch (error) {
    return afterFailure(row, error, ctx);
  }
}

async function prepare(sql: Session): Promise<void> {
  await releaseAllLeases(sql, ManagedDatabase.table);
  await wakeAllServers(sql, ManagedDatabase.table);
}

/** In the bin the server is stopped, and its data, its port and its backups stay. */
async function park(row: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  await requireEngineDriver(ctx, row).stop(row.server_id, ctx);
  return settled();
}

/** The server goes at once, the row when its replicas, endpoints and backups have gone. */
async function tearDown(row: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  await requireEngineDriver(ctx, row).forget(row.server_id, ctx);
  if (row.server_id !== row.id) await endPromotion(ctx.sql, row.server_id);
  await releasePort(ctx.sql, row.id);
  const { kept, held } = await findDependents(ctx.sql, row.id);
  if (kept) return settled({}, jittered(KEPT_MS));
  return held ? progressing(HELD_MS) : gone;
}
