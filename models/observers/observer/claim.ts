// Which checks are due in a region: claimed many at a time, since ten thousand observers are hundreds of checks a
// second.
import type { MetricRule } from '../../../core/protocols/checks';
import type { Sql, Statement } from '../../../core/context';
import { mintId } from '../../../core/ids';
import { claimInTurns, type Turns } from '../../../core/accounts/turns';
import { named } from '../../../db/statement';
import { PLATFORM } from '../../projects/activity';
import type { StoredUptime } from './fields';

export interface ClaimedCheck {
  id: string;
  account: string;
  uptime: StoredUptime | null;
  sealed_headers: string | null;
  metric: MetricRule | null;
  interval_seconds: number;
  region: string;
  fence: number;
  /** Since when it has been due. */
  lag_ms: number;
}

/** Beyond the time of the check itself. Should its worker die, the check is taken up again then. */
const GRACE_SECONDS = 15;
const claim = (probe: string, filter: string): Statement =>
  named(`with due as (select c.observer_id, c.check_at from observer_checks c
    where c.region = $1 and c.check_at <= now()${filter}
      and c.observer_id not in (select w.id from observers w join projects p on p.id = w.project_id
        where p.account_id = any($3))
    order by c.check_at limit $2 for update skip locked),
  taken as (update observer_checks c set fence = c.fence + 1, probe_id = ${probe}, claimed_at = now(),
      check_at = now() + make_interval(secs => coalesce((o.uptime ->> 'timeout_seconds')::int,
        10) + ${GRACE_SECONDS})
    from due, observers o where c.observer_id = due.observer_id and c.region = $1 and o.id = c.observer_id
    returning c.observer_id, c.fence, due.check_at)
  select o.id, p.account_id as account, o.uptime, o.sealed_headers, o.metric, o.interval_seconds, $1 as region,
    taken.fence,
    (extract(epoch from now() - taken.check_at) * 1000)::float8 as lag_ms
  from taken join observers o on o.id = taken.observer_id join projects p on p.id = o.project_id`);
const CLAIM = claim('null', '');
const CLAIM_FOR_PROBE = claim(
  '$4',
  ` and exists (select from observers w where w.id = c.observer_id and w.uptime ->> 'check' = any($5))`,
);

/** @param passOver accounts that have had their turn */
export function claimChecks(
  sql: Sql,
  region: string,
  limit: number,
  passOver: readonly string[] = [],
): Promise<ClaimedCheck[]> {
  return sql.query<ClaimedCheck>(CLAIM, [region, limit, passOver]);
}

/** Leases checks to a probe, of the kinds that it supports: only this probe may report their results. */
export function claimChecksForProbe(
  sql: Sql,
  probe: { id: string; region: string },
  { limit, kinds }: { limit: number; kinds: readonly string[] },
  turns: Turns,
): Promise<ClaimedCheck[]> {
  return claimInTurns(turns, probe.region, { limit, busy: [] }, (count, passOver) =>
    sql.query<ClaimedCheck>(CLAIM_FOR_PROBE, [probe.region, count, passOver, probe.id, kinds]),
  );
}

const POSTPONE = named(`update observer_checks c set check_at = now() + $4::float8 * interval '1 ms',
    counted_fence = c.fence
  from unnest($1::text[], $2::bigint[]) as p (id, fence) where c.observer_id = p.id and c.region = $3
    and c.fence = p.fence and c.counted_fence < c.fence`);

/** Checks whose results say nothing of their targets: they are made again after a time. */
export async function postponeChecks(
  sql: Sql,
  region: string,
  checks: readonly { observer_id: string; fence: number }[],
  afterMs: number,
): Promise<void> {
  const ids = checks.map(({ observer_id }) => observer_id);
  const fences = checks.map(({ fence }) => fence);
  await sql.query(POSTPONE, [ids, fences, region, afterMs]);
}

const SUSPEND = named(`insert into monitored_regions as r (region, suspended_at, reason) values ($1, now(), $2)
  on conflict (region) do update set suspended_at = now(), reason = $2 where r.suspended_at is null returning region`);
const RESUME = named(
  `update monitored_regions set suspended_at = null, reason = null where region = $1 and suspended_at is not null
    returning region`,
);
const PROJECTS = named(
  `select distinct p.id, p.account_id from observer_checks c join observers o on o.id = c.observer_id
    join projects p on p.id = o.project_id where c.region = $1 and o.type = 'uptime'`,
);
const EVENTS =
  named(`insert into activity (id, project_id, account_id, action, actor, resource_type, resource_id, created_at)
  select e.id, e.project_id, e.account_id, $4, $5, 'region', $6, now()
    from unnest($1::text[], $2::text[], $3::text[]) as e (id, project_id, account_id)`);

/** Says that the failures of a region are not counted from now on, to every project that is checked from it. */
export async function suspendRegion(sql: Sql, region: string, reason: string): Promise<void> {
  if ((await sql.query(SUSPEND, [region, reason])).length)
    await recordInProjects(sql, region, 'region.checks_suspended');
}

/** Says that they are counted again. */
export async function resumeRegion(sql: Sql, region: string): Promise<void> {
  if ((await sql.query(RESUME, [region])).length) await recordInProjects(sql, region, 'region.checks_resumed');
}

/** An event of a region in every project that is checked from it. */
export async function recordInProjects(sql: Sql, region: string, action: string): Promise<void> {
  const projects = await sql.query<{ id: string; account_id: string }>(PROJECTS, [region]);
  await sql.query(EVENTS, [
    projects.map(() => mintId('act')),
    projects.map(({ id }) => id),
    projects.map(({ account_id }) => account_id),
    action,
    JSON.stringify(PLATFORM),
    region,
  ]);
}

// Lag does not include a region without a probe: its checks wait for the probe, not for a worker.
const FIGURES = named(`select coalesce((select extract(epoch from now() - min(check_at)) from observer_checks
    where check_at <= now() and region not in (select region from monitored_regions where lost_at is not null)),
    0)::float8 as lag_seconds,
  (select count(*) from monitored_regions where suspended_at is not null) as suspended,
  (select count(*) from monitored_regions where lost_at is not null) as lost,
  (select count(*) from notifications where status = 'pending') as pending`);

export interface CheckFigures {
  /** How long the check that waits longest has been due. */
  lag_seconds: number;
  /** Regions whose failures are not counted at the moment. */
  suspended: number;
  /** Regions whose probes are silent. */
  lost: number;
  /** Messages on their way. */
  pending: number;
}

export async function checkFigures(sql: Sql): Promise<CheckFigures> {
  const [row] = await sql.query<CheckFigures>(FIGURES, []);
  return row ?? { lag_seconds: 0, suspended: 0, lost: 0, pending: 0 };
}
