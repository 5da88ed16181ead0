// What processes and machines report of themselves: one row each, which the next report replaces.
import type { Sql } from '../../core/context';
import { named } from '../../db/statement';

export interface Report<Facts> {
  /** Host name. */
  machine: string;
  name: string;
  facts: Facts;
  reported_at: string;
  /** By the clock of the database. */
  age_seconds: number;
}

type Reader = Pick<Sql, 'query'>;

const SAVE = named(`insert into installation_reports (machine, name, facts) values ($1, $2, $3::jsonb)
  on conflict (machine, name) do update set facts = excluded.facts, reported_at = clock_timestamp()`);
const LOAD = named(`select machine, name, facts, reported_at,
    greatest(0, extract(epoch from clock_timestamp() - reported_at))::float8 as age_seconds
  from installation_reports where name = $1 or starts_with(name, $1 || ' ') order by machine, name`);
const REMOVE = named('delete from installation_reports where machine = $1 and name = $2');
const SWEEP = named(`delete from installation_reports
  where starts_with(name, $1 || ' ') and reported_at < now() - make_interval(secs => $2)`);

export async function saveReport(
  sql: Reader,
  { machine, name }: { machine: string; name: string },
  facts: object,
): Promise<void> {
  await sql.query(SAVE, [machine, name, JSON.stringify(facts)]);
}

/** Of a name, also with something behind it: `process` finds `process 17`. */
export function loadReports<Facts>(sql: Reader, name: string): Promise<Report<Facts>[]> {
  return sql.query<Report<Facts>>(LOAD, [name]);
}

export async function removeReport(sql: Reader, { machine, name }: { machine: string; name: string }): Promise<void> {
  await sql.query(REMOVE, [machine, name]);
}

/** Removes what was left by those who could not do it themselves. */
export async function sweepReports(sql: Reader, name: string, olderThanSeconds: number): Promise<void> {
  await sql.query(SWEEP, [name, olderThanSeconds]);
}
