// Engines behind an access proxy: Redis, Valkey and MariaDB share how the process and the directory of a server are
// observed and ensured. Their differences are the steps passed to proxiedEngine().
import path from 'node:path';
import type { EngineFound } from '../../core/catalog/host_facts';
import {
  serverOf,
  type DatabaseServer,
  type EngineDriver,
  type ObservedServer,
  type ServerMetrics,
  type ServerSpec,
} from '../database';
import type { BackupStore } from '../backup_store';
import { asDriverErrors } from '../../core/driver';
import type { DriverContext } from '../../core/driver';
import { ensureProxy, proxyDifference, stopProxy, type ProxyContext } from '../hosted_server/access_proxy';
import { openBackupFile, removeBackupDirectory } from '../hosted_server/backups';
import { hostedServer, type Inspected } from '../hosted_server/driver';
import { NotReady } from '../hosted_server/readiness';
import { isReplacing, restorePreviousData } from '../hosted_server/replacement';
import {
  openServerDirectory,
  makeServerDirectory,
  requireServerDirectory,
  type ServerDirectory,
} from '../hosted_server/server_directory';
import { endReasonOf, killTask, stateOf, unitOf } from '../hosted_server/unit';
import type { RuntimeDriver } from '../runtime';
import { serverFingerprint, requireProgram, startedDifference, type Started } from './proxied_server';
import { ensureRoom, diskBytes, type RoomSteps } from './disk_size';

export interface ProxiedOptions {
  runtime: RuntimeDriver;
  /** For all servers and their backups; created if missing. */
  directory: string;
  /** Installed servers, from hostFacts(). */
  found: EngineFound[];
  /** Bytes per GB of `storage_gb`; default: 2^30. */
  gigabyteBytes?: number;
  /** Addresses of public endpoints; default: all addresses of the host except those of the loopback interface. */
  publicAddresses?: string[];
  /** Store of backups; none: they are kept in the directory. */
  store?: BackupStore | null;
  /** As EngineContext. */
  disks?: boolean;
}

/** `product`: display name of the engine. */
export interface ProxiedContext extends ProxyContext {
  product: string;
  found: EngineFound[];
}

/** State of a running server, apart from its process. */
export interface ServerState {
  /** Description for the operator; null = up to date. */
  differs: string | null;
  storageUsedBytes: number;
  full: boolean;
  lagSeconds: number | null;
}

/** Measurements of the runtime; undefined where the server has no process. */
export type MeasuredUsage = Pick<ServerMetrics, 'memory_bytes' | 'cpu_seconds'> | undefined;

/** `Client`: sends commands to a running server. */
export interface ProxiedSteps<Client> extends RoomSteps {
  /** @throws DriverError invalid, unsupported for a spec that the engine does not support */
  requireValid(server: DatabaseServer): void;
  /** Fills the data directory of a new server, in the task `setup`. */
  setUp(server: DatabaseServer, data: string, ctx: DriverContext): Promise<void>;
  start(serverDirectory: ServerDirectory, server: DatabaseServer, ctx: DriverContext): Promise<void>;
  /** Digests of the configuration for a start now. */
  startedWith(serverDirectory: ServerDirectory, server: DatabaseServer): Promise<Started>;
  /** @throws NotReady @throws DriverError conflict where another server responds */
  withServer<T>(
    serverDirectory: ServerDirectory,
    server: DatabaseServer,
    work: (client: Client) => Promise<T>,
    ctx: DriverContext,
  ): Promise<T>;
  /** Read-only. */
  inspect(serverDirectory: ServerDirectory, server: DatabaseServer, client: Client): Promise<ServerState>;
  /** Applies everything that needs no restart: users, storage limit, and a new certificate. */
  configure(
    serverDirectory: ServerDirectory,
    server: DatabaseServer,
    change: 'certificate' | null,
    client: Client,
  ): Promise<void>;
  metrics(client: Client, usage: MeasuredUsage): Promise<ServerMetrics>;
}

type SharedCapabilities = 'versions' | 'metrics' | 'removeBackup' | 'openBackup' | 'window';

const nothingObserved: Omit<ObservedServer, 'state'> = {
  storage_used_bytes: null,
  full: false,
  replication_lag_seconds: null,
  reason: null,
};

export function proxiedContext<Name extends string>(
  name: Name,
  product: string,
  options: ProxiedOptions,
): ProxiedContext & { name: Name } {
  return {
    name,
    product,
    runtime: options.runtime,
    directory: path.resolve(options.directory),
    found: options.found,
    gigabyteBytes: options.gigabyteBytes ?? 2 ** 30,
    publicAddresses: options.publicAddresses ?? null,
    store: options.store ?? null,
    disks: options.disks ?? false,
  };
}

/** A driver without optional capabilities. */
export function proxiedEngine<Client>(
  engine: ProxiedContext,
  steps: ProxiedSteps<Client>,
): Pick<EngineDriver, SharedCapabilities> & ReturnType<typeof hostedServer<ServerSpec, ObservedServer>> {
  const series = seriesOf(engine.found);
  return {
    ...hostedServer<ServerSpec, ObservedServer>({
      context: engine,
      fingerprint: () => Promise.resolve(serverFingerprint(engine.product, series)),
      inspect: (serverDirectory, r, ctx) => inspectServer(engine, steps, serverDirectory, serverOf(r), ctx),
      ensure: (r, _obs, ctx) => ensureProxiedServer(engine, steps, serverOf(r), ctx),
      stop: (id, ctx) => stopEverything(engine, steps, id, ctx),
      readLog: (id, position) => engine.runtime.readLog(unitOf(id), position),
    }),
    versions: () => Promise.resolve(series),
    metrics: (r, ctx) => asDriverErrors(() => measure(engine, steps, serverOf(r), ctx)),
    removeBackup: (serverId, backupId, ctx) =>
      asDriverErrors(() => removeBackupDirectory(engine, serverId, backupId, ctx)),
    openBackup: (serverId, backupId, from) => asDriverErrors(() => openBackupFile(engine, serverId, backupId, from)),
    window: () => Promise.resolve(null),
  };
}

