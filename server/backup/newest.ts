// Which backup is the newest one, where the clock of the machine that made them was wrong for a time.
import type { Point } from './repository';

/** Two machines need not agree on the second. */
const CLOCKS_DIFFER_MS = 60_000;

/**
 * The newest one. Those of later than now were made by a clock that was ahead, and lie before others that seem older.
 * @param points oldest first
 */
export function newestOf(points: readonly Point[], now: number): Point | undefined {
  return points.findLast(({ at }) => Date.parse(at) <= now + CLOCKS_DIFFER_MS) ?? points.at(-1);
}
