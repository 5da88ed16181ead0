// Processing of check results: rows, streaks, roll-ups, states, incidents and messages, in one transaction for a whole
// batch. A result is discarded where another worker has claimed the check meanwhile, or the observer has changed.
import type { CheckOutcome } from '../../../core/protocols/checks';
import type { Sql } from '../../../core/context';
import { mintId } from '../../../core/ids';
import { named } from '../../../db/statement';
import type { CheckResult, ObserverStatus } from '../../../schema/types';
import { recordEvent } from '../../projects/activity';
import { ensureDays } from '../observation_day';
import { warnOfCertificate, type Watching } from './certificate_warning';
import { openIncident, resolveIncident } from './incident_moves';
import { statusAfter, statusInSilence, streakAfter, type Streak, type Watched } from './machine';
import { nextObserverCheckMs } from './check_rows';

export interface Finding {
  observer_id: string;
  region: string;
  /** Of the claim; null for a requested check. */
  fence: number | null;
  /** When it began. */
  checked_at: Date;
  /** null: the metric had no value. */
  outcome: CheckOutcome | null;
}

interface Row extends Watched, Watching {
  data_at: string;
  last_result: CheckResult | null;
}

interface CheckRow extends Streak {
  observer_id: string;
  fence: number;
  /** The claim whose result was counted last. */
  counted_fence: number;
}

const OBSERVERS = named(`select id, project_id, name, type, status, uptime, metric, interval_seconds, failure_threshold,
    recovery_threshold,
  notifier_ids, reminder_minutes, open_incident_id, last_result, data_at, warned_certificate, certificate_warned_at
  from observers where id = any($1) and enabled and deleted_at is null order by id for no key update`);
const CHECKS = named(
  `select c.observer_id, c.region, c.fence, c.counted_fence, c.failures, c.passes, c.result_at,
    r.lost_at is not null as is_lost
  from observer_checks c left join monitored_regions r on r.region = c.region where c.observer_id = any($1)
    order by c.observer_id, c.region for update of c`,
);

interface Batch {
  observers: Map<string, Row>;
  checks: Map<string, CheckRow[]>;
  results: (CheckResult & { project_id: string })[];
  /** Rows of observer_checks to write. */
  written: (CheckRow & { check_at: string | null })[];
  changed: Set<string>;
}

/** Answers the results that count, in the order of the findings. In a transaction. */
export async function applyFindings(sql: Sql, findings: readonly Finding[]): Promise<CheckResult[]> {
  const ids = [...new Set(findings.map(({ observer_id }) => observer_id))];
  const observers = new Map((await sql.query<Row>(OBSERVERS, [ids])).map((row) => [row.id, row]));
  const batch: Batch = { observers, checks: new Map(), results: [], written: [], changed: new Set() };
  for (const row of await sql.query<CheckRow>(CHECKS, [[...observers.keys()]]))
    batch.checks.set(row.observer_id, [...(batch.checks.get(row.observer_id) ?? []), row]);
  for (const finding of findings) await applyOne(sql, batch, finding);
  await write(sql, batch);
  return batch.results.map(({ project_id: _, ...result }) => result);
}

async function applyOne(sql: Sql, batch: Batch, finding: Finding): Promise<void> {
  const observer = batch.observers.get(finding.observer_id);
  const checks = batch.checks.get(finding.observer_id) ?? [];
  const check = checks.find(({ region }) => region === finding.region);
  if (!observer || !isOwed(check, finding)) return;
  const { outcome, checked_at, fence } = finding;
  if (check && outcome) Object.assign(check, streakAfter(check, outcome.status, checked_at));
  if (check && fence !== null) check.counted_fence = fence;
  if (check) batch.written.push({ ...check, check_at: finding.fence === null ? null : nextOf(observer, finding) });
  const status = outcome
    ? statusAfter(observer, checks, Date.now())
    : statusInSilence(observer.status, observer.data_at, observer.metric?.window_seconds ?? 0, Date.now());
  await move(sql, observer, status, finding);
  batch.changed.add(observer.id);
  if (!outcome) return;
  await warnOfCertificate(sql, observer, outcome, checked_at);
  const result = resultOf(observer, finding, outcome);
  observer.last_result = result;
  if (observer.metric) observer.data_at = checked_at.toISOString();
  batch.results.push({ ...result, project_id: observer.project_id });
}

/** Whether the result of a claim is still to come. One that is sent again, since its answer was lost, counts once. */
function isOwed(check: CheckRow | undefined, { fence }: Finding): boolean {
  return fence === null || (check?.fence === fence && check.counted_fence < fence);
}

