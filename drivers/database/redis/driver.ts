// Redis and Valkey: one process for each database. The default user is off, tenants come over TLS, the platform by a socket.
import path from 'node:path';
import type { EngineFound } from '../../../core/host_facts';
import type { EngineDriver, ServerMetrics, ServerSeen, ServerSpec } from '../../database';
import { asDriverErrors } from '../../driver';
import type { DriverContext } from '../../driver';
import type { RuntimeDriver } from '../../runtime';
import { openBackup, removeBackup } from '../backups';
import { bringGate, gateDiffers, stopGate } from '../gate';
import { findHome, listHomes, makeHome, removeHome, requireHome, type Home } from '../home';
import { NotReady } from '../readiness';
import { isReplacing, putBack } from '../replacement';
import { endTask, reasonOf, runTask, stateOf, unitOf } from '../unit';
import { backup, restore, upgrade } from './backup';
import { fieldsOf, withServer } from './connection';
import { outdated, programOf, renewCertificate, start, stop, type RedisEstate } from './server';
import { bringRole, bringRoom, bringUsers, look } from './wishes';

export interface RedisOptions {
  runtime: RuntimeDriver;
  /** Of all servers and their backups; made where it is missing. */
  directory: string;
  engine: 'redis' | 'valkey';
  /** The servers of this host, of hostFacts(). */
  found: EngineFound[];
  /** What one GB of `storage_gb` counts; 2^30. */
  gigabyteBytes?: number;
  /** Where public endpoints are reached; without it all addresses of the host but those of the loopback interface. */
  publicAddresses?: string[];
}

export function openRedis({ runtime, directory, engine, found, gigabyteBytes = 2 ** 30, publicAddresses }: RedisOptions): EngineDriver {
  const estate: RedisEstate = { runtime, directory: path.resolve(directory), engine, found, gigabyteBytes, publicAddresses: publicAddresses ?? null };
  return {
    engine,
    versions: () => Promise.resolve(newestFirst(found.map(({ series }) => series))),
    observe: (spec, ctx) => asDriverErrors(() => observe(estate, spec, ctx)),
    ensure: (spec, ctx) => asDriverErrors(() => ensure(estate, spec, ctx)),
    remove: (id, ctx) => asDriverErrors(() => remove(estate, id, ctx)),
    list: () => asDriverErrors(() => listHomes(estate)),
    backup: (spec, backupId, ctx) => asDriverErrors(() => backup(estate, spec, backupId, ctx)),
    removeBackup: (serverId, backupId, ctx) => asDriverErrors(() => removeBackup(estate, serverId, backupId, ctx)),
    openBackup: (serverId, backupId) => asDriverErrors(() => openBackup(estate, serverId, backupId)),
    window: () => Promise.resolve(null),
    restore: (spec, from, ctx) => asDriverErrors(() => restore(estate, spec, from, ctx)),
    upgrade: (spec, fromVersion, ctx) => asDriverErrors(() => upgrade(estate, spec, fromVersion, ctx)),
    promote: (spec, ctx) => asDriverErrors(async () => void (await ensure(estate, { ...spec, replica_of: null }, ctx))),
    metrics: (spec, ctx) => asDriverErrors(() => metrics(estate, spec, ctx)),
    readLog: (id, position) => runtime.readLog(unitOf(id), position),
  };
}

const nothingSeen: Omit<ServerSeen, 'state'> = { differs: null, storage_used_bytes: null, full: false, replication_lag_seconds: null, reason: null };

async function observe(estate: RedisEstate, spec: ServerSpec, ctx: DriverContext): Promise<ServerSeen> {
  const home = await findHome(estate, spec.id);
  if (typeof home === 'string') return { ...nothingSeen, state: home, differs: home };
  const { state } = await stateOf(estate, spec.id);
  if (state.state === 'exited') return { ...nothingSeen, state: 'failed', differs: 'ended', reason: reasonOf(state) };
  if (state.state === 'gone') return { ...nothingSeen, state: 'stopped', differs: spec.running ? 'stopped' : null };
  try {
    return await seen(estate, home, spec, ctx);
  } catch (error) {
    if (error instanceof NotReady) return { ...nothingSeen, state: 'starting', differs: 'starting' };
    throw error;
  }
}

