import type { Sql } from '../../../core/context';
import { limits } from '../../../core/limits';
import { named } from '../../../db/statement';

const BATCH = 10_000;
const SWEEP = named(`delete from schedule_firings where (schedule_id, due_at) in (
    select schedule_id, due_at from schedule_firings
      where fired_at < now() - interval '${limits.scheduleFiringsKeptDays} days' order by fired_at limit ${BATCH})
  returning 1 as one`);

/** Forgets what became of due times that were decided long ago. */
export async function sweepScheduleFirings(sql: Sql): Promise<{ rows: number; full: boolean }> {
  const rows = await sql.query(SWEEP, []);
  return { rows: rows.length, full: rows.length === BATCH };
}
