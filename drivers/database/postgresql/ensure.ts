// One step from what a server is to what it should be.
import { access, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerSpec } from '../../database';
import { DriverError, checkpoint, driverContext } from '../../driver';
import type { DriverContext } from '../../driver';
import { giveFile, ownerOf } from '../home';
import { noteArchiveBegins, noteArchiveEnds } from './archiving';
import { majorOf, systemIdentifierOf, type Cluster, type PostgresqlEstate } from './cluster';
import { configure } from './configuration';
import { settleData, settleHome } from './data';
import { lasting, requireIdle } from './lasting';
import { programsOf } from './programs';
import { ensureRights, ensureUsers } from './roles';
import { isOutdated, isServing, quiet, serve, whenReady } from './server';
import { inSession } from './session';
import { pruneLog } from './log';
import { reviewStorage, type Stage } from './storage';

const readyWithinMs = 20_000;

/** @throws DriverError */
export async function ensure(
  estate: PostgresqlEstate,
  spec: ServerSpec,
  ctx: DriverContext,
): Promise<{ requeueMs?: number }> {
  const cluster = await clusterOf(estate, spec, ctx);
  const { home } = cluster;
  if (estate.working.has(path.join(home.path, 'data')) || (await majorOf(home.data)) === null) {
    await lasting(estate, 'data', home.path, (own) => settleData(cluster, own), ctx);
  }
  await requireIdle(home.path);
  await settleData(cluster, ctx);
  return bring(cluster, ctx);
}

/** The home, and the programs of the version. */
export async function clusterOf(estate: PostgresqlEstate, spec: ServerSpec, ctx: DriverContext): Promise<Cluster> {
  const programs = await programsOf(estate, spec.version);
  return { estate, spec, programs, home: await settleHome(estate, spec.id, ctx) };
}

/** The same, for whoever has the data to himself. */
export async function bring(cluster: Cluster, ctx: DriverContext): Promise<{ requeueMs?: number }> {
  const { home, spec } = cluster;
  checkpoint(ctx);
  const major = await majorOf(home.data);
  if (major !== spec.version)
    throw new DriverError('conflict', `The data are of version ${major}; upgrade the server to ${spec.version}.`);
  const stage = await reviewStorage(cluster, ctx);
  await noteArchiveEnds(cluster);
  const changed = await configure(
    cluster,
    home.data,
    await systemIdentifierOf(home.data),
    await ownerOf(home),
    { kind: 'open', limit: stage },
    ctx,
  );
  await pruneLog(home);
  const turned = await turn(cluster, stage);
  if (!spec.running || turned || (await isOutdated(cluster))) await quiet(cluster, 'server', ctx);
  if (!spec.running) return {};
  await applyRunning(cluster, changed, ctx);
  await noteArchiveBegins(cluster);
  return {};
}

/** Users, database and rights; nothing on a server that only follows. */
export async function ensureContent(
  cluster: Cluster,
  ctx: DriverContext,
  which: 'server' | 'aside' = 'server',
): Promise<void> {
  const { spec, home } = cluster;
  const follows = await whenReady(
    cluster,
    which,
    { data: home.data },
    async (session) => {
      const { rows } = await session.query<{ follows: boolean }>('select pg_is_in_recovery() as follows');
      if (rows[0]?.follows === true) return true;
      await ensureUsers(session, spec);
      return false;
    },
    ctx,
  );
  if (!follows && spec.database_name !== null)
    await inSession(cluster, { database: spec.database_name, data: home.data }, (session) =>
      ensureRights(session, spec),
    );
}

async function applyRunning(cluster: Cluster, changed: 'same' | 'changed', ctx: DriverContext): Promise<void> {
  const soon = driverContext(readyWithinMs, ctx.signal);
  if (!(await isServing(cluster))) await serve(cluster, 'server', cluster.home.data, ctx);
  else if (changed === 'changed') await reload(cluster, soon, ctx);
  await ensureContent(cluster, soon);
  await releaseSlots(cluster);
}

// A standby is one by a file: that of a replica is there from its beginning on, that of a full server comes and goes.
async function turn({ home, spec }: Cluster, stage: Stage): Promise<boolean> {
  if (spec.replica_of !== null) return false;
  const file = path.join(home.data, 'standby.signal');
  const isThere = await access(file).then(
    () => true,
    () => false,
  );
  const held = path.join(home.path, 'held');
  const isOurs = await access(held).then(
    () => true,
    () => false,
  );
  if (stage === 'hard' && !isThere) {
    const owner = await ownerOf(home);
    await giveFile(held, '', owner);
    await giveFile(file, '', owner);
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
          'select pg_conf_load_time()::text as at, exists (select from pg_settings where pending_restart) as pending',
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
  await quiet(cluster, 'server', ctx);
  await serve(cluster, 'server', cluster.home.data, ctx);
}

// The log that is kept for replicas that are gone would fill the disk.
async function releaseSlots({ spec, ...cluster }: Cluster): Promise<void> {
  const { replicas } = spec;
  if (replicas === undefined || spec.replica_of !== null) return;
  await inSession({ spec, ...cluster }, {}, (session) =>
    session.query(
      "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_type = 'physical' and not active and not temporary and slot_name <> all($1)",
      [replicas],
    ),
  );
}
