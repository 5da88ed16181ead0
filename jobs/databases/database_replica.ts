// Replicas: servers that replicate a primary, until they are removed or promoted to separate databases.
import { DriverError, isUpToDate, type Desired, type Observation } from '../../core/driver';
import type { EngineDriver, ObservedServer, ServerSpec } from '../../drivers/database';
import { findDatabase } from '../../models/databases/database_backup/job_queries';
import { DatabaseReplica } from '../../models/databases/database_replica';
import type { Session } from '../../db/control_database';
import { releaseAllLeases } from '../../db/lease';
import { openAdminPassword } from '../../models/databases/database/credentials';
import {
  allowedSourcesOf,
  directEndpoints,
  markEndpointsApplied,
  releasePort,
  wakeAllServers,
  desiredUsers,
  type DirectEndpoint,
} from '../../models/databases/database/job_queries';
import { serverLogins } from '../../models/databases/database_user/logins';
import { jittered, gone, progressing, settled, type Job, type JobContext, type LoopRow, type Outcome } from '../job';
import { ensureCertificate } from './database/certificate';
import { backoffAfterExit } from './database/exits';
import { recordingFailures } from './database/failure';
import { measureServer } from './database/measure';
import { leaveTakenPort } from './database/port';
import { requireEngineDriver, serverSizeOf, type DatabaseRow, type ServerProgress } from './database/row';
import type { DatabaseReplicaStatus } from '../../schema/types';

interface ReplicaRow extends LoopRow {
  project_id: string;
  database_id: string;
  database_package: string;
  status: DatabaseReplicaStatus;
  status_reason: string | null;
  server_id: string;
  port: number;
  tenant: number;
  tls_certificate: string | null;
  tls_key: string | null;
  observed: (ServerProgress & { follows?: string | null }) | null;
}

const MINUTE_MS = 60_000;
const POLL_MS = 15_000;
const SOON_MS = 500;
const WAIT_MS = 2_000;
const ANEW = 'The data of the database were restored or upgraded. The replica is being created again from them.';

export const job: Job<ReplicaRow> = {
  table: DatabaseReplica.table,
  host: true,
  units: { prefixes: ['rep'], column: 'server_id' },
  states: DatabaseReplica.states,
  // A copy of many gigabytes is one step.
  stepMs: 60 * MINUTE_MS,
  deadlineMs: 30 * MINUTE_MS,
  watchFailedMs: MINUTE_MS,
  prepare,
  park: (row, ctx) => recordingFailures(row, ctx, () => park(row, ctx)),
  reconcile: (row, ctx) => recordingFailures(row, ctx, () => reconcile(row, ctx)),
};

async function prepare(sql: Session): Promise<void> {
  await releaseAllLeases(sql, DatabaseReplica.table);
  await wakeAllServers(sql, DatabaseReplica.table);
}

async function reconcile(row: ReplicaRow, ctx: JobContext): Promise<Outcome> {
  const primary = await findDatabase<DatabaseRow>(ctx.sql, row.database_id);
  if (!primary) throw new Error('a replica without its database');
  if (row.deleted_at) return tearDown(row, primary, ctx);
  if (row.status === 'promoting') return settled();
  // Replication resumes once the primary is available again: a restore or an upgrade replaces its data.
  if (primary.status !== 'available' && primary.status !== 'stopped') return progressing(WAIT_MS);
  return reconcileReplica(row, primary, ctx);
}

async function reconcileReplica(row: ReplicaRow, primary: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  const engine = requireEngineDriver(ctx, primary);
  const anew = await recreateReplica(row, primary, engine, ctx);
  if (anew) return anew;
  const endpoints = await directEndpoints(ctx.sql, row.database_id, row.port);
  const desired = await desiredReplica(row, primary, endpoints, ctx);
  const before = await engine.observe(desired, ctx);
  if (before.state === 'foreign') throw new DriverError('conflict', before.detail);
  const isUp = before.state === 'present' && ['running', 'starting'].includes(before.observed.state);
  const owner = { kind: 'replica', id: row.id, database_id: row.database_id } as const;
  const moved = isUp ? null : await leaveTakenPort(owner, row, ctx);
  if (moved) return moved;
  const pause = await pauseAfterExit(row, before, ctx);
  if (pause) return pause;
  if (primary.status === 'stopped' && isUpToDate(before))
    return settleReplica(row, desired, before.observed, endpoints, primary, ctx);
  const { requeueMs } = await engine.ensure(desired, before, ctx);
  if (requeueMs !== undefined) return progressing(requeueMs, { driver: primary.engine });
  const after = await engine.observe(desired, ctx);
  return isUpToDate(after)
    ? settleReplica(row, desired, after.observed, endpoints, primary, ctx)
    : progressing(SOON_MS, { driver: primary.engine });
}

