// Redis and Valkey: one process for each database. The default user is off, tenants come over TLS, the platform by a
// socket.
import path from 'node:path';
import type { EngineFound } from '../../../core/host_facts';
import {
  serverOf,
  type DatabaseServer,
  type EngineCapabilities,
  type EngineDriver,
  type ObservedServer,
  type ServerMetrics,
  type ServerSpec,
} from '../../database';
import { asDriverErrors } from '../../driver';
import type { DriverContext } from '../../driver';
import { proxyDifference } from '../../hosted_server/access_proxy';
import { openBackup, removeBackup } from '../../hosted_server/backups';
import { hostedServer, type Inspected, type ServerSteps } from '../../hosted_server/driver';
import { requireServerDirectory, type ServerDirectory } from '../../hosted_server/server_directory';
import { runTask, stateOf, unitOf } from '../../hosted_server/unit';
import type { RuntimeDriver } from '../../runtime';
import { ensureServer, fingerprintOf, inspectServer, nothingObserved, seriesOf, stopEverything } from '../proxied';
import { backup, restore, upgrade } from './backup';
import { fieldsOf, withServer } from './connection';
import { ensureRole, ensureStorage, ensureUsers, inspectServer as inspectServerState } from './reconcile';
import { outdated, productOf, programOf, renewCertificate, start, stop, type RedisContext } from './server';

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

export function openRedis({ engine: name, found, ...options }: RedisOptions): EngineDriver {
  const engine: RedisContext = {
    runtime: options.runtime,
    directory: path.resolve(options.directory),
    name,
    found,
    gigabyteBytes: options.gigabyteBytes ?? 2 ** 30,
    publicAddresses: options.publicAddresses ?? null,
  };
  return { ...hostedServer(stepsOf(engine)), name, ...capabilitiesOf(engine) };
}

function stepsOf(engine: RedisContext): ServerSteps<ServerSpec, ObservedServer> {
  return {
    context: engine,
    fingerprint: () => fingerprintOf(productOf[engine.name], seriesOf(engine.found)),
    inspect: (serverDirectory, r, ctx) => {
      const server = serverOf(r);
      return inspectServer(engine, server, () => inspectRunning(engine, serverDirectory, server, ctx));
    },
    ensure: (r, _obs, ctx) => ensure(engine, serverOf(r), ctx),
    stop: (id, ctx) => stopEverything(engine, id, stop, ctx),
    readLog: (id, position) => engine.runtime.readLog(unitOf(id), position),
  };
}

function capabilitiesOf(engine: RedisContext): EngineCapabilities {
  return {
    versions: () => Promise.resolve(seriesOf(engine.found)),
    metrics: (r, ctx) => asDriverErrors(() => metrics(engine, serverOf(r), ctx)),
    backup: (r, backupId, ctx) => asDriverErrors(() => backup(engine, serverOf(r), backupId, ctx)),
    removeBackup: (serverId, backupId, ctx) => asDriverErrors(() => removeBackup(engine, serverId, backupId, ctx)),
    openBackup: (serverId, backupId) => asDriverErrors(() => openBackup(engine, serverId, backupId)),
    window: () => Promise.resolve(null),
    restore: (r, from, ctx) => asDriverErrors(() => restore(engine, serverOf(r), from, ctx)),
    upgrade: (r, fromVersion, ctx) => asDriverErrors(() => upgrade(engine, serverOf(r), fromVersion, ctx)),
    promote: (r, ctx) =>
      asDriverErrors(async () => void (await ensure(engine, { ...serverOf(r), replica_of: null }, ctx))),
  };
}

async function inspectRunning(
  engine: RedisContext,
  serverDirectory: ServerDirectory,
  server: DatabaseServer,
  ctx: DriverContext,
): Promise<Inspected<ObservedServer>> {
  const change = await outdated(engine, serverDirectory, server);
  // It may have been started with another password of ours.
  if (change === 'settings') return { observed: { ...nothingObserved, state: 'running' }, diff: change };
  const current = await withServer(
    serverDirectory,
    server,
    (send) => inspectServerState(engine, serverDirectory, server, send),
    ctx,
  );
  const diff = [
    server.running ? null : 'it should not run',
    change,
    current.differs,
    await proxyDifference(engine, serverDirectory, server),
  ].filter((one) => one !== null);
  return {
    observed: {
      state: 'running',
      storage_used_bytes: current.storageUsedBytes,
      full: current.full,
      replication_lag_seconds: current.lagSeconds,
      reason: null,
    },
    diff: diff.length === 0 ? null : diff.join(', '),
  };
}

async function ensure(engine: RedisContext, spec: DatabaseServer, ctx: DriverContext): Promise<{ requeueMs?: number }> {
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
  spec: DatabaseServer,
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

async function metrics(engine: RedisContext, spec: DatabaseServer, ctx: DriverContext): Promise<ServerMetrics> {
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