/** One reconciliation step of a server. @throws DriverError */
export async function ensureProxiedServer<Client>(
  engine: ProxiedContext,
  steps: ProxiedSteps<Client>,
  server: DatabaseServer,
  ctx: DriverContext,
): Promise<{ requeueMs?: number }> {
  requireProgram(engine, server.version);
  steps.requireValid(server);
  const found = await openServerDirectory(engine, server.id);
  if (found === 'absent') await killTask(engine, server.id, 'setup', ctx);
  const serverDirectory =
    found === 'absent'
      ? await makeServerDirectory(
          engine,
          server.id,
          (temporary) => steps.setUp(server, temporary.data, ctx),
          ctx,
          diskBytes(engine, server),
        )
      : await requireServerDirectory(engine, server.id);
  await ensureRoom(engine, serverDirectory, server, steps, ctx);
  if (await isReplacing(serverDirectory)) {
    await steps.stop(server.id, ctx);
    await restorePreviousData(serverDirectory, ctx);
  }
  try {
    await ensureProxy(engine, serverDirectory, server, ctx);
    if (!server.running) await steps.stop(server.id, ctx);
    if (server.running) await ensureRunning(engine, steps, serverDirectory, server, ctx);
    // The server may have moved to another network.
    await ensureProxy(engine, serverDirectory, server, ctx);
    return {};
  } catch (error) {
    if (error instanceof NotReady) return { requeueMs: error.retryAfterMs };
    throw error;
  }
}

/** Installed series of the engine, without duplicates, newest first. */
function seriesOf(found: readonly EngineFound[]): string[] {
  return [...new Set(found.map(({ series }) => series))].sort((one, other) =>
    other.localeCompare(one, 'en', { numeric: true }),
  );
}

async function inspectServer<Client>(
  engine: ProxiedContext,
  steps: ProxiedSteps<Client>,
  serverDirectory: ServerDirectory,
  server: DatabaseServer,
  ctx: DriverContext,
): Promise<Inspected<ObservedServer>> {
  const { state } = await stateOf(engine, server.id);
  if (state.state === 'exited') {
    const reason = endReasonOf(state);
    return { observed: { ...nothingObserved, state: 'failed', reason }, diff: 'the process has ended' };
  }
  if (state.state === 'gone')
    return { observed: { ...nothingObserved, state: 'stopped' }, diff: server.running ? 'it does not run' : null };
  try {
    return await inspectRunning(engine, steps, serverDirectory, server, ctx);
  } catch (error) {
    if (!(error instanceof NotReady)) throw error;
    return { observed: { ...nothingObserved, state: 'starting' }, diff: 'it does not answer yet' };
  }
}

async function inspectRunning<Client>(
  engine: ProxiedContext,
  steps: ProxiedSteps<Client>,
  serverDirectory: ServerDirectory,
  server: DatabaseServer,
  ctx: DriverContext,
): Promise<Inspected<ObservedServer>> {
  const change = await startedDifference(serverDirectory, await steps.startedWith(serverDirectory, server));
  // The running process may still have another administrator password.
  if (change === 'settings') return { observed: { ...nothingObserved, state: 'running' }, diff: change };
  const current = await steps.withServer(
    serverDirectory,
    server,
    (client) => steps.inspect(serverDirectory, server, client),
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

async function ensureRunning<Client>(
  engine: ProxiedContext,
  steps: ProxiedSteps<Client>,
  serverDirectory: ServerDirectory,
  server: DatabaseServer,
  ctx: DriverContext,
): Promise<void> {
  const { state } = await stateOf(engine, server.id);
  const change = await startedDifference(serverDirectory, await steps.startedWith(serverDirectory, server));
  if (state.state === 'running' && change === 'settings') await steps.stop(server.id, ctx);
  if (state.state !== 'running' || change === 'settings') await steps.start(serverDirectory, server, ctx);
  const live = change === 'certificate' ? change : null;
  await steps.withServer(
    serverDirectory,
    server,
    (client) => steps.configure(serverDirectory, server, live, client),
    ctx,
  );
}

/** Stops the access proxy, the server, and the setup task of a killed call. */
async function stopEverything<Client>(
  engine: ProxiedContext,
  steps: ProxiedSteps<Client>,
  id: string,
  ctx: DriverContext,
): Promise<void> {
  await stopProxy(engine, id, ctx);
  await steps.stop(id, ctx);
  await killTask(engine, id, 'setup', ctx);
}

async function measure<Client>(
  engine: ProxiedContext,
  steps: ProxiedSteps<Client>,
  server: DatabaseServer,
  ctx: DriverContext,
): Promise<ServerMetrics> {
  const serverDirectory = await requireServerDirectory(engine, server.id);
  const { handle } = await stateOf(engine, server.id);
  const usage = handle === null ? undefined : (await engine.runtime.usage([handle])).get(unitOf(server.id));
  return steps.withServer(serverDirectory, server, (client) => steps.metrics(client, usage), ctx);
}