async function seen(estate: RedisEstate, home: Home, spec: ServerSpec, ctx: DriverContext): Promise<ServerSeen> {
  const change = await outdated(estate, home, spec);
  // It may have been started with another password of ours.
  if (change === 'settings') return { ...nothingSeen, state: 'running', differs: change };
  const live = await withServer(home, spec, (say) => look(estate, home, spec, say), ctx);
  const differs = [spec.running ? null : 'running', change, live.differs, await gateDiffers(estate, home, spec)].filter((one) => one !== null);
  return {
    state: 'running', differs: differs.length === 0 ? null : differs.join(', '), storage_used_bytes: live.storageUsedBytes,
    full: live.full, replication_lag_seconds: live.lagSeconds, reason: null,
  };
}

async function ensure(estate: RedisEstate, spec: ServerSpec, ctx: DriverContext): Promise<{ requeueMs?: number }> {
  programOf(estate, spec.version);
  const found = await findHome(estate, spec.id);
  if (found === 'absent') await endTask(estate, spec.id, 'setup', ctx);
  // Its first task gives the data directory to its user.
  const home = found === 'absent' ? await makeHome(estate, spec.id, (draft) => runTask(estate, spec, 'setup', draft.data, { command: ':', threads: 16 }, ctx), ctx) : await requireHome(estate, spec.id);
  if (await isReplacing(home)) {
    await stop(estate, spec.id, ctx);
    await putBack(home, ctx);
  }
  try {
    await bringGate(estate, home, spec, ctx);
    if (!spec.running) await stop(estate, spec.id, ctx);
    if (spec.running) await bring(estate, home, spec, ctx);
    return {};
  } catch (error) {
    if (error instanceof NotReady) return { requeueMs: error.retryAfterMs };
    throw error;
  }
}

async function bring(estate: RedisEstate, home: Home, spec: ServerSpec, ctx: DriverContext): Promise<void> {
  const { state } = await stateOf(estate, spec.id);
  const change = await outdated(estate, home, spec);
  if (state.state === 'running' && change === 'settings') await stop(estate, spec.id, ctx);
  if (state.state !== 'running' || change === 'settings') await start(estate, home, spec, ctx);
  await withServer(home, spec, async (say) => {
    if (change === 'certificate') await renewCertificate(estate, home, spec, say);
    await bringUsers(home, spec, say);
    await bringRole(spec, say);
    await bringRoom(estate, home, spec, say);
  }, ctx);
}

async function remove(estate: RedisEstate, id: string, ctx: DriverContext): Promise<void> {
  if ((await findHome(estate, id)) === 'foreign') return;
  await stopGate(estate, id, ctx);
  await stop(estate, id, ctx);
  await endTask(estate, id, 'setup', ctx);
  await removeHome(estate, id, ctx);
}

async function metrics(estate: RedisEstate, spec: ServerSpec, ctx: DriverContext): Promise<ServerMetrics> {
  const home = await requireHome(estate, spec.id);
  const info = await withServer(home, spec, async (say) => fieldsOf(await say('INFO')), ctx);
  const { handle } = await stateOf(estate, spec.id);
  const usage = handle === null ? undefined : (await estate.runtime.usage([handle])).get(unitOf(spec.id));
  const hits = Number(info.get('keyspace_hits')) + Number(info.get('keyspace_misses'));
  const commands = Number(info.get('total_commands_processed'));
  return {
    // Without the platform's own one.
    connections: Math.max(0, Number(info.get('connected_clients')) - 1), memory_bytes: Number(info.get('used_memory_rss')),
    cpu_seconds: usage?.cpu_seconds ?? Number(info.get('used_cpu_sys')) + Number(info.get('used_cpu_user')),
    transactions: commands, read_operations: hits, write_operations: null,
  };
}

function newestFirst(series: string[]): string[] {
  return [...new Set(series)].sort((one, other) => other.localeCompare(one, 'en', { numeric: true }));
}
