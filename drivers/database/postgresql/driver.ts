// PostgreSQL: one cluster per server, which is a unit of the runtime.
import type { PostgresqlFound } from '../../../core/catalog/host_facts';
import { serverOf, type EngineDriver, type ObservedServer, type ServerSpec } from '../../database';
import type { BackupStore } from '../../backup_store';
import { DriverError, asDriverErrors, checkpoint, driverContext } from '../../../core/driver';
import type { Desired, DriverContext } from '../../../core/driver';
import type { BackedUp, Measurable, Upgradable } from '../../hosted_server';
import { hostedServer, type ServerSteps } from '../../hosted_server/driver';
import { findServerDirectory, requireServerDirectory, serverDirectoryOf } from '../../hosted_server/server_directory';
import type { RuntimeDriver } from '../../runtime';
import { serverFingerprint } from '../proxied_server';
import { cancelWork, runInBackground } from './background_work';
import { backup, openBackup, removeBackup } from './backups/backups';
import { backupsOf as backupDirectoryOf, postgresqlContext, type Cluster, type PostgresqlContext } from './cluster';
import { hasData } from './data';
import { clusterOf, ensure, ensureServer } from './ensure';
import { changeExtensions, EXTENSION_MS, EXTENSION_SETTINGS } from './extensions';
import { endFollowing, followSource } from './imports/follow';
import { importData } from './imports/import';
import { readLog } from './log';
import { inspect, metrics } from './observe';
import { pooledServer } from './pooled';
import { copyMasked } from './masks/copy';
import { programsOf } from './programs';
import { sessionUserUse } from './second_logins';
import { inSession } from './session';
import { restore } from './backups/restore';
import { stopPostgres, whenReady } from './server';
import { storeArchives } from './backups/stored_archive';
import { upgrade } from './upgrades/upgrade';
import { verifyRestored } from './backups/verify';
import { windowOf } from './backups/window';

/** `directory`: for the servers of all engines. `gigabyteBytes`: bytes per GB of `storage_gb`, 2^30 except in tests. */
export interface PostgresqlOptions {
  runtime: RuntimeDriver;
  directory: string;
  found: PostgresqlFound[];
  gigabyteBytes?: number;
  /** Store of backups and archives; none: they are kept in the directory. */
  store?: BackupStore | null;
  /** As EngineContext. */
  disks?: boolean;
}

const promotedWithinMs = 60_000;

export function openPostgresql(options: PostgresqlOptions): EngineDriver {
  const engine = postgresqlContext(options);
  return {
    ...hostedServer(stepsOf(engine)),
    name: 'postgresql',
    replicasEnd: true,
    ...backupsOf(engine),
    ...capabilitiesOf(engine),
  };
}

function stepsOf(engine: PostgresqlContext): ServerSteps<ServerSpec, ObservedServer> {
  return {
    context: engine,
    fingerprint: () => Promise.resolve(serverFingerprint('PostgreSQL', versionsOf(engine))),
    inspect: (serverDirectory, r, ctx) => inspect(engine, serverDirectory, serverOf(r), ctx),
    ensure: (r, _obs, ctx) => ensure(engine, serverOf(r), ctx),
    stop: (id, ctx) => stop(engine, id, ctx),
    readLog: (id, position) => readLog(serverDirectoryOf(engine, id), position),
  };
}

