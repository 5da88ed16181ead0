// Counters of ingresses that run apart from the process with the jobs: reported by them, and taken once by it.
import type { Sql } from '../../core/context';
import { named } from '../../db/statement';

/** What nobody has taken by then is older than any decision on it. */
const REPORT = named(`with old as (delete from reported_traffic where at < now() - interval '1 hour')
  insert into reported_traffic (traffic) values ($1)`);
const TAKE = named(`delete from reported_traffic where id in
  (select id from reported_traffic order by id limit $1 for update skip locked) returning traffic`);
const TAKEN_AT_ONCE = 500;

/** @param traffic entries of `Traffic` of the ingress, as JSON */
export async function reportTraffic(sql: Sql, traffic: readonly object[]): Promise<void> {
  if (traffic.length) await sql.query(REPORT, [JSON.stringify(traffic)]);
}

/** Each entry is given out once. */
export async function takeReportedTraffic<Traffic>(sql: Sql): Promise<Traffic[]> {
  const rows = await sql.query<{ traffic: Traffic[] }>(TAKE, [TAKEN_AT_ONCE]);
  return rows.flatMap(({ traffic }) => traffic);
}
