import { setTimeout as sleep } from 'node:timers/promises';

/** Resolves after that time, or when the signal is aborted. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}

/** Times between attempts: twice the one before, up to `maxMs`, of which up to a half is left to chance. */
export function backoff(firstMs: number, maxMs: number): { next(): number; reset(): void } {
  let ms = firstMs;
  return {
    next() {
      const now = ms;
      ms = Math.min(ms * 2, maxMs);
      return now * (0.5 + Math.random() / 2);
    },
    reset: () => void (ms = firstMs),
  };
}
