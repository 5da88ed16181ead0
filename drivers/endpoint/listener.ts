// What the programs of endpoints have in common: a directory with what is written for them, a unit, and the rule when a
// running one is told of a change and when it is started anew.
import { createHash } from 'node:crypto';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProgramFound } from '../../core/host_facts';
import type { ServerSpec } from '../database';
import {
  findHome,
  giveFile,
  listHomes,
  makeHome,
  ownerOf,
  readNote,
  removeHome,
  removeNote,
  requireHome,
  writeNote,
  type Estate,
  type Home,
} from '../database/home';
import { endTask, lastLines, reasonOf, runTask, startServer, stateOf, stopServer, unitOf } from '../database/unit';
import { DriverError, asDriverErrors, checkpoint } from '../driver';
import type { Desired, DriverContext, Ensured, Fingerprint, Observation } from '../driver';
import type { EndpointDriver, ListenerSeen, ListenerSpec } from '../endpoint';
import type { LogChunk, RuntimeDriver } from '../runtime';

export interface ListenerOptions {
  runtime: RuntimeDriver;
  /** Of all endpoints; made where it is missing. */
  directory: string;
  /** null: it is not installed. Asked for each time, so that it may be installed later. */
  found(): Promise<ProgramFound | null>;
}

/** What one program is. */
export interface Kind<S extends ListenerSpec> {
  name: 'pgbouncer' | 'haproxy';
  /** For users, where it is not installed. */
  missing: string;
  size: ServerSpec['size'];
  /** What it is started with; another one takes a new start. */
  fixed(spec: S): unknown;
  /** What it lets in, each as a word: where one goes, sessions have to end, and all do, because nobody tells them apart. */
  rights(spec: S): string[];
  /** Everything else of the spec, which a running one can be told. */
  told(spec: S): unknown;
  /** Files for `conf`, by name. @throws DriverError invalid */
  files(home: Home, spec: S): Record<string, string>;
  /** Arguments; the program is before them. */
  arguments(home: Home): string[];
  /** Directories of others that it uses. */
  readable(spec: S): string[];
  /** Makes the running one take what was written. @throws whatever */
  tell(home: Home, spec: S, sessions: 'stay' | 'end'): Promise<void>;
  /** A line of its log for users; null: nothing for them. */
  line(text: string): string | null;
}

/** What the running one was given, as digests. */
interface Applied {
  fixed: string;
  told: string;
  rights: string[];
}

interface Listener<S extends ListenerSpec> {
  kind: Kind<S>;
  estate: Estate;
  found: ListenerOptions['found'];
}

const lookEveryMs = 25;
const listensWithinMs = 4_000;
const noticedWithinMs = 500;
const graceMs = 2_000;

/** The driver of a program. */
export function openListener<S extends ListenerSpec>(
  kind: Kind<S>,
  { runtime, directory, found }: ListenerOptions,
): EndpointDriver<S> {
  const listener: Listener<S> = {
    kind,
    found,
    estate: { runtime, directory: path.resolve(directory), engine: kind.name, gigabyteBytes: 2 ** 30 },
  };
  return {
    name: kind.name,
    fingerprint: () => fingerprintOf(listener),
    observe: (r, ctx) => asDriverErrors(() => observe(listener, r, ctx)),
    ensure: (r, obs, ctx) => asDriverErrors(() => ensure(listener, r, obs, ctx)),
    remove: (r, _obs, ctx) => asDriverErrors(() => remove(listener, r.id, ctx)),
    readLog: (id, position) => asDriverErrors(() => readLog(listener, id, position)),
    forget: (id, ctx) => asDriverErrors(() => remove(listener, id, ctx)),
    async *list() {
      for (const id of await listHomes(listener.estate)) yield { ref: { driver: kind.name, name: id }, owner_id: id };
    },
  };
}

/** A word on the command line. */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

async function fingerprintOf<S extends ListenerSpec>({ kind, found }: Listener<S>): Promise<Fingerprint> {
  const program = await found();
  return {
    healthy: program !== null,
    reason: program === null ? kind.missing : null,
    facts: program === null ? {} : { version: program.version },
  };
}

