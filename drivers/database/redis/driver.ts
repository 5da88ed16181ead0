// Redis and Valkey: one process for each database. The default user is off, tenants come over TLS, the platform by a socket.
import path from 'node:path';
import type { EngineFound } from '../../../core/host_facts';
import type { EngineDriver, ServerMetrics, ObservedServer, ServerSpec } from '../../database';
import { asDriverErrors } from '../../driver';
import type { DriverContext } from '../../driver';
import type { RuntimeDriver } from '../../runtime';
import { openBackup, removeBackup } from '../backups';
import { proxyDifference } from '../access_proxy';
import { ensureServer, nothingObserved, observeServer, removeServer, versionsOf } from '../proxied_server';
import { listServerDirectories, requireServerDirectory, type ServerDirectory } from '../server_directory';
import { runTask, stateOf, unitOf } from '../unit';
import { backup, restore, upgrade } from './backup';
import { fieldsOf, withServer } from './connection';
import { outdated, programOf, renewCertificate, start, stop, type RedisContext } from './server';
import { ensureRole, ensureStorage, ensureUsers, inspectServer } from './reconcile';

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

export function openRedis({ publicAddresses, gigabyteBytes = 2 ** 30, ...options }: RedisOptions): EngineDriver {
  const { engine: name, runtime, found } = options;
  const engine: RedisContext = {
    runtime,
    directory: path.resolve(options.directory),
    name,
    found,
    gigabyteBytes,
    publicAddresses: publicAddresses ?? null,
  };
  return {
    engine: name,
    versions: () => Promise.resolve(versionsOf(found)),
    observe: (spec, ctx) =>
      asDriverErrors(() =>
        observeServer(engine, spec, (serverDirectory) => observeRunning(engine, serverDirectory, spec, ctx)),
      ),
    ensure: (spec, ctx) => asDriverErrors(() => ensure(engine, spec, ctx)),
    remove: (id, ctx) => asDriverErrors(() => removeServer(engine, id, stop, ctx)),
    list: () => asDriverErrors(() => listServerDirectories(engine)),
    backup: (spec, backupId, ctx) => asDriverErrors(() => backup(engine, spec, backupId, ctx)),
    removeBackup: (serverId, backupId, ctx) => asDriverErrors(() => removeBackup(engine, serverId, backupId, ctx)),
    openBackup: (serverId, backupId) => asDriverErrors(() => openBackup(engine, serverId, backupId)),
    window: () => Promise.resolve(null),
    restore: (spec, from, ctx) => asDriverErrors(() => restore(engine, spec, from, ctx)),
    upgrade: (spec, fromVersion, ctx) => asDriverErrors(() => upgrade(engine, spec, fromVersion, ctx)),
    promote: (spec, ctx) => asDriverErrors(async () => void (await ensure(engine, { ...spec, replica_of: null }, ctx))),
    metrics: (spec, ctx) => asDriverErrors(() => metrics(engine, spec, ctx)),
    readLog: (id, position) => runtime.readLog(unitOf(id), position),
  };
}

async function observeRunning(
  engine: RedisContext,
  serverDirectory: ServerDirectory,
  spec: ServerSpec,
  ctx: DriverContext,
): Promise<ObservedServer> {
  const change = await outdated(engine, serverDirectory, spec);
  // It may have been started with another password of ours.
  if (change === 'settings') return { ...nothingObserved, state: 'running', differs: change };
  const live = await withServer(
    serverDirectory,
    spec,
    (send) => inspectServer(engine, serverDirectory, spec, send),
    ctx,
  );
  const differs = [
    spec.running ? null : 'running',
    change,
    live.differs,
    await proxyDifference(engine, serverDirectory, spec),
  ].filter((one) => one !== null);
  return {
    state: 'running',
    differs: differs.length === 0 ? null : differs.join(', '),
    storage_used_bytes: live.storageUsedBytes,
    full: live.full,
    replication_lag_seconds: live.lagSeconds,
    reason: null,
  };
}

async function ensure(engine: RedisContext, spec: ServerSpec, ctx: DriverContext): Promise<{ requeueMs?: number }> {
  programOf(engine, spec.version);
  // Its first task gives the data directory to its user.
  const setUp = (data: string) => runTask(engine, spec, 'setup', data, { command: ':', threads: 16 }, ctx);
  return ensureServer(
    engine,
    spec,
    { setUp, stop, run: (serverDirectory) => run(engine, serverDirectory, spec, ctx) },
    ctx,
  );
}

async function run(
  engine: RedisContext,
  serverDirectory: ServerDirectory,
  spec: ServerSpec,
  ctx: DriverContext,
): Promise<void> {
  const { state } = await stateOf(engine, spec.id);
  const change = await outdated(engine, serverDirectory, spec);
  if (state.state === 'running' && change === 'settings') await stop(engine, spec.id, ctx);
  if (state.state !== 'running' || change === 'settings') await start(engine, serverDirectory, spec, ctx);
  await withServer(
    serverDirectory,
    spec,
    async (send) => {
      if (change === 'certificate') await renewCertificate(engine, serverDirectory, spec, send);
      await ensureUsers(serverDirectory, spec, send);
      await ensureRole(spec, send);
      await ensureStorage(engine, serverDirectory, spec, send);
    },
    ctx,
  );
}

async function metrics(engine: RedisContext, spec: ServerSpec, ctx: DriverContext): Promise<ServerMetrics> {
  const serverDirectory = await requireServerDirectory(engine, spec.id);
  const info = await withServer(serverDirectory, spec, async (send) => fieldsOf(await send('INFO')), ctx);
  const { handle } = await stateOf(engine, spec.id);
  const usage = handle === null ? undefined : (await engine.runtime.usage([handle])).get(unitOf(spec.id));
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
