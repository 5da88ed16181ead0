// Processes of a server as units of the runtime: `<id>.server`, and `<id>.<purpose>` for tasks.
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError, checkpoint } from '../../core/driver';
import type { DriverContext } from '../../core/driver';
import type { Handle, Killed, UnitSpec, UnitState } from '../runtime';
import type { EngineContext, ServerDirectory } from './server_directory';

type Ended = Extract<UnitState, { state: 'exited' }>;

const pollEveryMs = 50;
const logBytes = 8 << 20;

/** `threads`: threads of the server, in addition to one per connection. */
export interface Program {
  command: string;
  threads: number;
  readable?: string[];
}

/** The part of the server's spec that the runtime needs. */
interface UnitOwner {
  id: string;
  tenant: number;
  network?: string;
  size: { memory_mb: number; cpus: number; max_connections: number };
  low_priority?: true;
  port?: number;
}

export function unitOf(id: string): string {
  return `${id}.server`;
}

export async function stateOf(engine: EngineContext, id: string): Promise<{ state: UnitState; handle: Handle | null }> {
  const handle = await engine.runtime.find(unitOf(id));
  return { handle, state: handle === null ? { state: 'gone' } : await engine.runtime.inspect(handle) };
}

/** Starts the server; removes the unit of an exited one first. */
export async function startServer(
  engine: EngineContext,
  serverDirectory: ServerDirectory,
  spec: UnitOwner,
  program: Program,
  ctx: DriverContext,
): Promise<void> {
  await engine.runtime.destroy(unitOf(spec.id), ctx);
  const mounts = [serverDirectory.data, serverDirectory.conf].map((one) => ({ source: one, target: one }));
  await engine.runtime.start(
    {
      ...common(spec, program),
      id: unitOf(spec.id),
      kind: 'service',
      directory: serverDirectory.run,
      mounts,
      published_port: spec.port,
    },
    ctx,
  );
}

/** Stops the server; stopped is success. It is killed after the grace time: all engines recover at the next start. */
export async function stopServer(
  engine: EngineContext,
  id: string,
  graceMs: number,
  ctx: DriverContext,
): Promise<void> {
  const { handle, state } = await stateOf(engine, id);
  if (handle !== null && state.state === 'running') await engine.runtime.stop(handle, { grace_ms: graceMs }, ctx);
  await engine.runtime.destroy(unitOf(id), ctx);
}

/**
 * Runs a program to completion in `directory`, which is given to its user.
 * @throws DriverError transient with the reason; its cause are the last lines
 */
export async function runServerTask(
  engine: EngineContext,
  spec: UnitOwner,
  purpose: string,
  directory: string,
  program: Program,
  ctx: DriverContext,
): Promise<void> {
  const id = `${spec.id}.${purpose}`;
  await engine.runtime.destroy(id, ctx);
  const unit: UnitSpec = {
    ...common(spec, program),
    id,
    kind: 'task',
    directory,
    mounts: [{ source: directory, target: directory }],
  };
  unit.limits.time_ms = Math.max(1_000, ctx.deadline - Date.now());
  const handle = await engine.runtime.start(unit, ctx);
  try {
    const end = await endOf(engine, handle, ctx);
    if (end.code !== 0)
      throw Object.assign(new DriverError('transient', `The ${purpose} of the server failed: it ${failureOf(end)}.`), {
        cause: await lastLines(engine, id),
      });
  } finally {
    await engine.runtime.destroy(id, ctx);
  }
}

/** Kills the task of a killed control plane, so that no process writes to its directory. */
export async function killTask(engine: EngineContext, id: string, purpose: string, ctx: DriverContext): Promise<void> {
  await engine.runtime.destroy(`${id}.${purpose}`, ctx);
}

const KILLED: Record<Killed, string> = {
  memory: 'used more memory than the package of the server has',
  time: 'took too long',
  output: 'printed too much',
  disk: 'wrote more than the package of the server has',
};

function failureOf(end: Ended): string {
  return end.killed === null ? exitOf(end) : KILLED[end.killed];
}

/** Why a server exited unexpectedly, for users. */
export function endReasonOf(end: Ended): string {
  return end.killed === 'memory' ? 'The server used more memory than its package has.' : `The server ${exitOf(end)}.`;
}

const exitOf = ({ code, signal }: Ended): string =>
  signal === null ? `ended with code ${code}` : `was ended by ${signal}`;

/** The last log lines of a unit, for the operator. */
export async function lastLines(engine: EngineContext, unitId: string): Promise<string> {
  const { lines } = await engine.runtime.readLog(unitId, null);
  return lines
    .slice(-20)
    .map(({ text }) => text)
    .join('\n');
}

function common(
  spec: UnitOwner,
  { command, threads, readable = [] }: Program,
): Omit<UnitSpec, 'id' | 'kind' | 'directory' | 'mounts'> {
  const { memory_mb, cpus, max_connections } = spec.size;
  const limits = {
    memory_mb,
    cpus: spec.low_priority ? null : cpus,
    processes: threads + max_connections,
    time_ms: null,
    output_bytes: logBytes,
    disk_mb: null,
  };
  const { tenant, network, low_priority } = spec;
  return { command, root_directory: '.', env: {}, tenant, network, limits, readable, low_priority };
}

async function endOf(engine: EngineContext, handle: Handle, ctx: DriverContext): Promise<Ended> {
  for (;;) {
    const state = await engine.runtime.inspect(handle);
    if (state.state === 'exited') return state;
    if (state.state === 'gone') throw new DriverError('transient', 'A program of the server was removed while it ran.');
    checkpoint(ctx);
    await sleep(pollEveryMs);
  }
}