async function observe<S extends ListenerSpec>(
  listener: Listener<S>,
  r: Desired<S>,
  ctx: DriverContext,
): Promise<Observation<ListenerSeen>> {
  checkpoint(ctx);
  const { estate } = listener;
  const home = await findHome(estate, r.id);
  if (home === 'absent') return { state: 'absent' };
  if (home === 'foreign') return { state: 'foreign', detail: 'Something else has the name of this endpoint.' };
  const { state, handle } = await stateOf(estate, r.id);
  const running = state.state === 'running';
  const observed: ListenerSeen = {
    state: running ? 'running' : state.state === 'exited' ? 'failed' : 'stopped',
    reason: state.state === 'exited' ? reasonOf(state) : null,
  };
  const diff =
    running && r.spec.running && handle !== null
      ? await differenceOf(listener, home, r.spec, await estate.runtime.listening(handle))
      : wordsFor(running, r.spec);
  return {
    state: 'present',
    observed,
    upToDate: diff === null && observed.state !== 'failed',
    ...(diff !== null && { diff }),
  };
}

function wordsFor(running: boolean, spec: ListenerSpec): string | null {
  if (running === spec.running) return null;
  return running ? 'it should not run' : 'it does not run';
}

async function differenceOf<S extends ListenerSpec>(
  { kind }: Listener<S>,
  home: Home,
  spec: S,
  ports: number[] | null,
): Promise<string | null> {
  const applied = await readNote<Applied>(home, 'applied');
  if (JSON.stringify(applied) !== JSON.stringify(appliedOf(kind, spec))) return 'it runs with other settings';
  return ports === null || ports.includes(spec.port) ? null : 'it does not listen';
}

async function ensure<S extends ListenerSpec>(
  listener: Listener<S>,
  r: Desired<S>,
  obs: Observation<ListenerSeen>,
  ctx: DriverContext,
): Promise<Ensured> {
  checkpoint(ctx);
  const { estate } = listener;
  const { id, spec } = r;
  const ref = { driver: estate.engine, name: id };
  const home = await settleHome(listener, r, ctx);
  if (!spec.running) await stop(listener, home, ctx);
  else if (!(await isSettled(listener, home, r)) && !(await isTold(listener, home, r))) {
    // Ended since it was looked at: whoever calls should see that before it is started again.
    if (obs.state === 'present' && obs.observed.state === 'running' && (await hasEnded(estate, id, spec.port)))
      return { ref, requeueMs: 0 };
    await startAnew(listener, home, r, ctx);
  }
  checkpoint(ctx);
  return { ref };
}

// The port of a program that was killed is closed before its end is noticed.
async function hasEnded(estate: Estate, id: string, port: number): Promise<boolean> {
  for (const end = Date.now() + noticedWithinMs; ; await sleep(lookEveryMs)) {
    const { state, handle } = await stateOf(estate, id);
    if (state.state === 'exited') return true;
    const ports = handle === null ? [] : await estate.runtime.listening(handle);
    if (Date.now() >= end || ports === null || ports.includes(port)) return false;
  }
}

async function remove<S extends ListenerSpec>({ estate }: Listener<S>, id: string, ctx: DriverContext): Promise<void> {
  checkpoint(ctx);
  const home = await findHome(estate, id);
  if (home === 'foreign') return;
  await stopServer(estate, id, graceMs, ctx);
  await endTask(estate, id, 'setup', ctx);
  await removeHome(estate, id, ctx);
}

async function readLog<S extends ListenerSpec>(
  { kind, estate }: Listener<S>,
  id: string,
  position: string | null,
): Promise<LogChunk> {
  const chunk = await estate.runtime.readLog(unitOf(id), position);
  const lines = chunk.lines.flatMap(({ stream, text }) => {
    const line = kind.line(text.replaceAll(path.dirname(estate.directory), ''));
    return line === null ? [] : [{ stream, text: line }];
  });
  return { ...chunk, lines };
}

// Its first task gives the directory to the user of the unit.
async function settleHome<S extends ListenerSpec>(
  { kind, estate }: Listener<S>,
  { id, spec }: Desired<S>,
  ctx: DriverContext,
): Promise<Home> {
  if ((await findHome(estate, id)) !== 'absent') return requireHome(estate, id);
  await endTask(estate, id, 'setup', ctx);
  return makeHome(
    estate,
    id,
    (draft) =>
      runTask(
        estate,
        { id, tenant: spec.tenant, size: kind.size },
        'setup',
        draft.data,
        { command: ':', threads: 8 },
        ctx,
      ),
    ctx,
  );
}

