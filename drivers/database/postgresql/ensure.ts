// One reconciliation step of a server.
import { access, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DatabaseServer } from '../../database';
import { DriverError, checkpoint, driverContext } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import { shortenArchive } from './backups/archive_limit';
import { ensureProxy, networkProxy, stopProxy } from '../../hosted_server/access_proxy';
import { writeFileFor, ownerOf } from '../../hosted_server/server_directory';
import { beginToApply, noteApplied } from './applied';
import { noteArchiveBegins, noteArchiveEnds } from './backups/archiving';
import { keepTimelines } from './backups/timelines';
import { dataMajorOf, systemIdentifierOf, type Cluster, type PostgresqlContext } from './cluster';
import { configure } from './configuration';
import { ensureData, ensureServerDirectory } from './data';
import { runInBackground, requireIdle } from './background_work';
import { programsOf } from './programs';
import { ensureRights, ensureUsers } from './roles';
import { needsRestart, isPostgresRunning, stopPostgres, startPostgres, whenReady } from './server';
import { inSession } from './session';
import { pruneLog } from './log';
import { recoveryBytes, diskBytes } from '../disk_size';
import { growServerDisk } from '../../hosted_server/server_disk';
import { reviewStorage, type Stage } from './storage';

const readyWithinMs = 20_000;

/** @throws DriverError */
export async function ensure(
  engine: PostgresqlContext,
  spec: DatabaseServer,
  ctx: DriverContext,
): Promise<{ requeueMs?: number }> {
  const cluster = await clusterOf(engine, spec, ctx);
  const { serverDirectory } = cluster;
  if (
    engine.running.has(path.join(serverDirectory.path, 'data')) ||
    (await dataMajorOf(serverDirectory.data)) === null
  ) {
    await runInBackground(engine, 'data', serverDirectory.path, (own) => ensureData(cluster, own), ctx);
  }
  await requireIdle(serverDirectory.path);
  await ensureData(cluster, ctx);
  await shortenArchive(cluster, ctx);
  return ensureServer(cluster, ctx);
}

/** Server directory and programs of the version. */
export async function clusterOf(engine: PostgresqlContext, spec: DatabaseServer, ctx: DriverContext): Promise<Cluster> {
  const programs = await programsOf(engine, spec.version);
  return { engine, spec, programs, serverDirectory: await ensureServerDirectory(engine, spec, ctx) };
}

/** The same, for callers with exclusive access to the data. */
export async function ensureServer(cluster: Cluster, ctx: DriverContext): Promise<{ requeueMs?: number }> {
  const { serverDirectory, spec } = cluster;
  checkpoint(ctx);
  const major = await dataMajorOf(serverDirectory.data);
  if (major !== spec.version)
    throw new DriverError('conflict', `The data are of version ${major}. Upgrade the server to ${spec.version}.`);
  await beginToApply(cluster);
  const stage = await reviewStorage(cluster, ctx);
  const size = diskBytes(cluster.engine, spec) + (stage === 'hard' ? recoveryBytes(cluster.engine, spec) : 0);
  await growServerDisk(serverDirectory, size, () => stopPostgres(cluster, 'server', ctx), ctx);
  await noteArchiveEnds(cluster);
  const changed = await configure(
    cluster,
    serverDirectory.data,
    await systemIdentifierOf(serverDirectory.data),
    await ownerOf(serverDirectory),
    { kind: 'open', limit: stage },
    ctx,
  );
  await pruneLog(serverDirectory);
  const turned = await switchStandby(cluster, stage);
  if (!spec.running || turned || (await needsRestart(cluster))) await stopPostgres(cluster, 'server', ctx);
  if (!spec.running) {
    await stopProxy(cluster.engine, spec.id, ctx);
    return {};
  }
  await applyRunning(cluster, changed, ctx);
  await ensureProxy(networkProxy(cluster.engine), serverDirectory, spec, ctx);
  await noteArchiveBegins(cluster);
  await keepTimelines(serverDirectory);
  await noteApplied(cluster);
  return {};
}

