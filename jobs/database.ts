// Databases: one server each, kept as its row wants it through the driver of its engine.
import type { Session } from '../db/database';
import { freeLeases } from '../db/lease';
import { ManagedDatabase } from '../models/database';
import { endPromotion, freePort, heldBy, lookAtAllServers } from '../models/database/work';
import { around, gone, progressing, settled, type Job, type JobContext, type Outcome } from './job';
import { provision, restart, restore, upgrade } from './database/change';
import { keep } from './database/keep';
import { engineOf, type DatabaseRow } from './database/row';

const MINUTE_MS = 60_000;
const HELD_MS = 500;
/** A last backup has days of grace. */
const KEPT_MS = 10 * MINUTE_MS;

const phases: Partial<Record<DatabaseRow['status'], (row: DatabaseRow, ctx: JobContext) => Promise<Outcome>>> = {
  provisioning: provision,
  restoring: restore,
  upgrading: upgrade,
  restarting: restart,
  // All that is left is to delete it.
  failed: () => Promise.resolve(settled()),
};

export const job: Job<DatabaseRow> = {
  table: ManagedDatabase.table,
  host: true,
  states: ManagedDatabase.states,
  // A restore of many gigabytes is one step.
  stepMs: 60 * MINUTE_MS,
  deadlineMs: 30 * MINUTE_MS,
  prepare,
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : (phases[row.status] ?? keep)(row, ctx)),
};

async function prepare(sql: Session): Promise<void> {
  await freeLeases(sql, ManagedDatabase.table);
  await lookAtAllServers(sql, ManagedDatabase.table);
}

/** The server goes at once, the row when its replicas, endpoints and backups have gone. */
async function tearDown(row: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  await engineOf(ctx, row.engine).remove(row.server_id, ctx);
  if (row.server_id !== row.id) await endPromotion(ctx.sql, row.server_id);
  await freePort(ctx.sql, row.id);
  const { kept, held } = await heldBy(ctx.sql, row.id);
  if (kept) return settled({}, around(KEPT_MS));
  return held ? progressing(HELD_MS) : gone;
}
