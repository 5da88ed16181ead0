// What the drivers of servers behind a gate share: Redis, Valkey and MariaDB differ in what is said to the server, not in how
// its process and its home are looked at, brought and taken away.
import type { EngineFound } from '../../core/host_facts';
import type { ServerSeen, ServerSpec } from '../database';
import type { DriverContext } from '../driver';
import { bringGate, stopGate, type GateEstate } from './gate';
import { findHome, makeHome, removeHome, requireHome, type Estate, type Home } from './home';
import { NotReady } from './readiness';
import { isReplacing, putBack } from './replacement';
import { endTask, reasonOf, stateOf } from './unit';

export const nothingSeen: Omit<ServerSeen, 'state'> = {
  differs: null,
  storage_used_bytes: null,
  full: false,
  replication_lag_seconds: null,
  reason: null,
};

type Stop = (estate: Estate, id: string, ctx: DriverContext) => Promise<void>;

/** How an engine makes the home of a server, stops its process, and brings it to the spec. */
export interface Bringing {
  /** Fills the data directory of a home that is being made, in the task `setup`. */
  setUp(data: string): Promise<void>;
  stop: Stop;
  bring(home: Home): Promise<void>;
}

/** Series of the engine on this host, each once. */
export function versionsOf(found: readonly EngineFound[]): string[] {
  return [...new Set(found.map(({ series }) => series))].sort((one, other) =>
    other.localeCompare(one, 'en', { numeric: true }),
  );
}

/** @param seen looks at one that runs, and may throw NotReady */
export async function observeServer(
  estate: Estate,
  spec: ServerSpec,
  seen: (home: Home) => Promise<ServerSeen>,
): Promise<ServerSeen> {
  const home = await findHome(estate, spec.id);
  if (typeof home === 'string') return { ...nothingSeen, state: home, differs: home };
  const { state } = await stateOf(estate, spec.id);
  if (state.state === 'exited') return { ...nothingSeen, state: 'failed', differs: 'ended', reason: reasonOf(state) };
  if (state.state === 'gone') return { ...nothingSeen, state: 'stopped', differs: spec.running ? 'stopped' : null };
  try {
    return await seen(home);
  } catch (error) {
    if (error instanceof NotReady) return { ...nothingSeen, state: 'starting', differs: 'starting' };
    throw error;
  }
}

/** One step from what a server is to what it should be. @throws DriverError */
export async function ensureServer(
  estate: GateEstate,
  spec: ServerSpec,
  { setUp, stop, bring }: Bringing,
  ctx: DriverContext,
): Promise<{ requeueMs?: number }> {
  const found = await findHome(estate, spec.id);
  if (found === 'absent') await endTask(estate, spec.id, 'setup', ctx);
  const home =
    found === 'absent'
      ? await makeHome(estate, spec.id, (draft) => setUp(draft.data), ctx)
      : await requireHome(estate, spec.id);
  if (await isReplacing(home)) {
    await stop(estate, spec.id, ctx);
    await putBack(home, ctx);
  }
  try {
    await bringGate(estate, home, spec, ctx);
    if (!spec.running) await stop(estate, spec.id, ctx);
    if (spec.running) await bring(home);
    return {};
  } catch (error) {
    if (error instanceof NotReady) return { requeueMs: error.retryAfterMs };
    throw error;
  }
}

/** Its processes and its home; removed is success, and what is another's is left alone. */
export async function removeServer(estate: GateEstate, id: string, stop: Stop, ctx: DriverContext): Promise<void> {
  if ((await findHome(estate, id)) === 'foreign') return;
  await stopGate(estate, id, ctx);
  await stop(estate, id, ctx);
  await endTask(estate, id, 'setup', ctx);
  await removeHome(estate, id, ctx);
}
