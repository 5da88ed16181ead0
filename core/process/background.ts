// Work that is done again and again in the background, such as writing what was counted.
import type { Logger } from '../log/log';

interface RepeatedWorkOptions {
  everyMs: number;
  log: Logger;
  /** Logged with the error of the first run that fails after one that succeeded. */
  failure: string;
}

export interface RepeatedWork {
  /** Runs it now, unless it is being run. */
  runNow(): void;
  /** Waits for the run that is under way, and starts no other one. Never rejects. */
  stop(): Promise<void>;
  /** As `stop`, after one run more. */
  finish(): Promise<void>;
}

/** Runs work every `everyMs`, one run at a time: a time that comes during a run is left out. A run may reject. */
export function repeatWork({ everyMs, log, failure }: RepeatedWorkOptions, work: () => Promise<unknown>): RepeatedWork {
  let running: Promise<void> | undefined;
  let isFailing = false;
  const runOnce = async (): Promise<void> => {
    try {
      await work();
      isFailing = false;
    } catch (error) {
      // An outage of an hour is one line, not one a run.
      if (!isFailing) log.warn({ err: error }, failure);
      isFailing = true;
    }
  };
  const runNow = (): void => {
    running ??= runOnce().finally(() => (running = undefined));
  };
  const timer = setInterval(runNow, everyMs).unref();
  const stop = async (): Promise<void> => {
    clearInterval(timer);
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
