// Endpoints. One at the port of a server is there with it: the job of the server says so. What has a port of its own needs
// something that listens there: a pooler, or what spreads connections over replicas.
import type { Desired } from '../drivers/driver';
import type { EndpointDriver, ObservedListener, ListenerSpec } from '../drivers/endpoint';
import type { Session } from '../db/database';
import { DatabaseEndpoint } from '../models/database_endpoint';
import { hasOwnPort, lookAtAllEndpoints } from '../models/database_endpoint/work';
import { freeLeases } from '../db/lease';
import { appendDatabaseLines } from '../models/log_line';
import { makeDatabaseDue } from '../models/database/due';
import { freePort, wakeReplicas } from '../models/database/work';
import { inTurn } from './database_endpoint/turn';
import { poolSpecOf, spreadSpecOf, type EndpointRow } from './database_endpoint/wanted';
import { around, gone, progressing, settled, type Job, type JobContext, type Outcome } from './job';
import { afterEnd } from './database/keep';
import { hostOf } from './database/row';

const MINUTE_MS = 60_000;
const LOOK_MS = 30_000;
const SOON_MS = 500;
const WAIT_MS = 3_000;

export const job: Job<EndpointRow> = {
  table: DatabaseEndpoint.table,
  host: true,
  quiet: true,
  states: DatabaseEndpoint.states,
  deadlineMs: 30 * MINUTE_MS,
  prepare,
  reconcile: (row, ctx) => inTurn(row.id, () => (row.deleted_at ? tearDown(row, ctx) : bringUp(row, ctx))),
};

async function prepare(sql: Session): Promise<void> {
  await freeLeases(sql, DatabaseEndpoint.table);
  await lookAtAllEndpoints(sql);
}

async function bringUp(row: EndpointRow, ctx: JobContext): Promise<Outcome> {
  const { pool, spread } = hostOf(ctx).endpoints;
  if (!(await hasOwnPort(ctx.sql, row.id))) return standBack(row, ctx);
  if (!row.pool_mode) return keep(row, spread, await spreadSpecOf(row, ctx), ctx);
  const spec = await poolSpecOf(row, ctx);
  // What is there stays as it is until the server answers.
  return spec ? keep(row, pool, spec, ctx) : settled({}, around(WAIT_MS));
}

async function keep<S extends ListenerSpec>(
  row: EndpointRow,
  driver: EndpointDriver<S>,
  spec: S,
  ctx: JobContext,
): Promise<Outcome> {
  const desired: Desired<S> = { id: row.id, spec };
  const before = await driver.observe(desired, ctx);
  const pause = before.state === 'present' && spec.running ? await pauseFor(row, before.observed, ctx) : null;
  if (pause) return pause;
  if (row.driver !== driver.name) await ctx.record({ driver: driver.name });
  const { ref } = await driver.ensure(desired, before, ctx);
  const after = await driver.observe(desired, ctx);
  if (after.state !== 'present' || !after.upToDate) return progressing(SOON_MS);
  return settled(
    { ref, observed: { ...row.observed, down: false }, status: 'active', status_reason: null },
    around(LOOK_MS),
  );
}

/** At the port of a server: what listened at one of its own goes. */
async function standBack(row: EndpointRow, ctx: JobContext): Promise<Outcome> {
  if (row.driver) await forget(row, ctx);
  if (row.status !== 'active') await tellServers(row, ctx);
  return settled({ driver: null, ref: null });
}

/** The end of a program that should run is told once, and each one makes the next wait longer. */
async function pauseFor(row: EndpointRow, seen: ObservedListener, ctx: JobContext): Promise<Outcome | null> {
  if (seen.state !== 'failed') return null;
  const reason = `${(seen.reason ?? 'It has ended.').replace('The server', 'What listens for the endpoint')} It is started again.`;
  const ends = afterEnd(row.observed);
  if (!row.observed?.down) {
    await appendDatabaseLines(ctx.sql, [
      {
        project_id: row.project_id,
        database_id: row.database_id,
        replica_id: row.replica_id,
        source: 'pooler',
        level: 'error',
        message: reason,
      },
    ]);
    return progressing(ends.waitMs, { observed: { ...row.observed, ...ends.known }, status_reason: reason });
  }
  if (ends.waitMs > 0) return progressing(ends.waitMs);
  await ctx.record({ observed: { ...row.observed, down: false } });
  return null;
}

async function tearDown(row: EndpointRow, ctx: JobContext): Promise<Outcome> {
  await forget(row, ctx);
  await tellServers(row, ctx);
  await freePort(ctx.sql, row.id);
  return gone;
}

async function forget({ id }: EndpointRow, ctx: JobContext): Promise<void> {
  for (const driver of Object.values(hostOf(ctx).endpoints) as { forget: EndpointDriver<ListenerSpec>['forget'] }[])
    await driver.forget(id, ctx);
}

async function tellServers({ database_id }: EndpointRow, ctx: JobContext): Promise<void> {
  await makeDatabaseDue(ctx.sql, database_id);
  await wakeReplicas(ctx.sql, database_id);
}