async function isSettled<S extends ListenerSpec>(
  listener: Listener<S>,
  home: Home,
  { id, spec }: Desired<S>,
): Promise<boolean> {
  const { state, handle } = await stateOf(listener.estate, id);
  if (state.state !== 'running' || handle === null) return false;
  return (await differenceOf(listener, home, spec, await listener.estate.runtime.listening(handle))) === null;
}

/** Tells the running one, where that is enough. False where it has to be started anew, also because it did not listen. */
async function isTold<S extends ListenerSpec>(
  { kind, estate }: Listener<S>,
  home: Home,
  { id, spec }: Desired<S>,
): Promise<boolean> {
  const applied = await readNote<Applied>(home, 'applied');
  const wanted = appliedOf(kind, spec);
  const { state } = await stateOf(estate, id);
  if (
    state.state !== 'running' ||
    applied?.fixed !== wanted.fixed ||
    JSON.stringify(applied) === JSON.stringify(wanted)
  )
    return false;
  const sessions = applied.rights.every((right) => wanted.rights.includes(right)) ? 'stay' : 'end';
  // Killed in the middle, the next call starts it anew.
  await removeNote(home, 'applied');
  await writeFiles(kind, home, spec);
  const told = await kind.tell(home, spec, sessions).then(
    () => true,
    () => false,
  );
  if (told) await writeNote(home, 'applied', wanted);
  return told;
}

async function startAnew<S extends ListenerSpec>(
  listener: Listener<S>,
  home: Home,
  { id, spec }: Desired<S>,
  ctx: DriverContext,
): Promise<void> {
  const { kind, estate } = listener;
  const found = await listener.found();
  if (found === null) throw new DriverError('unsupported', kind.missing);
  await stop(listener, home, ctx);
  await writeFiles(kind, home, spec);
  const command = `exec ${[found.path, ...kind.arguments(home)].map(shellQuoted).join(' ')}`;
  const elsewhere = found.path.startsWith('/usr/') ? [] : [path.dirname(found.path)];
  await startServer(
    estate,
    home,
    { id, tenant: spec.tenant, size: kind.size },
    { command, threads: 16, readable: [...kind.readable(spec), ...elsewhere] },
    ctx,
  );
  await listens(estate, id, spec.port, ctx);
  await writeNote(home, 'applied', appliedOf(kind, spec));
}

async function stop<S extends ListenerSpec>({ estate }: Listener<S>, home: Home, ctx: DriverContext): Promise<void> {
  await removeNote(home, 'applied');
  await stopServer(estate, home.id, graceMs, ctx);
}

async function writeFiles<S extends ListenerSpec>(kind: Kind<S>, home: Home, spec: S): Promise<void> {
  const owner = await ownerOf(home);
  for (const [name, text] of Object.entries(kind.files(home, spec)))
    await giveFile(path.join(home.conf, name), text, owner);
}

// Its own port, and not one on which somebody else answers.
async function listens(estate: Estate, id: string, port: number, ctx: DriverContext): Promise<void> {
  for (const end = Date.now() + listensWithinMs; ; await sleep(lookEveryMs)) {
    checkpoint(ctx);
    const { state, handle } = await stateOf(estate, id);
    if (state.state !== 'running' || handle === null)
      throw await notStarted(estate, id, 'The program of the endpoint ended while it started.');
    const ports = await estate.runtime.listening(handle);
    if (ports === null || ports.includes(port)) return;
    if (Date.now() > end)
      throw await notStarted(estate, id, 'The endpoint cannot listen at its port: something else does.');
  }
}

async function notStarted(estate: Estate, id: string, message: string): Promise<DriverError> {
  return Object.assign(new DriverError('transient', message, 2_000), { cause: await lastLines(estate, unitOf(id)) });
}

function appliedOf<S extends ListenerSpec>(kind: Kind<S>, spec: S): Applied {
  const fixed = [kind.fixed(spec), spec.tenant, spec.port, kind.size];
  return { fixed: digestOf(fixed), told: digestOf(kind.told(spec)), rights: kind.rights(spec).map(digestOf).sort() };
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}
