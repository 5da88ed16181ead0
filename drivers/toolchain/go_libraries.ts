// Who waits for which library of Go. One is compiled for all who ask for it, so the end of one deployment must not end
// it for the others.

const FAILED_MS = 10 * 60_000;

export interface GoLibraries {
  /** Whether it did not compile lately: it is not tried again before ten minutes have passed. */
  hasFailed(version: string): boolean;
  /**
   * Runs `work`, or waits for one that runs; its failure is kept in mind and not thrown.
   * @param signal ends the wait. `work` ends with the last that waits, so that nothing is left of a platform that stops
   */
  compile(version: string, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>;
}

interface Compilation {
  done: Promise<void>;
  waiting: number;
  stop: AbortController;
}

export function openGoLibraries(): GoLibraries {
  const running = new Map<string, Compilation>();
  const failedAt = new Map<string, number>();
  const forget = (version: string, one: Compilation): void => {
    if (running.get(version) === one) running.delete(version);
  };
  const start = (version: string, work: (signal: AbortSignal) => Promise<void>): Compilation => {
    const stop = new AbortController();
    const done = work(stop.signal)
      .catch(() => void (stop.signal.aborted || failedAt.set(version, Date.now())))
      .finally(() => forget(version, one));
    const one: Compilation = { done, waiting: 0, stop };
    running.set(version, one);
    return one;
  };
  return {
    hasFailed: (version) => Date.now() - (failedAt.get(version) ?? -Infinity) < FAILED_MS,
    async compile(version, work, signal) {
      signal.throwIfAborted();
      const one = running.get(version) ?? start(version, work);
      one.waiting += 1;
      try {
        await untilAborted(one.done, signal);
      } finally {
        one.waiting -= 1;
        if (one.waiting === 0) {
          // Whoever asks next must not wait for one that is being ended.
          forget(version, one);
          one.stop.abort();
        }
      }
    },
  };
}

async function untilAborted(done: Promise<void>, signal: AbortSignal): Promise<void> {
  let onAbort = (): void => {};
  const aborted = new Promise<void>((resolve) => {
    onAbort = resolve;
    signal.addEventListener('abort', onAbort, { once: true });
  });
  await Promise.race([done, aborted]);
  signal.removeEventListener('abort', onAbort);
  signal.throwIfAborted();
}
