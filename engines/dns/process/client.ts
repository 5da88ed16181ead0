// Answers from a process of its own, whose event loop has nothing else to do. One that ends is started again, with
// everything that is served.
import { fork, type ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CountersByZone } from '../nameserver';
import type { Answering, AnsweringOptions, ZoneText } from '../answering';
import { nextRestart, stopChild, type RestartPolicy } from '../../../core/process/children';
import { openProcessChannel, type Channel } from '../../../core/process/channel';

const BATCH_ZONES = 200;
const RESTARTS: RestartPolicy = {
  shortLifeMs: 30_000,
  pausesMs: [100, 500, 1_000, 2_000, 5_000],
  then: 'last pause again',
};
const CLOSE_WITHIN_MS = 2_000;
const LISTEN_AGAIN_MS = 1_000;

/** What the process is opened with. */
export interface ProcessOptions extends AnsweringOptions {
  /** For ALIAS records. */
  resolvers: string[];
}

interface ClientOptions extends ProcessOptions {
  /** All that is served. */
  load(): AsyncIterable<ZoneText>;
  /** It has ended without having been asked to. */
  ended(reason: string): void;
}

interface State {
  options: ClientOptions;
  child: ChildProcess | null;
  caller: Channel | null;
  /** Zones that have changed since the loading began: what is read from disk is older. */
  changed: Set<string>;
  /** The one to listen on, once it has been bound. */
  port: number | null;
  isListening: boolean;
  shortLives: number;
  /** The first one has everything; before, a failure is that of the start. */
  isOpen: boolean;
  isClosing: boolean;
}

export async function openAnsweringProcess(options: ClientOptions): Promise<Answering> {
  const state: State = {
    ...{ options, child: null, caller: null, changed: new Set() },
    ...{ port: null, isListening: false, shortLives: 0, isOpen: false, isClosing: false },
  };
  await start(state);
  state.isOpen = true;
  const call = <T>(verb: string, argument?: unknown): Promise<T> => {
    if (!state.caller) throw new Error('the process of the name server is being started');
    return state.caller.call<T>(verb, argument);
  };
  return {
    async put(zones) {
      for (const { id } of zones) state.changed.add(id);
      await call('put', zones);
    },
    async remove(id) {
      state.changed.add(id);
      await call('remove', id);
    },
    async listen(ports) {
      state.port = await call<number>('listen', ports);
      state.isListening = true;
      return state.port;
    },
    port: () => (state.isListening ? state.port : null),
    takeCounters: () => call<CountersByZone>('takeCounters'),
    close: () => close(state),
  };
}

async function start(state: State): Promise<void> {
  const { load, ended, ...options } = state.options;
  const begun = performance.now();
  const child = fork(require.resolve('./process'), [], { serialization: 'advanced', stdio: ['ignore', 2, 2, 'ipc'] });
  const caller = openProcessChannel(child, {});
  Object.assign(state, { child, caller, changed: new Set() });
  child.once('exit', (code, signal) => {
    state.caller = null;
    state.isListening = false;
    if (state.isClosing || !state.isOpen) return;
    ended(signal ?? `exit code ${code}`);
    const { shortLives, pauseMs } = nextRestart(RESTARTS, state.shortLives, performance.now() - begun);
    state.shortLives = shortLives;
    void restart(state, pauseMs as number);
  });
  await caller.call('open', options);
  for await (const zones of batchesOf(load()))
    await caller.call(
      'put',
      zones.filter(({ id }) => !state.changed.has(id)),
    );
  await listenAgain(state, caller);
}

/** Somebody else may have taken the port meanwhile. */
async function listenAgain(state: State, caller: Channel): Promise<void> {
  while (state.port !== null && !state.isClosing && state.caller === caller) {
    try {
      await caller.call('listen', [state.port]);
      state.isListening = true;
      return;
    } catch {
      await sleep(LISTEN_AGAIN_MS);
    }
  }
}

async function restart(state: State, pauseMs: number): Promise<void> {
  await sleep(pauseMs);
  if (state.isClosing) return;
  // What fails here ends the process, which starts the next one.
  await start(state).catch(() => state.child?.kill('SIGKILL'));
}

async function* batchesOf(zones: AsyncIterable<ZoneText>): AsyncIterable<ZoneText[]> {
  let batch: ZoneText[] = [];
  for await (const zone of zones) {
    batch.push(zone);
    if (batch.length < BATCH_ZONES) continue;
    yield batch;
    batch = [];
  }
  if (batch.length) yield batch;
}

/** It ends when the channel does. */
async function close(state: State): Promise<void> {
  state.isClosing = true;
  if (state.child) await stopChild(state.child, (child) => child.connected && child.disconnect(), CLOSE_WITHIN_MS);
}