function nextOf({ id, interval_seconds }: Row, { region, checked_at }: Finding): string {
  const next = nextObserverCheckMs(id, region, interval_seconds * 1000, checked_at.getTime());
  return new Date(Math.max(next, Date.now())).toISOString();
}

async function move(sql: Sql, observer: Row, status: ObserverStatus, { outcome, checked_at }: Finding): Promise<void> {
  if (status === observer.status) return;
  if (status === 'alerting' && !observer.open_incident_id)
    observer.open_incident_id = await openIncident(sql, observer, outcome?.error ?? 'The check failed.');
  if (status === 'ok' && observer.open_incident_id) {
    await resolveIncident(sql, observer, checked_at, null);
    observer.open_incident_id = null;
  }
  observer.status = status;
  await recordEvent(sql, 'observers', observer, status);
}

function resultOf(observer: Row, { region, checked_at }: Finding, outcome: CheckOutcome): CheckResult {
  const { unreachable: _, certificate_authority: __, ...found } = outcome;
  return {
    id: mintId('chk'),
    observer_id: observer.id,
    checked_at: checked_at.toISOString(),
    region,
    ...found,
    incident_id: observer.open_incident_id,
  };
}

const WRITE_CHECKS =
  named(`update observer_checks c set failures = f.failures, passes = f.passes, result_at = f.result_at,
    check_at = coalesce(f.check_at, c.check_at), counted_fence = f.counted_fence
  from jsonb_to_recordset($1::jsonb) as f (observer_id text, region text, failures int, passes int,
    result_at timestamptz, check_at timestamptz, counted_fence bigint)
  where c.observer_id = f.observer_id and c.region = f.region`);
const WRITE_OBSERVERS = named(`update observers o set status = f.status, last_result = f.last_result,
    open_incident_id = f.open_incident_id, data_at = f.data_at, warned_certificate = f.warned_certificate,
    certificate_warned_at = f.certificate_warned_at,
  observed_generation = observed_generation + 1
  from jsonb_to_recordset($1::jsonb) as f (id text, status text, last_result jsonb, open_incident_id text,
    data_at timestamptz, warned_certificate timestamptz, certificate_warned_at timestamptz) where o.id = f.id`);
const WRITE_RESULTS =
  named(`insert into check_results (id, project_id, observer_id, checked_at, status, region, response_time_ms,
    status_code, value, error, incident_id, timings, certificate_expires_at)
  select id, project_id, observer_id, checked_at, status, region, response_time_ms, status_code, value, error,
    incident_id, timings, certificate_expires_at
  from jsonb_to_recordset($1::jsonb) as r (id text, project_id text, observer_id text, checked_at timestamptz,
    status text, region text, response_time_ms real,
    status_code int, value float8, error text, incident_id text, timings jsonb, certificate_expires_at timestamptz)`);
const WRITE_DAYS = named(`insert into observer_days as d (observer_id, day, checks, passes)
  select observer_id, (checked_at at time zone 'utc')::date, count(*), count(*) filter (where status = 'pass')
  from jsonb_to_recordset($1::jsonb) as r (observer_id text, checked_at timestamptz, status text) group by 1, 2
    order by 1, 2
  on conflict (observer_id, day) do update set checks = d.checks + excluded.checks,
    passes = d.passes + excluded.passes`);

async function write(sql: Sql, { observers, results, written, changed }: Batch): Promise<void> {
  if (written.length) await sql.query(WRITE_CHECKS, [JSON.stringify(lastOfEach(written))]);
  const rows = [...changed].map((id) => observers.get(id) as Row);
  if (rows.length) await sql.query(WRITE_OBSERVERS, [JSON.stringify(rows.map(writtenOf))]);
  if (!results.length) return;
  await ensureDays(
    sql,
    results.map(({ checked_at }) => new Date(checked_at)),
  );
  await sql.query(WRITE_RESULTS, [JSON.stringify(results)]);
  const uptime = results.filter(({ observer_id }) => observers.get(observer_id)?.type === 'uptime');
  if (uptime.length) await sql.query(WRITE_DAYS, [JSON.stringify(uptime)]);
}

function lastOfEach(written: Batch['written']): Batch['written'] {
  return [...new Map(written.map((row) => [`${row.observer_id} ${row.region}`, row])).values()];
}

function writtenOf(row: Row): object {
  const { id, status, last_result, open_incident_id, data_at, warned_certificate, certificate_warned_at } = row;
  return { id, status, last_result, open_incident_id, data_at, warned_certificate, certificate_warned_at };
}
