// PostgreSQL: a cluster of its own for each server, a unit of the runtime.
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { PostgresqlFound } from '../../../core/host_facts';
import type { EngineDriver, ServerSpec } from '../../database';
import { DriverError, asDriverErrors, checkpoint, driverContext } from '../../driver';
import type { DriverContext } from '../../driver';
import type { RuntimeDriver } from '../../runtime';
import { findHome, homeOf, listHomes, removeHome, requireHome } from '../home';
import { stateOf } from '../unit';
import { leadingOn } from './archiving';
import { backup, backupsFound, openBackup, removeBackup } from './backups';
import { backupsOf, systemIdentifierOf, type Cluster, type PostgresqlEstate } from './cluster';
import { bring, clusterOf, ensure } from './ensure';
import { breakOff, lasting } from './lasting';
import { readLog } from './log';
import { pooledServer } from './pooled';
import { metrics, observe } from './observe';
import { programsOf } from './programs';
import { restore } from './restore';
import { quiet, whenReady } from './server';
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
  const estate: PostgresqlEstate = {
    ...options,
    gigabyteBytes: options.gigabyteBytes ?? 2 ** 30,
    engine: 'postgresql',
    working: new Map(),
  };
  return {
    engine: 'postgresql',
    replicasEnd: true,
    versions: () => Promise.resolve(estate.found.map(({ series }) => series).sort((a, b) => Number(b) - Number(a))),
    observe: (spec, ctx) => asDriverErrors(() => observe(estate, spec, ctx)),
    ensure: (spec, ctx) => asDriverErrors(() => ensure(estate, spec, ctx)),
    remove: (id, ctx) => asDriverErrors(() => remove(estate, id, ctx)),
    list: () => asDriverErrors(() => listHomes(estate)),
    backup: (spec, backupId, ctx) =>
      asDriverErrors(async () => backup(await presentCluster(estate, spec), backupId, ctx)),
    removeBackup: (serverId, backupId, ctx) => asDriverErrors(() => removeBackup(estate, serverId, backupId, ctx)),
    openBackup: (serverId, backupId) => asDriverErrors(() => openBackup(estate, serverId, backupId)),
    window: (id) => asDriverErrors(() => windowOf(estate, id)),
    restore: (spec, from, ctx) =>
      asDriverErrors(async () => {
        const cluster = await clusterOf(estate, spec, ctx);
        await lasting(estate, `restore-${from.id}`, cluster.home.path, (own) => restore(cluster, from, own), ctx);
      }),
    upgrade: (spec, fromVersion, ctx) =>
      asDriverErrors(async () => {
        const cluster = await presentCluster(estate, spec);
        await lasting(
          estate,
          `upgrade-${spec.version}`,
          cluster.home.path,
          (own) => upgrade(cluster, fromVersion, own),
          ctx,
        );
      }),
    promote: (spec, ctx) => asDriverErrors(async () => promote(await presentCluster(estate, spec), ctx)),
    pooled: (server) => asDriverErrors(async () => pooledServer(await requireHome(estate, server.id), server)),
    metrics: (spec) => asDriverErrors(async () => metrics(await presentCluster(estate, spec))),
    readLog: (id, position) => asDriverErrors(async () => readLog(homeOf(estate, id), position)),
  };
}

async function presentCluster(estate: PostgresqlEstate, spec: ServerSpec): Promise<Cluster> {
  return { estate, spec, home: await requireHome(estate, spec.id), programs: await programsOf(estate, spec.version) };
}

async function remove(estate: PostgresqlEstate, id: string, ctx: DriverContext): Promise<void> {
  for (const holder of [homeOf(estate, id).path, backupsOf(estate, id)]) await breakOff(estate, holder, ctx);
  const home = await findHome(estate, id);
  if (typeof home !== 'string')
    for (const which of ['aside', 'server'] as const) await quiet({ estate, home }, which, ctx);
  checkpoint(ctx);
  for (const purpose of ['own', 'aside', 'server'])
    if (home !== 'foreign') await estate.runtime.destroy(`${id}.${purpose}`, ctx);
  await removeHome(estate, id, ctx);
}

async function windowOf(estate: PostgresqlEstate, id: string): Promise<{ earliest: string; latest: string } | null> {
  const home = await findHome(estate, id);
  if (typeof home === 'string') return null;
  const systemIdentifier = await systemIdentifierOf(home.data).catch(() => null);
  const [first] = await leadingOn(
    home,
    (await backupsFound(estate, id)).filter((one) => one.system_identifier === systemIdentifier),
  );
  if (first === undefined) return null;
  const waiting = await oldestWaiting(path.join(home.data, 'pg_wal', 'archive_status'));
  const { state } = await stateOf(estate, id);
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
  await bring(cluster, ctx);
  const within = driverContext(promotedWithinMs, ctx.signal);
  await whenReady(
    cluster,
    'server',
    { statementMs: promotedWithinMs },
    async (session) => {
      const { rows } = await session.query<{ done: boolean }>(
        'select case when pg_is_in_recovery() then pg_promote(true, 50) else true end as done',
      );
      if (rows[0]?.done !== true)
        throw new DriverError('transient', 'The replica has not become a server of its own yet.');
    },
    within,
  );
}
