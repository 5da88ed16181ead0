// The one back-off: pauses that grow while something fails.

export interface Backoff {
  /** Pause after the first failure. */
  firstMs: number;
  maxMs: number;
}

/**
 * Milliseconds until the next attempt: `firstMs` after the first failure, doubled with each further one, `maxMs` at
 * most. Chance is for the caller to add, where many fail at once.
 * @param failures consecutive ones, the last included; 0 is as 1
 */
export function pauseMsAfter(failures: number, { firstMs, maxMs }: Backoff): number {
  return Math.min(maxMs, firstMs * 2 ** Math.max(0, failures - 1));
}
