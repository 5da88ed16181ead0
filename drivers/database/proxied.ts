// What the drivers of servers behind an access proxy share: Redis, Valkey and MariaDB differ in their commands, not in
// how the process and the directory of a server are observed and ensured.
import type { EngineFound } from '../../core/host_facts';
import type { DatabaseServer, ObservedServer } from '../database';
import type { DriverContext, Fingerprint } from '../driver';
import { ensureProxy, stopProxy, type ProxyContext } from '../hosted_server/access_proxy';
import type { Inspected } from '../hosted_server/driver';
import { NotReady } from '../hosted_server/readiness';
import { isReplacing, restorePreviousData } from '../hosted_server/replacement';
import {
  findServerDirectory,
  makeServerDirectory,
  requireServerDirectory,
  type EngineContext,
  type ServerDirectory,
} from '../hosted_server/server_directory';
import { endReasonOf, killTask, stateOf } from '../hosted_server/unit';

export const nothingObserved: Omit<ObservedServer, 'state'> = {
  storage_used_bytes: null,
  full: false,
  replication_lag_seconds: null,
  reason: null,
};

type Stop = (engine: EngineContext, id: string, ctx: DriverContext) => Promise<void>;

/** How an engine fills the data directory of a new server, stops its process, and starts and configures it. */
export interface ProxiedSteps {
  /** In the task `setup`. */
  setUp(data: string): Promise<void>;
  stop: Stop;
  run(serverDirectory: ServerDirectory): Promise<void>;
}

/** Series of the engine on this host, each once, newest first. */
export function seriesOf(found: readonly EngineFound[]): string[] {
  return [...new Set(found.map(({ series }) => series))].sort((one, other) =>
    other.localeCompare(one, 'en', { numeric: true }),
  );
}

export function fingerprintOf(product: string, series: string[]): Promise<Fingerprint> {
  if (series.length > 0)
    return Promise.resolve({ healthy: true, reason: null, facts: { versions: series.join(', ') } });
  return Promise.resolve({ healthy: false, reason: `${product} is not installed on this host.`, facts: {} });
}

/** @param inspectRunning looks at one that runs, and may throw NotReady */
export async function inspectServer(
  engine: EngineContext,
  server: DatabaseServer,
  inspectRunning: () => Promise<Inspected<ObservedServer>>,
): Promise<Inspected<ObservedServer>> {
  const { state } = await stateOf(engine, server.id);
  if (state.state === 'exited') {
    const reason = endReasonOf(state);
    return { observed: { ...nothingObserved, state: 'failed', reason }, diff: 'the process has ended' };
  }
  if (state.state === 'gone')
    return { observed: { ...nothingObserved, state: 'stopped' }, diff: server.running ? 'it does not run' : null };
  try {
    return await inspectRunning();
  } catch (error) {
    if (!(error instanceof NotReady)) throw error;
    return { observed: { ...nothingObserved, state: 'starting' }, diff: 'it does not answer yet' };
  }
}

/** One step from what a server is to what it should be. @throws DriverError */
export async function ensureServer(
  engine: ProxyContext,
  server: DatabaseServer,
  { setUp, stop, run }: ProxiedSteps,
  ctx: DriverContext,
): Promise<{ requeueMs?: number }> {
  const found = await findServerDirectory(engine, server.id);
  if (found === 'absent') await killTask(engine, server.id, 'setup', ctx);
  const serverDirectory =
    found === 'absent'
      ? await makeServerDirectory(engine, server.id, (temporary) => setUp(temporary.data), ctx)
      : await requireServerDirectory(engine, server.id);
  if (await isReplacing(serverDirectory)) {
    await stop(engine, server.id, ctx);
    await restorePreviousData(serverDirectory, ctx);
  }
  try {
    await ensureProxy(engine, serverDirectory, server, ctx);
    if (!server.running) await stop(engine, server.id, ctx);
    if (server.running) await run(serverDirectory);
    return {};
  } catch (error) {
    if (error instanceof NotReady) return { requeueMs: error.retryAfterMs };
    throw error;
  }
}

/** Ends the access proxy, the server, and a setup that a killed call has left. */
export async function stopEverything(engine: EngineContext, id: string, stop: Stop, ctx: DriverContext): Promise<void> {
  await stopProxy(engine, id, ctx);
  await stop(engine, id, ctx);
  await killTask(engine, id, 'setup', ctx);
}
