import { setTimeout as sleep } from 'node:timers/promises';
import { pauseMsAfter } from '../../../core/process/backoff';

/** Resolves after that time, or when the signal is aborted. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}

/** Times between attempts: twice the one before, up to `maxMs`, of which up to a half is left to chance. */
export function backoff(firstMs: number, maxMs: number): { next(): number; reset(): void } {
  let failures = 0;
  return {
    next: () => pauseMsAfter((failures += 1), { firstMs, maxMs }) * (0.5 + Math.random() / 2),
    reset: () => void (failures = 0),
  };
}
