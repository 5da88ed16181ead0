// Work that is done again and again in the background, such as writing what was counted: a register of all of it in
// this process, which `platform doctor` and /metrics show.
import type { Logger } from '../log/log';

interface RepeatedWorkOptions {
  /** In snake_case, as in /metrics. Works of the same name are shown as one. */
  name: string;
  everyMs: number;
  log?: Pick<Logger, 'warn'>;
  /** Logged with the error of the first run that fails after one that succeeded. */
  failure?: string;
}

export interface RepeatedWork {
  /** Runs it now, unless it is being run. */
  runNow(): void;
  /** Waits for the run that is under way, and starts no other one. Never rejects. */
  stop(): Promise<void>;
  /** As `stop`, after one run more. */
  finish(): Promise<void>;
}

/** How a work fares. Times are in ms since the epoch; null: never. */
export interface WorkState {
  name: string;
  everyMs: number;
  runs: number;
  failures: number;
  /** When the last run began, and the last that succeeded ended. */
  lastRunAt: number | null;
  lastSuccessAt: number | null;
  /** Of the last run; null where it succeeded. */
  lastError: string | null;
}

const register = new Set<WorkState>();

/** The works of this process that have not been stopped, by name. */
export function backgroundWork(): readonly WorkState[] {
  return [...register].sort((one, other) => one.name.localeCompare(other.name));
}

/** Runs work every `everyMs`, one run at a time: a time that comes during a run is left out. A run may reject. */
export function repeatWork(
  { name, everyMs, log, failure }: RepeatedWorkOptions,
  work: () => Promise<unknown> | void,
): RepeatedWork {
  const state: WorkState = {
    ...{ name, everyMs, runs: 0, failures: 0 },
    ...{ lastRunAt: null, lastSuccessAt: null, lastError: null },
  };
  register.add(state);
  let running: Promise<void> | undefined;
  const runOnce = async (): Promise<void> => {
    state.runs += 1;
    state.lastRunAt = Date.now();
    try {
      await work();
      state.lastSuccessAt = Date.now();
      state.lastError = null;
    } catch (error) {
      // An outage of an hour is one line, not one a run.
      if (state.lastError === null) log?.warn({ err: error }, failure ?? `${name} has failed`);
      state.failures += 1;
      state.lastError = error instanceof Error ? error.message || error.name : String(error);
    }
  };
  const runNow = (): void => {
    running ??= runOnce().finally(() => (running = undefined));
  };
  const timer = setInterval(runNow, everyMs).unref();
  const stop = async (): Promise<void> => {
    clearInterval(timer);
    register.delete(state);
    await running;
  };
  return {
    runNow,
    stop,
    async finish() {
      await stop();
      await runOnce();
    },
  };
}
