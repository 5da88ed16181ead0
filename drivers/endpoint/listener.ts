// Common parts of endpoint programs: a directory with generated files, a unit, and the decision between reload and
// restart.
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProgramFound } from '../../core/catalog/host_facts';
import { DriverError, checkpoint } from '../../core/driver';
import type { Desired, DriverContext, Fingerprint, Observation } from '../../core/driver';
import type { EndpointDriver, ListenerSpec, ObservedListener } from '../endpoint';
import { ensureProxy, networkProxy, proxiedListener, proxyDifference, stopProxy } from '../hosted_server/access_proxy';
import { hostedServer, shellQuoted, type Inspected } from '../hosted_server/driver';
import {
  openServerDirectory,
  makeServerDirectory,
  ownerOf,
  readNote,
  removeNote,
  requireServerDirectory,
  writeFileFor,
  writeNote,
  type EngineContext,
  type ServerDirectory,
} from '../hosted_server/server_directory';
import {
  endReasonOf,
  killTask,
  lastLines,
  runServerTask,
  startServer,
  stateOf,
  stopServer,
  unitOf,
} from '../hosted_server/unit';
import type { LogChunk, RuntimeDriver } from '../runtime';
import { appliedOf, type Applied } from './applied';
import type { ListenerProgram } from './program';

export interface ListenerOptions {
  runtime: RuntimeDriver;
  /** Parent directory of all endpoints; created if missing. */
  directory: string;
  /** null: not installed. Called each time, so that it can be installed later. */
  found(): Promise<ProgramFound | null>;
}

interface Listener<S extends ListenerSpec> {
  program: ListenerProgram<S>;
  engine: EngineContext;
  found: ListenerOptions['found'];
}

const pollEveryMs = 25;
const listensWithinMs = 4_000;
const noticedWithinMs = 500;
const graceMs = 2_000;

/** The driver of a program. */
export function openListener<S extends ListenerSpec>(
  program: ListenerProgram<S>,
  { runtime, directory, found }: ListenerOptions,
): EndpointDriver<S> {
  const context = { runtime, directory: path.resolve(directory), name: program.name, gigabyteBytes: 2 ** 30 };
  const listener: Listener<S> = { program, found, engine: context };
  return hostedServer({
    context,
    fingerprint: () => fingerprintOf(listener),
    inspect: (serverDirectory, r) => inspect(listener, serverDirectory, r),
    ensure: (r, obs, ctx) => ensure(listener, r, obs, ctx),
    stop: async (id, ctx) => {
      await stopProxy(context, id, ctx);
      await stopServer(context, id, graceMs, ctx);
      await killTask(context, id, 'setup', ctx);
    },
    readLog: (id, position) => readLog(listener, id, position),
  });
}

async function fingerprintOf<S extends ListenerSpec>({ program, found }: Listener<S>): Promise<Fingerprint> {
  const installed = await found();
  return {
    healthy: installed !== null,
    reason: installed === null ? program.missing : null,
    facts: installed === null ? {} : { version: installed.version },
  };
}

async function inspect<S extends ListenerSpec>(
  listener: Listener<S>,
  serverDirectory: ServerDirectory,
  r: Desired<S>,
): Promise<Inspected<ObservedListener>> {
  const { engine } = listener;
  const { state, handle } = await stateOf(engine, r.id);
  const running = state.state === 'running';
  const observed: ObservedListener = {
    state: running ? 'running' : state.state === 'exited' ? 'failed' : 'stopped',
    reason: state.state === 'exited' ? endReasonOf(state) : null,
  };
  const diff =
    running && r.spec.running && handle !== null
      ? ((await differenceOf(listener, serverDirectory, r.spec, await engine.runtime.listening(handle))) ??
        (await proxyDifference(networkProxy(engine), serverDirectory, proxiedListener(r))))
      : runningDifference(running, r.spec);
  return { observed, diff };
}

function runningDifference(running: boolean, spec: ListenerSpec): string | null {
  if (running === spec.running) return null;
  return running ? 'it should not run' : 'it does not run';
}

async function differenceOf<S extends ListenerSpec>(
  { program }: Listener<S>,
  serverDirectory: ServerDirectory,
  spec: S,
  ports: number[] | null,
): Promise<string | null> {
  const applied = await readNote<Applied>(serverDirectory, 'applied');
  if (JSON.stringify(applied) !== JSON.stringify(appliedOf(program, spec))) return 'it runs with other settings';
  return ports === null || ports.includes(spec.port) ? null : 'it does not listen';
}

async function ensure<S extends ListenerSpec>(
  listener: Listener<S>,
  r: Desired<S>,
  obs: Observation<ObservedListener>,
  ctx: DriverContext,
): Promise<{ requeueMs?: number }> {
  const { engine } = listener;
  const { id, spec } = r;
  const serverDirectory = await ensureServerDirectory(listener, r, ctx);
  if (!spec.running) {
    await stop(listener, serverDirectory, ctx);
    return {};
  }
  if (!(await isSettled(listener, serverDirectory, r)) && !(await reloadRunning(listener, serverDirectory, r))) {
    // It exited after the observation: the caller should see that before it is restarted.
    if (obs.state === 'present' && obs.observed.state === 'running' && (await hasEnded(engine, id, spec.port)))
      return { requeueMs: 0 };
    await restart(listener, serverDirectory, r, ctx);
  }
  await ensureProxy(networkProxy(engine), serverDirectory, proxiedListener(r), ctx);
  return {};
}

// The port of a killed process is closed before its exit is noticed.
async function hasEnded(engine: EngineContext, id: string, port: number): Promise<boolean> {
  for (const end = Date.now() + noticedWithinMs; ; await sleep(pollEveryMs)) {
    const { state, handle } = await stateOf(engine, id);
    if (state.state === 'exited') return true;
    const ports = handle === null ? [] : await engine.runtime.listening(handle);
    if (Date.now() >= end || ports === null || ports.includes(port)) return false;
  }
}

