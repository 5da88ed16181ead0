// The back-off before an instance that has exited is restarted.
import { pauseMsAfter } from '../core/process/backoff';

const WINDOW_MS = 600_000;
const CRASHED_AFTER = 5;
const BACKOFF = { firstMs: 1_000, maxMs: 60_000 };

/** The exits of the last ten minutes, this one included. */
export function appendExit(exits: readonly string[], at: Date): string[] {
  return [...exits.filter((exit) => Date.parse(exit) > at.getTime() - WINDOW_MS), at.toISOString()];
}

/** After five exits within ten minutes, restarts are tried once a minute. */
export function isCrashed(exits: readonly string[]): boolean {
  return exits.length >= CRASHED_AFTER;
}

/**
 * Milliseconds until the next start: a second after the first exit, doubled with each further one, a minute at most.
 */
export function restartDelayMs(
  { exits, status }: { exits: readonly string[]; status: string },
  now = Date.now(),
): number {
  const last = exits[exits.length - 1];
  if (last === undefined) return 0;
  const pause = status === 'crashed' ? BACKOFF.maxMs : pauseMsAfter(exits.length, BACKOFF);
  return Math.max(0, Date.parse(last) + pause - now);
}
