// Partitions of log_lines and metric_points: one for each day (UTC), made ahead and dropped as a whole.
import type { Sql } from '../../core/context';
import { limits } from '../../core/limits';
import { named } from '../../db/statement';

const MAKE = named('select make_observation_day(day) from unnest($1::date[]) as day');
const DROP = named(
  `select count(*) filter (where dropped) as dropped, count(*) filter (where not dropped) as kept
    from drop_observation_days($1::date) as dropped`,
);
const DAYS_AHEAD = 3;
const DAY_MS = 24 * 3600 * 1000;

/**
 * Makes the partitions of these times where they are missing, at once and in any transaction: an insert needs no
 * maintenance to have run. One look at the catalog for each day.
 */
export async function ensureDays(sql: Sql, times: readonly Date[]): Promise<void> {
  const days = new Set(times.map((time) => time.toISOString().slice(0, 10)));
  await sql.query(MAKE, [[...days]]);
}

/**
 * Creates the partitions of today and of some days ahead, and drops those beyond retention. The lock wait of a drop is
 * short, since readers and writers would queue behind it; a busy partition is dropped on a later run.
 */
export async function rotateDays(sql: Sql, today = new Date()): Promise<{ dropped: number; kept: number }> {
  await ensureDays(
    sql,
    Array.from({ length: DAYS_AHEAD + 1 }, (_, index) => new Date(today.getTime() + index * DAY_MS)),
  );
  const [row] = await sql.query<{ dropped: number; kept: number }>(DROP, [
    oldestObservation(today.getTime()).toISOString().slice(0, 10),
  ]);
  return { dropped: row?.dropped ?? 0, kept: row?.kept ?? 0 };
}

/** The start of the longest retention of any project. */
export function oldestObservation(now = Date.now()): Date {
  return new Date(now - limits.observationDaysMax * DAY_MS);
}
