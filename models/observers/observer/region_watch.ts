// Detection of silent and late regions. A region whose probes are silent has no verdict, which is not an outage of its
// targets; a region whose checks wait is late. The operator and the projects with checks in the region are notified of
// both.
import type { Sql } from '../../../core/context';
import type { Logger } from '../../../core/log/log';
import { named } from '../../../db/statement';
import { recordInProjects } from './claim';

/** Checks that wait so long are late; they are on time again when none waits half as long. */
const LATE_SECONDS = 30;

const LOST = named(`insert into monitored_regions as r (region, lost_at, reason)
  select p.region, now(), $2 from (select distinct region from probes) as p
    where not exists (select from probes q where q.region = p.region and q.revoked_at is null
      and greatest(q.seen_at, q.created_at) > now() - make_interval(secs => $1))
    and exists (select from observer_checks c where c.region = p.region)
  on conflict (region) do update set lost_at = now(), late_at = null where r.lost_at is null
  returning region`);
const RETURNED = named(
  'update monitored_regions set lost_at = null where region = $1 and lost_at is not null returning region',
);
// Results before the silence do not form a streak with results after it.
const AFRESH = named('update observer_checks set failures = 0, passes = 0, result_at = now() where region = $1');
const LAGS = named(`select c.region, max(extract(epoch from now() - c.check_at))::float8 as seconds
  from observer_checks c where c.check_at <= now() - interval '${LATE_SECONDS / 2} s'
    and c.region not in (select region from monitored_regions where lost_at is not null) group by c.region`);
const LATE = named(`insert into monitored_regions as r (region, late_at) select unnest($1::text[]), now()
  on conflict (region) do update set late_at = now() where r.late_at is null returning region`);
const ON_TIME = named(`update monitored_regions set late_at = null
  where late_at is not null and region <> all($1) returning region`);

const SILENT = 'No probe in this region sends results.';

/** Looks at all regions. In a transaction. @returns how many have changed */
export async function watchRegions(
  sql: Sql,
  { lostSeconds, log }: { lostSeconds: number; log: Logger },
): Promise<number> {
  const lost = await sql.query<{ region: string }>(LOST, [lostSeconds, SILENT]);
  const lags = await sql.query<{ region: string; seconds: number }>(LAGS, []);
  const waiting = lags.map(({ region }) => region);
  const late = lags.filter(({ seconds }) => seconds > LATE_SECONDS).map(({ region }) => region);
  const becameLate = late.length ? await sql.query<{ region: string }>(LATE, [late]) : [];
  const onTime = await sql.query<{ region: string }>(ON_TIME, [waiting]);
  const events = [
    ...lost.map(({ region }) => [region, 'region.probe_lost'] as const),
    ...becameLate.map(({ region }) => [region, 'region.checks_late'] as const),
    ...onTime.map(({ region }) => [region, 'region.checks_on_time'] as const),
  ];
  for (const [region, action] of events) {
    log.warn({ region }, action);
    await recordInProjects(sql, region, action);
  }
  return events.length;
}

/** A probe of the region is there again: it is waited for like one that has just begun. In a transaction. */
export async function noteReturn(sql: Sql, region: string): Promise<void> {
  if (!(await sql.query(RETURNED, [region])).length) return;
  await sql.query(AFRESH, [region]);
  await recordInProjects(sql, region, 'region.probe_returned');
}
