// Observes a server: its unit, its response, its storage. Read-only.
import type { DatabaseServer, ObservedServer, ServerMetrics } from '../../database';
import { DriverError } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import { networkProxy, proxyDifference } from '../../hosted_server/access_proxy';
import { readNote, type ServerDirectory } from '../../hosted_server/server_directory';
import type { Inspected } from '../../hosted_server/driver';
import { endReasonOf, stateOf } from '../../hosted_server/unit';
import { dataMajorOf, type Cluster, type PostgresqlContext } from './cluster';
import { isApplied } from './applied';
import { programsOf } from './programs';
import { needsRestart } from './server';
import { inSession, isUnavailable, type Session } from './session';
import { isArchiveTooLarge } from './backups/archive_limit';
import { nextStage, storageOf, type Stage } from './storage';

const answerWithinMs = 4_000;
const nothingObserved: Omit<ObservedServer, 'state'> = {
  storage_used_bytes: null,
  full: false,
  replication_lag_seconds: null,
  reason: null,
};

/** @throws DriverError conflict where another server responds in its place */
export async function inspect(
  engine: PostgresqlContext,
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  ctx: DriverContext,
): Promise<Inspected<ObservedServer>> {
  if ((await readNote(serverDirectory, 'made')) === null)
    return { observed: { ...nothingObserved, state: 'starting' }, diff: 'it has no data yet' };
  const cluster: Cluster = { engine, serverDirectory, spec, programs: await programsOf(engine, spec.version) };
  const { usedBytes, stage } = await storageOf(cluster, ctx);
  const observed = { ...nothingObserved, storage_used_bytes: usedBytes, full: stage !== 'none' };
  const { state } = await stateOf(engine, spec.id);
  if (state.state === 'running')
    return inspectRunning(cluster, observed, await limitDifference(cluster, usedBytes, stage, ctx));
  const diff = spec.running ? 'it does not run' : null;
  // A requested stop exits with 0.
  if (state.state === 'exited' && state.code !== 0)
    return { observed: { ...observed, state: 'failed', reason: endReasonOf(state) }, diff };
  return { observed: { ...observed, state: 'stopped' }, diff };
}

export async function metrics(cluster: Cluster): Promise<ServerMetrics> {
  const { engine, spec } = cluster;
  const { handle } = await stateOf(engine, spec.id);
  const usage = handle === null ? undefined : (await engine.runtime.usage([handle])).get(handle.unit_id);
  const counted =
    usage === undefined
      ? null
      : await inSession(cluster, { statementMs: answerWithinMs }, countersOf).catch(() => null);
  return {
    connections: null,
    transactions: null,
    read_operations: null,
    write_operations: null,
    ...counted,
    memory_bytes: usage?.memory_bytes ?? null,
    cpu_seconds: usage?.cpu_seconds ?? null,
  };
}

async function inspectRunning(
  cluster: Cluster,
  base: Omit<ObservedServer, 'state'>,
  limitDiffers: string | null,
): Promise<Inspected<ObservedServer>> {
  const { spec } = cluster;
  try {
    const { follows, lag, listens } = await inSession(cluster, { statementMs: answerWithinMs }, positionOf);
    const diff = (await differenceOf(cluster, follows, listens)) ?? limitDiffers;
    return { observed: { ...base, state: 'running', replication_lag_seconds: lag }, diff };
  } catch (error) {
    if (error instanceof DriverError) throw error;
    if (isUnavailable(error)) {
      const diff = spec.running ? 'it does not answer yet' : 'it should not run';
      return { observed: { ...base, state: 'starting' }, diff };
    }
    const reason = 'The server rejects the connection of the platform.';
    return { observed: { ...base, state: 'failed', reason }, diff: 'it rejects the platform' };
  }
}

async function limitDifference(
  cluster: Cluster,
  usedBytes: number | null,
  stage: Stage,
  ctx: DriverContext,
): Promise<string | null> {
  if (nextStage(cluster, usedBytes, stage) !== stage) return 'the limit of its storage';
  return (await isArchiveTooLarge(cluster, ctx)) ? 'the limit of its archive' : null;
}

async function differenceOf(cluster: Cluster, follows: boolean, listens: boolean): Promise<string | null> {
  const { spec, serverDirectory } = cluster;
  if (!spec.running) return 'it should not run';
  const major = await dataMajorOf(serverDirectory.data);
  if (major !== spec.version) return `its data are of version ${major}`;
  if (spec.replica_of !== null && !follows) return 'it does not follow its primary any more';
  if (!listens) return 'it takes no clients yet';
  if (await needsRestart(cluster)) return 'it runs with another size or program';
  if (!(await isApplied(cluster))) return 'it has other settings or users';
  return proxyDifference(networkProxy(cluster.engine), serverDirectory, spec);
}

interface Position {
  follows: boolean;
  /** Replication lag in seconds; null for a primary. */
  lag: number | null;
  listens: boolean;
}

// A server without listen addresses is closed to clients while its data are verified; a server that cannot bind its
// port exits at its start. A replica that has replayed all received WAL is up to date while it is connected to its
// primary.
async function positionOf(session: Session): Promise<Position> {
  const { rows } = await session.query<Position>(
    `select pg_is_in_recovery() as follows, current_setting('listen_addresses') <> '' as listens, case
       when not pg_is_in_recovery() then null
       when exists (select from pg_stat_wal_receiver where status = 'streaming')
         and pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() then 0
       else greatest(0, extract(epoch from now() - pg_last_xact_replay_timestamp()))::float8 end as lag`,
  );
  return rows[0] ?? { follows: false, lag: null, listens: false };
}

/** Counters of the server. */
export async function countersOf(
  session: Session,
): Promise<Pick<ServerMetrics, 'connections' | 'transactions' | 'read_operations' | 'write_operations'>> {
  const {
    rows: [major],
  } = await session.query<{ number: number }>("select current_setting('server_version_num')::int / 10000 as number");
  const written =
    (major?.number ?? 0) >= 17
      ? "select coalesce(sum(writes), 0) from pg_stat_io where object = 'relation'"
      : 'select buffers_checkpoint + buffers_clean + buffers_backend from pg_stat_bgwriter';
  const { rows } = await session.query<{
    connections: number;
    transactions: number;
    read_operations: number;
    write_operations: number;
  }>(
    `select (select count(*) from pg_stat_activity a join pg_roles r on r.rolname = a.usename
      where a.backend_type = 'client backend' and not r.rolsuper)::int as connections,
            sum(xact_commit + xact_rollback)::float8 as transactions, sum(blks_read)::float8 as read_operations,
              (${written})::float8 as write_operations
     from pg_stat_database where datname not in ('postgres', 'template0', 'template1')`,
  );
  return rows[0] ?? { connections: null, transactions: null, read_operations: null, write_operations: null };
}
