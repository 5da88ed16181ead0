// PostgreSQL: a cluster of its own for each server, a unit of the runtime.
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { PostgresqlFound } from '../../../core/host_facts';
import type { EngineDriver, ServerSpec } from '../../database';
import { DriverError, asDriverErrors, checkpoint, driverContext } from '../../driver';
import type { DriverContext } from '../../driver';
import type { RuntimeDriver } from '../../runtime';
import {
  findServerDirectory,
  serverDirectoryOf,
  listServerDirectories,
  removeServerDirectory,
  requireServerDirectory,
} from '../server_directory';
import { stateOf } from '../unit';
import { leadingOn } from './archiving';
import { backup, backupsFound, openBackup, removeBackup } from './backups';
import { backupsOf, systemIdentifierOf, type Cluster, type PostgresqlContext } from './cluster';
import { ensureServer, clusterOf, ensure } from './ensure';
import { cancelWork, runInBackground } from './background_work';
import { readLog } from './log';
import { pooledServer } from './pooled';
import { metrics, observe } from './observe';
import { programsOf } from './programs';
import { restore } from './restore';
import { stopServer, whenReady } from './server';
import { upgrade } from './upgrade';

/** `directory`: of the servers of all engines. `gigabyteBytes`: what one GB of `storage_gb` counts, 2^30 outside of tests. */
export interface PostgresqlOptions {
  runtime: RuntimeDriver;
  directory: string;
  found: PostgresqlFound[];
  gigabyteBytes?: number;
}

const promotedWithinMs = 60_000;
/** The archive is behind when a file of the log waits longer. */
const archivedWithinMs = 3 * 60_000;

export function openPostgresql(options: PostgresqlOptions): EngineDriver {
  const engine: PostgresqlContext = {
    ...options,
    gigabyteBytes: options.gigabyteBytes ?? 2 ** 30,
    name: 'postgresql',
    running: new Map(),
  };
  return {
    engine: 'postgresql',
    replicasEnd: true,
    versions: () => Promise.resolve(engine.found.map(({ series }) => series).sort((a, b) => Number(b) - Number(a))),
    observe: (spec, ctx) => asDriverErrors(() => observe(engine, spec, ctx)),
    ensure: (spec, ctx) => asDriverErrors(() => ensure(engine, spec, ctx)),
    remove: (id, ctx) => asDriverErrors(() => remove(engine, id, ctx)),
    list: () => asDriverErrors(() => listServerDirectories(engine)),
    backup: (spec, backupId, ctx) =>
      asDriverErrors(async () => backup(await presentCluster(engine, spec), backupId, ctx)),
    removeBackup: (serverId, backupId, ctx) => asDriverErrors(() => removeBackup(engine, serverId, backupId, ctx)),
    openBackup: (serverId, backupId) => asDriverErrors(() => openBackup(engine, serverId, backupId)),
    window: (id) => asDriverErrors(() => windowOf(engine, id)),
    restore: (spec, from, ctx) =>
      asDriverErrors(async () => {
        const cluster = await clusterOf(engine, spec, ctx);
        await runInBackground(
          engine,
          `restore-${from.id}`,
          cluster.serverDirectory.path,
          (own) => restore(cluster, from, own),
          ctx,
        );
      }),
    upgrade: (spec, fromVersion, ctx) =>
      asDriverErrors(async () => {
        const cluster = await presentCluster(engine, spec);
        await runInBackground(
          engine,
          `upgrade-${spec.version}`,
          cluster.serverDirectory.path,
          (own) => upgrade(cluster, fromVersion, own),
          ctx,
        );
      }),
    promote: (spec, ctx) => asDriverErrors(async () => promote(await presentCluster(engine, spec), ctx)),
    pooled: (server) =>
      asDriverErrors(async () => pooledServer(await requireServerDirectory(engine, server.id), server)),
    metrics: (spec) => asDriverErrors(async () => metrics(await presentCluster(engine, spec))),
    readLog: (id, position) => asDriverErrors(async () => readLog(serverDirectoryOf(engine, id), position)),
  };
}

async function presentCluster(engine: PostgresqlContext, spec: ServerSpec): Promise<Cluster> {
  return {
    engine,
    spec,
    serverDirectory: await requireServerDirectory(engine, spec.id),
    programs: await programsOf(engine, spec.version),
  };
}

async function remove(engine: PostgresqlContext, id: string, ctx: DriverContext): Promise<void> {
  for (const holder of [serverDirectoryOf(engine, id).path, backupsOf(engine, id)])
    await cancelWork(engine, holder, ctx);
  const serverDirectory = await findServerDirectory(engine, id);
  if (typeof serverDirectory !== 'string')
    for (const which of ['staging', 'server'] as const) await stopServer({ engine, serverDirectory }, which, ctx);
  checkpoint(ctx);
  for (const purpose of ['own', 'staging', 'server'])
    if (serverDirectory !== 'foreign') await engine.runtime.destroy(`${id}.${purpose}`, ctx);
  await removeServerDirectory(engine, id, ctx);
}

async function windowOf(engine: PostgresqlContext, id: string): Promise<{ earliest: string; latest: string } | null> {
  const serverDirectory = await findServerDirectory(engine, id);
  if (typeof serverDirectory === 'string') return null;
  const systemIdentifier = await systemIdentifierOf(serverDirectory.data).catch(() => null);
  const [first] = await leadingOn(
    serverDirectory,
    (await backupsFound(engine, id)).filter((one) => one.system_identifier === systemIdentifier),
  );
  if (first === undefined) return null;
  const waiting = await oldestWaiting(path.join(serverDirectory.data, 'pg_wal', 'archive_status'));
  const { state } = await stateOf(engine, id);
  const isBehind = waiting !== null && (state.state !== 'running' || Date.now() - waiting > archivedWithinMs);
  const latest = new Date(isBehind ? waiting : Date.now()).toISOString();
  return { earliest: first.taken_at, latest: latest > first.taken_at ? latest : first.taken_at };
}

/** Since when a file of the log waits for its archive, null where none does. */
async function oldestWaiting(directory: string): Promise<number | null> {
  const waiting = (await readdir(directory).catch(() => [])).filter((file) => file.endsWith('.ready'));
  const times = await Promise.all(
    waiting.map((file) =>
      stat(path.join(directory, file)).then(
        ({ mtimeMs }) => mtimeMs,
        () => Infinity,
      ),
    ),
  );
  return times.length === 0 ? null : Math.min(...times);
}

async function promote(cluster: Cluster, ctx: DriverContext): Promise<void> {
  await ensureServer(cluster, ctx);
  const within = driverContext(promotedWithinMs, ctx.signal);
  await whenReady(
    cluster,
    'server',
    { statementMs: promotedWithinMs },
    async (session) => {
      const { rows } = await session.query<{ done: boolean }>(
        'select case when pg_is_in_recovery() then pg_promote(true, 50) else true end as done',
      );
      if (rows[0]?.done !== true) throw new DriverError('transient', 'The replica has not been promoted yet.');
    },
    within,
  );
}
