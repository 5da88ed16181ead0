// MariaDB: one server for each database. Tenants come over TLS, the platform by a socket.
import path from 'node:path';
import type { EngineFound } from '../../../core/host_facts';
import type { EngineDriver, ServerMetrics, ObservedServer, ServerSpec } from '../../database';
import { DriverError, asDriverErrors } from '../../driver';
import type { DriverContext } from '../../driver';
import type { RuntimeDriver } from '../../runtime';
import { openBackup, removeBackup } from '../backups';
import { proxyDifference } from '../access_proxy';
import { ensureServer, nothingObserved, observeServer, removeServer, versionsOf } from '../proxied_server';
import { listServerDirectories, requireServerDirectory, type ServerDirectory } from '../server_directory';
import { stateOf, unitOf } from '../unit';
import { backup, restore } from './backup';
import { withServer } from './connection';
import { install, noteAnswer, outdated, programOf, renewCertificate, start, stop, type MariadbContext } from './server';
import { ensureContent, databaseOf, inspectServer } from './reconcile';

export interface MariadbOptions {
  runtime: RuntimeDriver;
  /** Of all servers and their backups; made where it is missing. */
  directory: string;
  /** The servers of this host, of hostFacts(). */
  found: EngineFound[];
  /** What one GB of `storage_gb` counts; 2^30. */
  gigabyteBytes?: number;
  /** Where public endpoints are reached; without it all addresses of the host but those of the loopback interface. */
  publicAddresses?: string[];
}

export function openMariadb({
  runtime,
  directory,
  found,
  gigabyteBytes = 2 ** 30,
  publicAddresses,
}: MariadbOptions): EngineDriver {
  const engine: MariadbContext = {
    runtime,
    directory: path.resolve(directory),
    name: 'mariadb',
    found,
    gigabyteBytes,
    publicAddresses: publicAddresses ?? null,
  };
  return {
    engine: 'mariadb',
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
    upgrade: () =>
      Promise.reject(
        new DriverError(
          'unsupported',
          'This host cannot upgrade MariaDB in place. Restore a backup into a database of the newer version.',
        ),
      ),
    promote: () => Promise.reject(noReplicas()),
    metrics: (spec, ctx) => asDriverErrors(() => metrics(engine, spec, ctx)),
    readLog: (id, position) => runtime.readLog(unitOf(id), position),
  };
}

async function observeRunning(
  engine: MariadbContext,
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
    (query) => inspectServer(engine, serverDirectory, spec, query),
    ctx,
  );
  const differs = [
    spec.running ? null : 'running',
    change,
    live.differs,
    await proxyDifference(engine, serverDirectory, spec),
  ].filter((one) => one !== null);
  return {
    ...nothingObserved,
    state: 'running',
    differs: differs.length === 0 ? null : differs.join(', '),
    storage_used_bytes: live.storageUsedBytes,
    full: live.full,
  };
}

async function ensure(engine: MariadbContext, spec: ServerSpec, ctx: DriverContext): Promise<{ requeueMs?: number }> {
  if (spec.replica_of !== null) throw noReplicas();
  programOf(engine, spec.version);
  databaseOf(spec);
  return ensureServer(
    engine,
    spec,
    {
      setUp: (data) => install(engine, spec, data, ctx),
      stop,
      run: (serverDirectory) => run(engine, serverDirectory, spec, ctx),
    },
    ctx,
  );
}

async function run(
  engine: MariadbContext,
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
    async (query) => {
      await noteAnswer(serverDirectory);
      if (change === 'certificate') await renewCertificate(engine, serverDirectory, spec, query);
      await ensureContent(engine, serverDirectory, spec, query);
    },
    ctx,
  );
}

async function metrics(engine: MariadbContext, spec: ServerSpec, ctx: DriverContext): Promise<ServerMetrics> {
  const serverDirectory = await requireServerDirectory(engine, spec.id);
  const rows = await withServer(serverDirectory, spec, (query) => query('SHOW GLOBAL STATUS'), ctx);
  const status = new Map(rows.map(({ Variable_name: name, Value: value }) => [String(name), Number(value)]));
  const { handle } = await stateOf(engine, spec.id);
  const usage = handle === null ? undefined : (await engine.runtime.usage([handle])).get(unitOf(spec.id));
  return {
    // Without the platform's own one.
    connections: Math.max(0, (status.get('Threads_connected') ?? 1) - 1),
    memory_bytes: usage?.memory_bytes ?? null,
    cpu_seconds: usage?.cpu_seconds ?? null,
    transactions: status.get('Handler_commit') ?? null,
    read_operations: status.get('Innodb_data_reads') ?? null,
    write_operations: status.get('Innodb_data_writes') ?? null,
  };
}

function noReplicas(): DriverError {
  return new DriverError('unsupported', 'Replicas of MariaDB are not supported.');
}
