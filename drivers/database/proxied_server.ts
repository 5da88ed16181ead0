// What the drivers of servers behind an access proxy share: Redis, Valkey and MariaDB differ in their commands, not in how
// the process and the directory of a server are observed, ensured and removed.
import type { EngineFound } from '../../core/host_facts';
import type { ObservedServer, ServerSpec } from '../database';
import type { DriverContext } from '../driver';
import { ensureProxy, stopProxy, type ProxyContext } from './access_proxy';
import {
  findServerDirectory,
  makeServerDirectory,
  removeServerDirectory,
  requireServerDirectory,
  type EngineContext,
  type ServerDirectory,
} from './server_directory';
import { NotReady } from './readiness';
import { isReplacing, restorePreviousData } from './replacement';
import { killTask, endReasonOf, stateOf } from './unit';

export const nothingObserved: Omit<ObservedServer, 'state'> = {
  differs: null,
  storage_used_bytes: null,
  full: false,
  replication_lag_seconds: null,
  reason: null,
};

type Stop = (engine: EngineContext, id: string, ctx: DriverContext) => Promise<void>;

/** How an engine makes the directory of a server, stops its process, and brings it to the spec. */
export interface ServerSteps {
  /** Fills the data directory of a server directory that is being made, in the task `setup`. */
  setUp(data: string): Promise<void>;
  stop: Stop;
  run(serverDirectory: ServerDirectory): Promise<void>;
}

/** Series of the engine on this host, each once. */
export function versionsOf(found: readonly EngineFound[]): string[] {
  return [...new Set(found.map(({ series }) => series))].sort((one, other) =>
    other.localeCompare(one, 'en', { numeric: true }),
  );
}

/** @param seen looks at one that runs, and may throw NotReady */
export async function observeServer(
  engine: EngineContext,
  spec: ServerSpec,
  seen: (serverDirectory: ServerDirectory) => Promise<ObservedServer>,
): Promise<ObservedServer> {
  const serverDirectory = await findServerDirectory(engine, spec.id);
  if (typeof serverDirectory === 'string')
    return { ...nothingObserved, state: serverDirectory, differs: serverDirectory };
  const { state } = await stateOf(engine, spec.id);
  if (state.state === 'exited')
    return { ...nothingObserved, state: 'failed', differs: 'ended', reason: endReasonOf(state) };
  if (state.state === 'gone') return { ...nothingObserved, state: 'stopped', differs: spec.running ? 'stopped' : null };
  try {
    return await seen(serverDirectory);
  } catch (error) {
    if (error instanceof NotReady) return { ...nothingObserved, state: 'starting', differs: 'starting' };
    throw error;
  }
}

/** One step from what a server is to what it should be. @throws DriverError */
export async function ensureServer(
  engine: ProxyContext,
  spec: ServerSpec,
  { setUp, stop, run: bring }: ServerSteps,
  ctx: DriverContext,
): Promise<{ requeueMs?: number }> {
  const found = await findServerDirectory(engine, spec.id);
  if (found === 'absent') await killTask(engine, spec.id, 'setup', ctx);
  const serverDirectory =
    found === 'absent'
      ? await makeServerDirectory(engine, spec.id, (temporary) => setUp(temporary.data), ctx)
      : await requireServerDirectory(engine, spec.id);
  if (await isReplacing(serverDirectory)) {
    await stop(engine, spec.id, ctx);
    await restorePreviousData(serverDirectory, ctx);
  }
  try {
    await ensureProxy(engine, serverDirectory, spec, ctx);
    if (!spec.running) await stop(engine, spec.id, ctx);
    if (spec.running) await bring(serverDirectory);
    return {};
  } catch (error) {
    if (error instanceof NotReady) return { requeueMs: error.retryAfterMs };
    throw error;
  }
}

/** Its processes and its directory; removed is success, and what is another's is left alone. */
export async function removeServer(engine: ProxyContext, id: string, stop: Stop, ctx: DriverContext): Promise<void> {
  if ((await findServerDirectory(engine, id)) === 'foreign') return;
  await stopProxy(engine, id, ctx);
  await stop(engine, id, ctx);
  await killTask(engine, id, 'setup', ctx);
  await removeServerDirectory(engine, id, ctx);
}
