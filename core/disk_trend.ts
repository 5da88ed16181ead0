// When a disk will be full, as far as what it has taken in the last days says.

export interface UsedAt {
  /** RFC 3339. */
  at: string;
  used: number;
}

const DAY_MS = 86_400_000;
/** A shorter time says how a morning was. */
const SPAN_MIN_MS = 6 * 3_600_000;
/** Beyond it the last days say nothing. */
const DAYS_MAX = 365;

/**
 * Days until `size` is reached, on the line that fits the samples best (least squares).
 * @returns null: it does not grow, not within a year, or there are too few samples
 */
export function daysUntilFull(samples: readonly UsedAt[], size: number): number | null {
  const points = samples.map(({ at, used }) => ({ day: Date.parse(at) / DAY_MS, used }));
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last || (last.day - first.day) * DAY_MS < SPAN_MIN_MS) return null;
  const meanDay = mean(points.map(({ day }) => day));
  const meanUsed = mean(points.map(({ used }) => used));
  const spread = points.reduce((sum, { day }) => sum + (day - meanDay) ** 2, 0);
  const perDay = points.reduce((sum, { day, used }) => sum + (day - meanDay) * (used - meanUsed), 0) / spread;
  if (!(perDay > 0)) return null;
  // From what is used now: the line may be off from it after something large was removed.
  const days = Math.max(0, size - last.used) / perDay;
  return days > DAYS_MAX ? null : days;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