function capabilitiesOf(
  engine: PostgresqlContext,
): Measurable<ServerSpec> &
  Upgradable<ServerSpec> &
  Pick<
    EngineDriver,
    | 'hasData'
    | 'promote'
    | 'pooled'
    | 'secondLoginDiffers'
    | 'changeExtensions'
    | 'importData'
    | 'followSource'
    | 'endFollowing'
    | 'copyMasked'
  > {
  return {
    versions: () => Promise.resolve(versionsOf(engine)),
    upgrade: (r, fromVersion, ctx) =>
      asDriverErrors(async () => {
        const cluster = await presentCluster(engine, r);
        const work = (own: DriverContext) => upgrade(cluster, fromVersion, own);
        await runInBackground(engine, `upgrade-${r.spec.version}`, cluster.serverDirectory.path, work, ctx);
      }),
    hasData: (id) => asDriverErrors(() => hasData(engine, id)),
    promote: (r, ctx) => asDriverErrors(async () => promote(await presentCluster(engine, r), ctx)),
    pooled: (server) =>
      asDriverErrors(async () => pooledServer(await requireServerDirectory(engine, server.id), server)),
    secondLoginDiffers: (r) =>
      asDriverErrors(async () => {
        const cluster = await presentCluster(engine, r);
        const { database_name } = cluster.spec;
        return database_name === null ? null : inSession(cluster, { database: database_name }, sessionUserUse);
      }),
    changeExtensions: (r, changes) =>
      asDriverErrors(async () => {
        const cluster = await presentCluster(engine, r);
        const database = cluster.spec.database_name ?? 'postgres';
        const target = { database, statementMs: EXTENSION_MS, settings: EXTENSION_SETTINGS };
        return inSession(cluster, target, (session) => changeExtensions(session, changes));
      }),
    importData: (r, work, ctx) => asDriverErrors(async () => importData(await presentCluster(engine, r), work, ctx)),
    copyMasked: (r, from, rules, ctx) =>
      asDriverErrors(async () => {
        const cluster = await clusterOf(engine, serverOf(r), ctx);
        const work = (own: DriverContext) => copyMasked(cluster, from, rules, own);
        return runInBackground(engine, 'masked-copy', cluster.serverDirectory.path, work, ctx);
      }),
    followSource: (r, work) => asDriverErrors(async () => followSource(await presentCluster(engine, r), work)),
    endFollowing: (r, work) =>
      asDriverErrors(async () => endFollowing(engine, r && (await presentCluster(engine, r)), work)),
    metrics: (r) => asDriverErrors(async () => metrics(await presentCluster(engine, r))),
  };
}

function backupsOf(engine: PostgresqlContext): BackedUp<ServerSpec> {
  return {
    backup: (r, backupId, ctx) => asDriverErrors(async () => backup(await presentCluster(engine, r), backupId, ctx)),
    removeBackup: (serverId, backupId, ctx) => asDriverErrors(() => removeBackup(engine, serverId, backupId, ctx)),
    openBackup: (serverId, backupId, from) => asDriverErrors(() => openBackup(engine, serverId, backupId, from)),
    window: (id, ctx) => asDriverErrors(() => windowOf(engine, id, ctx)),
    storeArchives: (ctx) => asDriverErrors(() => storeArchives(engine, ctx)),
    restore: (r, from, ctx) =>
      asDriverErrors(async () => {
        const cluster = await clusterOf(engine, serverOf(r), ctx);
        const work = (own: DriverContext) => restore(cluster, from, own);
        await runInBackground(engine, `restore-${from.id}`, cluster.serverDirectory.path, work, ctx);
      }),
    verifyRestored: (r, from, assertion, ctx) =>
      asDriverErrors(async () => verifyRestored(await presentCluster(engine, r), from, assertion, ctx)),
  };
}

function versionsOf(engine: PostgresqlContext): string[] {
  return engine.found.map(({ series }) => series).sort((a, b) => Number(b) - Number(a));
}

async function presentCluster(engine: PostgresqlContext, r: Desired<ServerSpec>): Promise<Cluster> {
  const spec = serverOf(r);
  const serverDirectory = await requireServerDirectory(engine, spec.id);
  return { engine, spec, serverDirectory, programs: await programsOf(engine, spec.version) };
}

async function stop(engine: PostgresqlContext, id: string, ctx: DriverContext): Promise<void> {
  for (const holder of [serverDirectoryOf(engine, id).path, backupDirectoryOf(engine, id)])
    await cancelWork(engine, holder, ctx);
  const serverDirectory = await findServerDirectory(engine, id);
  if (typeof serverDirectory !== 'string')
    for (const which of ['staging', 'server'] as const) await stopPostgres({ engine, serverDirectory }, which, ctx);
  checkpoint(ctx);
  for (const purpose of ['own', 'staging', 'server', 'proxy']) await engine.runtime.destroy(`${id}.${purpose}`, ctx);
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
