// The ingress as a process of its own: it serves on while the control plane restarts, is upgraded or killed.
//   node main.js DIRECTORY [successor]
// A control plane calls it over the socket in DIRECTORY. A successor gets its listeners from its parent.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { openSocketChannel, type Channel, type Handlers } from '../../../core/process/channel';
import { controlIdentity, listenControl } from './control_socket';
import { predecessorOf, startSuccessor, type Program } from './handover';
import { callbacksOf, closeServed, openServed, reportOf, type Follow, type Served } from './served';
import { programVersion, type Greeting, type IngressProcessSettings } from './settings';
import type { IngressDriver, Route, Unpin } from '../ingress';
import { type CdnZoneSpec, type PurgeSpec } from '../../cdn';

const REPORT_EVERY_MS = 300;
const CHECK_EVERY_MS = 2_000;
/** Without having been opened, e.g. because the control plane was killed meanwhile. */
const UNUSED_MS = 60_000;
const GRACE_MS = 30_000;
/** For the last message to go out. */
const EXIT_MS = 100;

interface State {
  directory: string;
  isSuccessor: boolean;
  /** The control plane that has it. */
  controller: Channel | null;
  /** One that stops, and takes no more reports. */
  held: Channel | null;
  served: Served | null;
  follow: Follow;
  isEnding: boolean;
}

/** @param follow a further source of the places of instances; absent: the control plane alone */
export async function runIngressProcess(follow: Follow = ({ ingress }) => ingress): Promise<void> {
  const [directory = '', role] = process.argv.slice(2);
  const isSuccessor = role === 'successor';
  await run({ directory, isSuccessor, controller: null, held: null, served: null, follow, isEnding: false });
}

async function run(state: State): Promise<void> {
  // Of the terminal: they are meant for the control plane.
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
  process.on('SIGTERM', () => void end(state, GRACE_MS));
  await listenControl(state.directory, (socket) => {
    const channel: Channel = openSocketChannel(
      socket,
      handlersOf(state, () => channel),
    );
    void channel.closed.then(() => {
      if (state.controller === channel) state.controller = null;
      if (state.isEnding) bypassCache(state);
    });
  });
  writeFileSync(path.join(state.directory, 'pid'), `${process.pid}\n`);
  if (state.isSuccessor) process.send?.('ready');
  const identity = controlIdentity(state.directory);
  setInterval(() => report(state), REPORT_EVERY_MS);
  setTimeout(() => state.served ?? process.exit(0), UNUSED_MS);
  // The directory has gone, or another process has its place.
  setInterval(() => {
    // One that was replaced has its time, also when the control plane that has replaced it restarts.
    if (state.isEnding) return;
    if (controlIdentity(state.directory) !== identity && !isBeingReplaced(state)) void end(state, GRACE_MS);
  }, CHECK_EVERY_MS);
}

/** Then the control plane says when to end. */
function isBeingReplaced(state: State): boolean {
  return state.controller !== null && controlIdentity(state.directory) !== null;
}

function report(state: State): void {
  const { controller, held, served } = state;
  const found = controller && controller !== held && served && reportOf(served);
  if (found) controller.send('report', found);
}

function handlersOf(state: State, channel: () => Channel): Handlers {
  const served = (): Served => {
    if (state.controller !== channel()) throw new Error('Another control plane has this ingress.');
    if (!state.served) throw new Error('The ingress is not open.');
    return state.served;
  };
  return {
    hello: (): Greeting => greet(state, channel()),
    open: (settings: IngressProcessSettings) => open(state, settings),
    hold() {
      report(state);
      state.held = channel();
    },
    ...routeHandlers(served),
    ...zoneHandlers(served),
    startSuccessor: (program: Program) => handOver(program, state.directory, served()),
    end: (graceMs: number, tunnelGraceMs?: number) => void end(state, graceMs, tunnelGraceMs),
  };
}

async function open(state: State, settings: IngressProcessSettings): Promise<IngressDriver['ports']> {
  const predecessor = state.isSuccessor ? await predecessorOf() : null;
  const callbacks = callbacksOf(() => state.controller);
  state.served ??= await openServed(settings, callbacks, predecessor, state.follow).catch((error: unknown) => {
    setTimeout(() => process.exit(1), EXIT_MS);
    throw error;
  });
  return state.served.ingress.ports;
}

function routeHandlers(served: () => Served): Handlers {
  return {
    restoreRoutes: (routes: Route[]) => served().ingress.restoreRoutes(routes),
    replaceRoutes: (routes: Route[], read: number) => served().ingress.replaceRoutes(routes, read),
    replaceApplicationRoutes: (id: string, routes: Route[], read: number) =>
      served().ingress.replaceApplicationRoutes(id, routes, read),
    pinRoutes: (pin: number, id: string, routes: Route[]) =>
      void served().pins.set(pin, served().ingress.pinRoutes(id, routes)),
    unpinRoutes(pin: number, read: number) {
      served().pins.get(pin)?.(read);
      served().pins.delete(pin);
    },
    confirmRoutes: (ageMs: number) => served().ingress.confirmRoutes(ageMs),
    drain: (instanceId: string, ms: number) => served().ingress.drain(instanceId, ms),
    forgetCertificate: (host: string | null) => served().ingress.forgetCertificate(host),
  };
}

function zoneHandlers(served: () => Served): Handlers {
  return {
    ensureZone(id: string, spec: CdnZoneSpec) {
      served().zones.set(id, spec);
      return served().cdn.driver.ensureZone(id, spec);
    },
    removeZone(id: string) {
      served().zones.delete(id);
      return served().cdn.driver.removeZone(id);
    },
    purge: (id: string, spec: PurgeSpec) => served().cdn.driver.purge(id, spec),
  };
}

/** Two caches can't keep files in one directory. */
async function handOver(program: Program, directory: string, served: Served): Promise<void> {
  await served.cdn.releaseObjects();
  try {
    await startSuccessor(program, directory, served);
  } catch (error) {
    served.cdn.reclaimObjects();
    throw error;
  }
}

/** Without a control plane, this process learns of no purges. */
function bypassCache({ controller, served }: State): void {
  if (!controller) served?.cdn.bypassCache();
}

function greet(state: State, channel: Channel): Greeting {
  const isBusy = state.controller !== null && state.controller !== channel;
  if (!isBusy) state.controller = channel;
  const { served } = state;
  if (!isBusy) served?.pins.forEach(endPin);
  return {
    isBusy,
    pid: process.pid,
    version: programVersion(),
    opened: served && { settings: served.settings, ports: served.ingress.ports, reads: served.ingress.beginRead() },
  };
}

/** Of a control plane that ended in the middle of a switch: its successor reads the outcome. */
function endPin(unpin: Unpin, pin: number, pins: Map<number, Unpin>): void {
  unpin();
  pins.delete(pin);
}

async function end(state: State, graceMs: number, tunnelGraceMs?: number): Promise<void> {
  // Called again, e.g. by SIGTERM while long responses are under way.
  if (state.isEnding) return void setTimeout(() => process.exit(0), graceMs);
  state.isEnding = true;
  bypassCache(state);
  if (state.served) await closeServed(state.served, graceMs, tunnelGraceMs);
  report(state);
  setTimeout(() => process.exit(0), EXIT_MS);
}