/** Ensures users and database; nothing on a replica, which is the result. */
export function ensureLogins(
  cluster: Cluster,
  ctx: DriverContext,
  which: 'server' | 'staging' = 'server',
): Promise<'done' | 'follows'> {
  const { spec, serverDirectory } = cluster;
  return whenReady(
    cluster,
    which,
    { data: serverDirectory.data },
    async (session) => {
      const { rows } = await session.query<{ follows: boolean }>('select pg_is_in_recovery() as follows');
      if (rows[0]?.follows === true) return 'follows';
      await ensureUsers(session, spec);
      return 'done';
    },
    ctx,
  );
}

/** Ensures users, database and privileges; nothing on a replica. */
export async function ensureContent(cluster: Cluster, ctx: DriverContext): Promise<void> {
  const { spec, serverDirectory } = cluster;
  const logins = await ensureLogins(cluster, ctx);
  if (logins === 'done' && spec.database_name !== null)
    await inSession(cluster, { database: spec.database_name, data: serverDirectory.data }, (session) =>
      ensureRights(session, spec, (database, settings, work) =>
        inSession(cluster, { database, settings, data: serverDirectory.data }, work),
      ),
    );
}

async function applyRunning(cluster: Cluster, changed: 'same' | 'changed', ctx: DriverContext): Promise<void> {
  const soon = driverContext(readyWithinMs, ctx.signal);
  if (!(await isPostgresRunning(cluster))) await startPostgres(cluster, 'server', cluster.serverDirectory.data, ctx);
  else if (changed === 'changed') await reload(cluster, soon, ctx);
  await ensureContent(cluster, soon);
  await releaseSlots(cluster);
}

// A file makes a server a standby: a replica always has it, a full server has it temporarily.
async function switchStandby({ serverDirectory, spec }: Cluster, stage: Stage): Promise<boolean> {
  if (spec.replica_of !== null) return false;
  const file = path.join(serverDirectory.data, 'standby.signal');
  const isThere = await access(file).then(
    () => true,
    () => false,
  );
  const held = path.join(serverDirectory.path, 'held');
  const isOurs = await access(held).then(
    () => true,
    () => false,
  );
  if (stage === 'hard' && !isThere) {
    const owner = await ownerOf(serverDirectory);
    await writeFileFor(held, '', owner);
    await writeFileFor(file, '', owner);
    return true;
  }
  if (stage === 'hard' || !isOurs) return false;
  await rm(file, { force: true });
  await rm(held, { force: true });
  return true;
}

async function reload(cluster: Cluster, soon: DriverContext, ctx: DriverContext): Promise<void> {
  const {
    rows: [before],
  } = await whenReady(
    cluster,
    'server',
    {},
    async (session) => {
      const loaded = await session.query<{ at: string }>('select pg_conf_load_time()::text as at');
      await session.query('select pg_reload_conf()');
      return loaded;
    },
    soon,
  );
  for (;;) {
    const now = await whenReady(
      cluster,
      'server',
      {},
      async (session) => {
        const { rows } = await session.query<{ at: string; pending: boolean }>(
          // More locks can wait for the next restart; a replica must have them before its primary.
          `select pg_conf_load_time()::text as at, exists (select from pg_settings where pending_restart
            and (name <> 'max_locks_per_transaction' or pg_is_in_recovery())) as pending`,
        );
        return rows[0];
      },
      soon,
    );
    if (now?.at === before?.at) {
      checkpoint(soon);
      await sleep(50);
      continue;
    }
    if (now?.pending === true) await restart(cluster, ctx);
    return;
  }
}

async function restart(cluster: Cluster, ctx: DriverContext): Promise<void> {
  await stopPostgres(cluster, 'server', ctx);
  await startPostgres(cluster, 'server', cluster.serverDirectory.data, ctx);
}

// WAL kept for removed replicas would fill the disk.
async function releaseSlots({ spec, ...cluster }: Cluster): Promise<void> {
  const { replicas } = spec;
  if (replicas === undefined || spec.replica_of !== null) return;
  await inSession({ spec, ...cluster }, {}, (session) =>
    session.query(
      `select pg_drop_replication_slot(slot_name) from pg_replication_slots
        where slot_type = 'physical' and not active and not temporary and slot_name <> all($1)`,
      [replicas],
    ),
  );
}
