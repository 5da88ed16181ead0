// MariaDB: one server for each database. Tenants come over TLS, the platform by a socket.
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
import { DriverError, asDriverErrors } from '../../driver';
import type { DriverContext } from '../../driver';
import { proxyDifference } from '../../hosted_server/access_proxy';
import { openBackup, removeBackup } from '../../hosted_server/backups';
import { hostedServer, type Inspected, type ServerSteps } from '../../hosted_server/driver';
import { requireServerDirectory, type ServerDirectory } from '../../hosted_server/server_directory';
import { stateOf, unitOf } from '../../hosted_server/unit';
import type { RuntimeDriver } from '../../runtime';
import { ensureServer, fingerprintOf, inspectServer, nothingObserved, seriesOf, stopEverything } from '../proxied';
import { backup, restore } from './backup';
import { withServer } from './connection';
import { databaseOf, ensureContent, inspectServer as inspectServerState } from './reconcile';
import { install, noteAnswer, outdated, programOf, renewCertificate, start, stop, type MariadbContext } from './server';

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

export function openMariadb(options: MariadbOptions): EngineDriver {
  const engine: MariadbContext = {
    runtime: options.runtime,
    directory: path.resolve(options.directory),
    name: 'mariadb',
    found: options.found,
    gigabyteBytes: options.gigabyteBytes ?? 2 ** 30,
    publicAddresses: options.publicAddresses ?? null,
  };
  return { ...hostedServer(stepsOf(engine)), name: 'mariadb', ...capabilitiesOf(engine) };
}

function stepsOf(engine: MariadbContext): ServerSteps<ServerSpec, ObservedServer> {
  return {
    context: engine,
    fingerprint: () => fingerprintOf('MariaDB', seriesOf(engine.found)),
    inspect: (serverDirectory, r, ctx) => {
      const server = serverOf(r);
      return inspectServer(engine, server, () => inspectRunning(engine, serverDirectory, server, ctx));
    },
    ensure: (r, _obs, ctx) => ensure(engine, serverOf(r), ctx),
    stop: (id, ctx) => stopEverything(engine, id, stop, ctx),
    readLog: (id, position) => engine.runtime.readLog(unitOf(id), position),
  };
}

function capabilitiesOf(engine: MariadbContext): EngineCapabilities {
  return {
    versions: () => Promise.resolve(seriesOf(engine.found)),
    metrics: (r, ctx) => asDriverErrors(() => metrics(engine, serverOf(r), ctx)),
    backup: (r, backupId, ctx) => asDriverErrors(() => backup(engine, serverOf(r), backupId, ctx)),
    removeBackup: (serverId, backupId, ctx) => asDriverErrors(() => removeBackup(engine, serverId, backupId, ctx)),
    openBackup: (serverId, backupId) => asDriverErrors(() => openBackup(engine, serverId, backupId)),
    window: () => Promise.resolve(null),
    restore: (r, from, ctx) => asDriverErrors(() => restore(engine, serverOf(r), from, ctx)),
    upgrade: () => Promise.reject(noUpgrade()),
    promote: () => Promise.reject(noReplicas()),
  };
}

async function inspectRunning(
  engine: MariadbContext,
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
    (query) => inspectServerState(engine, serverDirectory, server, query),
    ctx,
  );
  const diff = [
    server.running ? null : 'it should not run',
    change,
    current.differs,
    await proxyDifference(engine, serverDirectory, server),
  ].filter((one) => one !== null);
  const { storageUsedBytes: storage_used_bytes, full } = current;
  return {
    observed: { ...nothingObserved, state: 'running', storage_used_bytes, full },
    diff: diff.length === 0 ? null : diff.join(', '),
  };
}

async function ensure(
  engine: MariadbContext,
  spec: DatabaseServer,
  ctx: DriverContext,
): Promise<{ requeueMs?: number }> {
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
    async (query) => {
      await noteAnswer(serverDirectory);
      if (change === 'certificate') await renewCertificate(engine, serverDirectory, spec, query);
      await ensureContent(engine, serverDirectory, spec, query);
    },
    ctx,
  );
}

async function metrics(engine: MariadbContext, spec: DatabaseServer, ctx: DriverContext): Promise<ServerMetrics> {
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

function noUpgrade(): DriverError {
  return new DriverError(
    'unsupported',
    'This host cannot upgrade MariaDB in place. Restore a backup into a database of the newer version.',
  );
}

function noReplicas(): DriverError {
  return new DriverError('unsupported', 'Replicas of MariaDB are not supported.');
}
