// The processes of a server, as units of the runtime: `<id>.server`, and `<id>.<purpose>` for what ends by itself.
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError, checkpoint } from '../driver';
import type { DriverContext } from '../driver';
import type { ServerSpec } from '../database';
import type { Handle, UnitSpec, UnitState } from '../runtime';
import type { Estate, Home } from './home';

export type Ended = Extract<UnitState, { state: 'exited' }>;

const lookEveryMs = 50;
const logBytes = 8 << 20;

/** `threads`: what the server has beside one a connection. */
export interface Program {
  command: string;
  threads: number;
  readable?: string[];
}

/** What the runtime must know of the server. */
export type Runs = Pick<ServerSpec, 'id' | 'tenant' | 'size'>;

export function unitOf(id: string): string {
  return `${id}.server`;
}

export async function stateOf(estate: Estate, id: string): Promise<{ state: UnitState; handle: Handle | null }> {
  const handle = await estate.runtime.find(unitOf(id));
  return { handle, state: handle === null ? { state: 'gone' } : await estate.runtime.inspect(handle) };
}

/** Starts the server; one that has ended before is cleared away first. */
export async function startServer(
  estate: Estate,
  home: Home,
  spec: Runs,
  program: Program,
  ctx: DriverContext,
): Promise<void> {
  await estate.runtime.destroy(unitOf(spec.id), ctx);
  const mounts = [home.data, home.conf].map((one) => ({ source: one, target: one }));
  await estate.runtime.start(
    { ...common(spec, program), id: unitOf(spec.id), kind: 'service', directory: home.run, mounts },
    ctx,
  );
}

/** Stops the server; stopped is success. Killed after the grace time: all engines take that, and recover at the next start. */
export async function stopServer(estate: Estate, id: string, graceMs: number, ctx: DriverContext): Promise<void> {
  const { handle, state } = await stateOf(estate, id);
  if (handle !== null && state.state === 'running') await estate.runtime.stop(handle, { grace_ms: graceMs }, ctx);
  await estate.runtime.destroy(unitOf(id), ctx);
}

/** Runs a program to its end in `directory`, which becomes its user's. @throws DriverError transient with its last line */
export async function runTask(
  estate: Estate,
  spec: Runs,
  purpose: string,
  directory: string,
  program: Program,
  ctx: DriverContext,
): Promise<void> {
  const id = `${spec.id}.${purpose}`;
  await estate.runtime.destroy(id, ctx);
  const unit: UnitSpec = {
    ...common(spec, program),
    id,
    kind: 'task',
    directory,
    mounts: [{ source: directory, target: directory }],
  };
  unit.limits.time_ms = Math.max(1_000, ctx.deadline - Date.now());
  const handle = await estate.runtime.start(unit, ctx);
  try {
    const end = await endOf(estate, handle, ctx);
    if (end.code !== 0)
      throw Object.assign(new DriverError('transient', `The ${purpose} of the server failed.`), {
        cause: await lastLines(estate, id),
      });
  } finally {
    await estate.runtime.destroy(id, ctx);
  }
}

/** Ends a task that a killed control plane has left, so that nobody writes in the directory that it had. */
export async function endTask(estate: Estate, id: string, purpose: string, ctx: DriverContext): Promise<void> {
  await estate.runtime.destroy(`${id}.${purpose}`, ctx);
}

/** For users: why a server has ended that nobody stopped. */
export function reasonOf(end: Ended): string {
  if (end.killed === 'memory') return 'The server used more memory than its package has.';
  return end.signal === null ? `The server ended with code ${end.code}.` : `The server was ended by ${end.signal}.`;
}

/** The last words of a unit, for the operator. */
export async function lastLines(estate: Estate, unitId: string): Promise<string> {
  const { lines } = await estate.runtime.readLog(unitId, null);
  return lines
    .slice(-20)
    .map(({ text }) => text)
    .join('\n');
}

function common(
  spec: Runs,
  { command, threads, readable = [] }: Program,
): Omit<UnitSpec, 'id' | 'kind' | 'directory' | 'mounts'> {
  const { memory_mb, cpus, max_connections } = spec.size;
  const limits = {
    memory_mb,
    cpus,
    processes: threads + max_connections,
    time_ms: null,
    output_bytes: logBytes,
    disk_mb: null,
  };
  return { command, root_directory: '.', env: {}, tenant: spec.tenant, limits, readable };
}

async function endOf(estate: Estate, handle: Handle, ctx: DriverContext): Promise<Ended> {
  for (;;) {
    const state = await estate.runtime.inspect(handle);
    if (state.state === 'exited') return state;
    if (state.state === 'gone')
      throw new DriverError('transient', 'A program of the server was taken away while it ran.');
    checkpoint(ctx);
    await sleep(lookEveryMs);
  }
}
