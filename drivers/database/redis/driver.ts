// Redis and Valkey: one process for each database. The default user is off, tenants come over TLS, the platform by a socket.
import path from 'node:path';
import type { EngineFound } from '../../../core/host_facts';
import type { EngineDriver, ServerMetrics, ServerSeen, ServerSpec } from '../../database';
import { asDriverErrors } from '../../driver';
import type { DriverContext } from '../../driver';
import type { RuntimeDriver } from '../../runtime';
import { openBackup, removeBackup } from '../backups';
import { gateDiffers } from '../gate';
import { ensureServer, nothingSeen, observeServer, removeServer, versionsOf } from '../gated';
import { listHomes, requireHome, type Home } from '../home';
import { runTask, stateOf, unitOf } from '../unit';
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

export function openRedis({
  runtime,
  directory,
  engine,
  found,
  gigabyteBytes = 2 ** 30,
  publicAddresses,
}: RedisOptions): EngineDriver {
  const estate: RedisEstate = {
    runtime,
    directory: path.resolve(directory),
    engine,
    found,
    gigabyteBytes,
    publicAddresses: publicAddresses ?? null,
  };
  return {
    engine,
    versions: () => Promise.resolve(versionsOf(found)),
    observe: (spec, ctx) => asDriverErrors(() => observeServer(estate, spec, (home) => seen(estate, home, spec, ctx))),
    ensure: (spec, ctx) => asDriverErrors(() => ensure(estate, spec, ctx)),
    remove: (id, ctx) => asDriverErrors(() => removeServer(estate, id, stop, ctx)),
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

async function seen(estate: RedisEstate, home: Home, spec: ServerSpec, ctx: DriverContext): Promise<ServerSeen> {
  const change = await outdated(estate, home, spec);
  // It may have been started with another password of ours.
  if (change === 'settings') return { ...nothingSeen, state: 'running', differs: change };
  const live = await withServer(home, spec, (say) => look(estate, home, spec, say), ctx);
  const differs = [spec.running ? null : 'running', change, live.differs, await gateDiffers(estate, home, spec)].filter(
    (one) => one !== null,
  );
  return {
    state: 'running',
    differs: differs.length === 0 ? null : differs.join(', '),
    storage_used_bytes: live.storageUsedBytes,
    full: live.full,
    replication_lag_seconds: live.lagSeconds,
    reason: null,
  };
}

async function ensure(estate: RedisEstate, spec: ServerSpec, ctx: DriverContext): Promise<{ requeueMs?: number }> {
  programOf(estate, spec.version);
  // Its first task gives the data directory to its user.
  const setUp = (data: string) => runTask(estate, spec, 'setup', data, { command: ':', threads: 16 }, ctx);
  return ensureServer(estate, spec, { setUp, stop, bring: (home) => bring(estate, home, spec, ctx) }, ctx);
}

async function bring(estate: RedisEstate, home: Home, spec: ServerSpec, ctx: DriverContext): Promise<void> {
  const { state } = await stateOf(estate, spec.id);
  const change = await outdated(estate, home, spec);
  if (state.state === 'running' && change === 'settings') await stop(estate, spec.id, ctx);
  if (state.state !== 'running' || change === 'settings') await start(estate, home, spec, ctx);
  await withServer(
    home,
    spec,
    async (say) => {
      if (change === 'certificate') await renewCertificate(estate, home, spec, say);
      await bringUsers(home, spec, say);
      await bringRole(spec, say);
      await bringRoom(estate, home, spec, say);
    },
    ctx,
  );
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
    connections: Math.max(0, Number(info.get('connected_clients')) - 1),
    memory_bytes: Number(info.get('used_memory_rss')),
    cpu_seconds: usage?.cpu_seconds ?? Number(info.get('used_cpu_sys')) + Number(info.get('used_cpu_user')),
    transactions: commands,
    read_operations: hits,
    write_operations: null,
  };
}
