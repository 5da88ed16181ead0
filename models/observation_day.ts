// Partitions of log_lines and metric_points: one for each day (UTC), made ahead and dropped as a whole.
import type { Sql } from '../core/context';
import { limits } from '../core/limits';
import { named } from './statement';

const MAKE = named('select make_observation_day(day) from unnest($1::date[]) as day');
const DAY_MS = 24 * 3600 * 1000;

/**
 * Makes the partitions of these times where they are missing, at once and in any transaction: an insert needs no
 * maintenance to have run. One look at the catalog for each day.
 */
export async function ensureDays(sql: Sql, times: readonly Date[]): Promise<void> {
  const days = new Set(times.map((time) => time.toISOString().slice(0, 10)));
  await sql.query(MAKE, [[...days]]);
}

/** The oldest time that is kept for anybody. */
export function oldestObservation(now = Date.now()): Date {
  return new Date(now - limits.observationDaysMax * DAY_MS);
}