async function readLog<S extends ListenerSpec>(
  { program, engine }: Listener<S>,
  id: string,
  position: string | null,
): Promise<LogChunk> {
  const chunk = await engine.runtime.readLog(unitOf(id), position);
  const lines = chunk.lines.flatMap(({ stream, text }) => {
    const line = program.logLine(text.replaceAll(path.dirname(engine.directory), ''));
    return line === null ? [] : [{ stream, text: line }];
  });
  return { ...chunk, lines };
}

// The first task gives the directory to the user of the unit.
async function ensureServerDirectory<S extends ListenerSpec>(
  { program, engine }: Listener<S>,
  { id, spec }: Desired<S>,
  ctx: DriverContext,
): Promise<ServerDirectory> {
  if ((await openServerDirectory(engine, id)) !== 'absent') return requireServerDirectory(engine, id);
  await killTask(engine, id, 'setup', ctx);
  return makeServerDirectory(
    engine,
    id,
    (temporary) =>
      runServerTask(
        engine,
        { id, tenant: spec.tenant, network: spec.network, size: program.size },
        'setup',
        temporary.data,
        { command: ':', threads: 8 },
        ctx,
      ),
    ctx,
    null,
  );
}

async function isSettled<S extends ListenerSpec>(
  listener: Listener<S>,
  serverDirectory: ServerDirectory,
  { id, spec }: Desired<S>,
): Promise<boolean> {
  const { state, handle } = await stateOf(listener.engine, id);
  if (state.state !== 'running' || handle === null) return false;
  return (
    (await differenceOf(listener, serverDirectory, spec, await listener.engine.runtime.listening(handle))) === null
  );
}

/**
 * Reloads the running program, where that is sufficient. False where it has to be restarted, also if the reload failed.
 */
async function reloadRunning<S extends ListenerSpec>(
  listener: Listener<S>,
  serverDirectory: ServerDirectory,
  { id, spec }: Desired<S>,
): Promise<boolean> {
  const { program, engine } = listener;
  const applied = await readNote<Applied>(serverDirectory, 'applied');
  const desired = appliedOf(program, spec);
  const { state } = await stateOf(engine, id);
  if (
    state.state !== 'running' ||
    applied?.startup !== desired.startup ||
    JSON.stringify(applied) === JSON.stringify(desired)
  )
    return false;
  const sessions = applied.rights.every((right) => desired.rights.includes(right)) ? 'stay' : 'end';
  // Remove the note first: after a crash in between, the next call restarts the program.
  await removeNote(serverDirectory, 'applied');
  await writeFiles(listener, serverDirectory, spec);
  const isReloaded = await program.reload(serverDirectory, spec, sessions).then(
    () => true,
    () => false,
  );
  if (isReloaded) await writeNote(serverDirectory, 'applied', desired);
  return isReloaded;
}

async function restart<S extends ListenerSpec>(
  listener: Listener<S>,
  serverDirectory: ServerDirectory,
  { id, spec }: Desired<S>,
  ctx: DriverContext,
): Promise<void> {
  const { program, engine } = listener;
  const found = await listener.found();
  if (found === null) throw new DriverError('unsupported', program.missing);
  await stop(listener, serverDirectory, ctx);
  await writeFiles(listener, serverDirectory, spec);
  const command = `exec ${[found.path, ...program.arguments(serverDirectory)].map(shellQuoted).join(' ')}`;
  const elsewhere = found.path.startsWith('/usr/') ? [] : [path.dirname(found.path)];
  await startServer(
    engine,
    serverDirectory,
    { id, tenant: spec.tenant, network: spec.network, size: program.size, port: spec.port },
    { command, threads: 16, readable: [...program.readable(spec), ...elsewhere] },
    ctx,
  );
  await waitForPort(engine, id, spec.port, ctx);
  await writeNote(serverDirectory, 'applied', appliedOf(program, spec));
}

async function stop<S extends ListenerSpec>(
  { engine }: Listener<S>,
  serverDirectory: ServerDirectory,
  ctx: DriverContext,
): Promise<void> {
  await removeNote(serverDirectory, 'applied');
  await stopProxy(engine, serverDirectory.id, ctx);
  await stopServer(engine, serverDirectory.id, graceMs, ctx);
}

async function writeFiles<S extends ListenerSpec>(
  { program, found }: Listener<S>,
  serverDirectory: ServerDirectory,
  spec: S,
): Promise<void> {
  const version = (await found())?.version ?? '';
  const owner = await ownerOf(serverDirectory);
  for (const [name, text] of Object.entries(program.files(serverDirectory, spec, version)))
    await writeFileFor(path.join(serverDirectory.conf, name), text, owner);
}

// Verifies that the port belongs to this unit, not to another process.
async function waitForPort(engine: EngineContext, id: string, port: number, ctx: DriverContext): Promise<void> {
  for (const end = Date.now() + listensWithinMs; ; await sleep(pollEveryMs)) {
    checkpoint(ctx);
    const { state, handle } = await stateOf(engine, id);
    if (state.state !== 'running' || handle === null)
      throw await startFailure(engine, id, 'The program of the endpoint ended while it started.');
    const ports = await engine.runtime.listening(handle);
    if (ports === null || ports.includes(port)) return;
    if (Date.now() > end)
      throw await startFailure(engine, id, 'The endpoint cannot listen on its port, because another program does.');
  }
}

async function startFailure(engine: EngineContext, id: string, message: string): Promise<DriverError> {
  return Object.assign(new DriverError('transient', message, 2_000), { cause: await lastLines(engine, unitOf(id)) });
}