/** A restore or an upgrade has made other data of the primary's: it becomes a copy of those. */
async function recreateReplica(
  row: ReplicaRow,
  primary: DatabaseRow,
  engine: EngineDriver,
  ctx: JobContext,
): Promise<Outcome | null> {
  const follows = primary.observed?.data ?? null;
  const before = row.observed?.follows;
  if (before === follows) return null;
  const observed = { ...row.observed, follows };
  if (before === undefined || !engine.replicasEnd) return progressing(0, { observed });
  await engine.forget(row.server_id, ctx);
  return progressing(0, { observed, status: 'provisioning', status_reason: ANEW, replication_lag_seconds: null });
}

async function settleReplica(
  row: ReplicaRow,
  desired: Desired<ServerSpec>,
  seen: ObservedServer,
  endpoints: DirectEndpoint[],
  primary: DatabaseRow,
  ctx: JobContext,
): Promise<Outcome> {
  await markEndpointsApplied(ctx.sql, endpoints);
  const sample = await measureServer(
    requireEngineDriver(ctx, primary),
    desired,
    seen,
    { project_id: row.project_id, database_id: row.database_id, part_id: row.id },
    row.observed?.sample,
    ctx,
  );
  const observed = { ...row.observed, down: false, storage_used_bytes: seen.storage_used_bytes, sample };
  return settled(
    {
      driver: primary.engine,
      observed,
      status: 'available',
      status_reason: null,
      replication_lag_seconds: seen.replication_lag_seconds,
    },
    jittered(POLL_MS),
  );
}

async function desiredReplica(
  row: ReplicaRow,
  primary: DatabaseRow,
  endpoints: DirectEndpoint[],
  ctx: JobContext,
): Promise<Desired<ServerSpec>> {
  const admin_password = openAdminPassword(ctx.secrets, primary);
  const spec: ServerSpec = {
    engine: primary.engine,
    version: primary.engine_version,
    tenant: row.tenant,
    network: row.project_id,
    port: row.port,
    size: serverSizeOf(row.database_package),
    storage_gb: primary.storage_gb,
    running: true,
    database_name: primary.database_name,
    admin_password,
    users: (await desiredUsers(ctx.sql, ctx.secrets, primary.id)).flatMap(serverLogins),
    tls: await ensureCertificate(row, ctx),
    allowed_sources: allowedSourcesOf(endpoints, ctx.config),
    replica_of: {
      server_id: primary.server_id,
      port: primary.port,
      password: admin_password,
      size: serverSizeOf(primary.database_package),
    },
    archive: false,
  };
  return { id: row.server_id, spec };
}

async function pauseAfterExit(
  row: ReplicaRow,
  seen: Observation<ObservedServer>,
  ctx: JobContext,
): Promise<Outcome | null> {
  if (seen.state !== 'present' || seen.observed.state !== 'failed') return null;
  return backoffAfterExit(
    {
      observed: row.observed,
      reason: `${seen.observed.reason ?? 'The server has stopped unexpectedly.'} The server is being restarted.`,
      line: { project_id: row.project_id, database_id: row.database_id, replica_id: row.id, source: 'server' },
    },
    ctx,
  );
}

async function park(row: ReplicaRow, ctx: JobContext): Promise<Outcome> {
  const primary = await findDatabase<DatabaseRow>(ctx.sql, row.database_id);
  if (primary) await requireEngineDriver(ctx, primary).stop(row.server_id, ctx);
  return settled();
}

/** The server of a promoted replica is kept: it now belongs to another database. */
async function tearDown(row: ReplicaRow, primary: DatabaseRow, ctx: JobContext): Promise<Outcome> {
  if (row.status !== 'promoting') await requireEngineDriver(ctx, primary).forget(row.server_id, ctx);
  await releasePort(ctx.sql, row.id);
  return gone;
}
