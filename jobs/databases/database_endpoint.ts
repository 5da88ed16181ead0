// Database endpoints. An endpoint at the server's port is ready when the server is; the server's job marks it. An
// endpoint with a separate port needs a listener: a pooler, or a load balancer over replicas.
import type { Desired, DriverContext } from '../../core/driver';
import type { EndpointDriver, ObservedListener, ListenerSpec } from '../../drivers/endpoint';
import type { Session } from '../../db/control_database';
import { DatabaseEndpoint } from '../../models/databases/database_endpoint';
import {
  endpointsWithoutRow,
  hasOwnPort,
  wakeAllEndpoints,
  loggedEndpoints,
} from '../../models/databases/database_endpoint/job_queries';
import { releaseAllLeases } from '../../db/lease';
import { wakeDatabase } from '../../models/databases/database/wake';
import { releasePort, wakeReplicas } from '../../models/databases/database/job_queries';
import { openEndpoints } from './database/drivers';
import { withEndpointLock } from './database_endpoint/endpoint_lock';
import { desiredPool, desiredSpread, type EndpointRow } from './database_endpoint/desired';
import {
  jittered,
  gone,
  progressing,
  settled,
  type Job,
  type JobContext,
  type Outcome,
  requireHost,
  type HostDrivers,
} from '../job';
import type { Leftovers, LogSource } from '../declarations';
import { leaveTakenPort } from './database/port';
import { backoffAfterExit } from './database/exits';
import { recordingFailures } from './database/failure';
import type { Sql } from '../../core/context';
import { levelOf } from '../../core/log/log_level';
import { appendDatabaseLines } from '../../models/applications/log_line';

const MINUTE_MS = 60_000;
const POLL_MS = 30_000;
const SOON_MS = 500;
const WAIT_MS = 3_000;

const listenerLeftovers: Leftovers = {
  kind: 'endpoint',
  async *list({ host }, ctx) {
    for (const driver of Object.values(host?.endpoints ?? {}))
      for await (const one of driver.list(ctx)) yield [{ id: one.owner_id }];
  },
  withoutRow: endpointsWithoutRow,
  remove: (id, host, ctx) => forgetEverywhere(id, host, ctx),
};

export const job: Job<EndpointRow> = {
  table: DatabaseEndpoint.table,
  host: true,
  quiet: true,
  units: { prefixes: ['dbe'], column: 'id' },
  leftovers: [listenerLeftovers],
  logs: endpointLogs,
  openDrivers: openEndpoints,
  states: DatabaseEndpoint.states,
  deadlineMs: 30 * MINUTE_MS,
  watchFailedMs: MINUTE_MS,
  prepare,
  park: (row, ctx) => withEndpointLock(row.id, () => park(row, ctx)),
  reconcile: (row, ctx) =>
    withEndpointLock(row.id, () =>
      row.deleted_at ? tearDown(row, ctx) : recordingFailures(row, ctx, () => reconcileEndpoint(row, ctx)),
    ),
};

async function prepare(sql: Session): Promise<void> {
  await releaseAllLeases(sql, DatabaseEndpoint.table);
  await wakeAllEndpoints(sql);
}

async function reconcileEndpoint(row: EndpointRow, ctx: JobContext): Promise<Outcome> {
  const { pool, spread } = requireHost(ctx).endpoints;
  if (!(await hasOwnPort(ctx.sql, row.id))) return useServerPort(row, ctx);
  if (!row.pool_mode) return ensureListener(row, spread, await desiredSpread(row, ctx), ctx);
  const spec = await desiredPool(row, ctx);
  // Without a response of the server, the existing listener stays unchanged.
  return spec ? ensureListener(row, pool, spec, ctx) : settled({}, jittered(WAIT_MS));
}

async function ensureListener<S extends ListenerSpec>(
  row: EndpointRow,
  driver: EndpointDriver<S>,
  spec: S,
  ctx: JobContext,
): Promise<Outcome> {
  const desired: Desired<S> = { id: row.id, spec };
  const before = await driver.observe(desired, ctx);
  const isUp = before.state === 'present' && before.observed.state === 'running';
  const owner = { kind: 'endpoint', id: row.id, database_id: row.database_id } as const;
  const moved = isUp || !spec.running ? null : await leaveTakenPort(owner, row, ctx);
  if (moved) return moved;
  const pause = before.state === 'present' && spec.running ? await pauseAfterExit(row, before.observed, ctx) : null;
  if (pause) return pause;
  if (row.driver !== driver.name) await ctx.record({ driver: driver.name });
  const { ref } = await driver.ensure(desired, before, ctx);
  const after = await driver.observe(desired, ctx);
  if (after.state !== 'present' || !after.upToDate) return progressing(SOON_MS);
  return settled(
    { ref, observed: { ...row.observed, down: false }, status: 'active', status_reason: null },
    jittered(POLL_MS),
  );
}

/** The endpoint uses the server's port: removes listeners on a separate port. */
async function useServerPort(row: EndpointRow, ctx: JobContext): Promise<Outcome> {
  if (row.driver) await removeListeners(row, ctx);
  if (row.status !== 'active') await wakeServers(row, ctx);
  return settled({ driver: null, ref: null });
}

async function pauseAfterExit(row: EndpointRow, seen: ObservedListener, ctx: JobContext): Promise<Outcome | null> {
  if (seen.state !== 'failed') return null;
  const stopped = seen.reason ?? 'The server has stopped unexpectedly.';
  const { project_id, database_id, replica_id, observed } = row;
  return backoffAfterExit(
    {
      observed,
      reason: `${stopped.replace('The server', 'The listener of the endpoint')} The listener is being restarted.`,
      line: { project_id, database_id, replica_id, source: 'pooler' },
    },
    ctx,
  );
}

/** A listener has no data: it is made again. */
async function park(row: EndpointRow, ctx: JobContext): Promise<Outcome> {
  await removeListeners(row, ctx);
  return settled({ driver: null, ref: null });
}

async function tearDown(row: EndpointRow, ctx: JobContext): Promise<Outcome> {
  await removeListeners(row, ctx);
  await wakeServers(row, ctx);
  await releasePort(ctx.sql, row.id);
  return gone;
}

async function removeListeners({ id }: EndpointRow, ctx: JobContext): Promise<void> {
  await forgetEverywhere(id, requireHost(ctx), ctx);
}

async function forgetEverywhere(id: string, { endpoints }: HostDrivers, ctx: DriverContext): Promise<void> {
  await endpoints.pool.forget(id, ctx);
  await endpoints.spread.forget(id, ctx);
}

async function wakeServers({ database_id }: EndpointRow, ctx: JobContext): Promise<void> {
  await wakeDatabase(ctx.sql, database_id);
  await wakeReplicas(ctx.sql, database_id);
}

async function endpointLogs(sql: Sql, { endpoints }: HostDrivers): Promise<LogSource[]> {
  const found = await loggedEndpoints(sql);
  return found.map(({ id, pooled, ...origin }): LogSource => {
    const driver = pooled ? endpoints.pool : endpoints.spread;
    return {
      // The name of the unit, so that the position stays as long as that.
      key: `${id}.server`,
      read: (position) => driver.readLog(id, position),
      append: (session, lines) =>
        appendDatabaseLines(
          session,
          lines.map((message) => ({ ...origin, source: 'pooler', level: levelOf(message), message })),
        ),
    };
  });
}
