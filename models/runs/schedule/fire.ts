// A due time is decided once: what becomes of it, its run and the next due time are written in one transaction, under
// the lock of the schedule. All times are the database's.
import type { Config } from '../../../core/config';
import { Problem } from '../../../core/errors';
import { limits } from '../../../core/limits';
import { dueTimes, nextDue, type DueTimes } from '../../../core/protocols/cron';
import type { Session } from '../../../db/control_database';
import { named } from '../../../db/statement';
import type { ScheduleConcurrency, ScheduleMissed } from '../../../schema/types';
import { recordEvent } from '../../projects/activity';
import { cancelRuns } from '../run/cancel';
import { caughtUpReason, missedReason, OVERLAPS, REPLACED, STOPPED, type Cause } from './reasons';
import { startRunOf, type DueSchedule } from './start_run';
import { lockUnfinished, type UnfinishedRun } from './unfinished';

interface Application {
  id: string;
  status: string;
}

interface ScheduleRow extends DueSchedule {
  name: string;
  cron: string;
  time_zone: string;
  concurrency: ScheduleConcurrency;
  missed: ScheduleMissed;
  enabled: boolean;
  next_run_at: string | null;
  now: string;
}

/** All that a decision rests on. */
interface Firing {
  sql: Session;
  config: Config;
  row: ScheduleRow;
  application: Application;
  unfinished: readonly UnfinishedRun[];
  due: DueTimes;
  /** The last due time passed too long ago. */
  late: boolean;
  /** Why due times have passed. */
  cause: Cause;
}

/** What becomes of a due time. `reason`: a sentence for users. */
interface Decision {
  outcome: 'started' | 'skipped' | 'missed' | 'failed';
  reason: string | null;
  run_id: string | null;
}

const APPLICATION = named(`select a.id, a.status from cron_schedules s join applications a on a.id = s.application_id
  where s.id = $1 and a.deleted_at is null for no key update of a`);
// Of any schedule: what others got then, this one did not get because of them.
const WORKED = named(`select 1 as one from schedule_firings
  where fired_at >= $1 and fired_at < $1::timestamptz + interval '1 minute' limit 1`);
const SCHEDULE = named(`select *, now() as now from cron_schedules where id = $1 and deleted_at is null for update`);

/**
 * Decides what becomes of the due time of a schedule, if it has come.
 * @returns milliseconds until the next one; null where there is none
 */
export function fireSchedule(
  { sql, config }: { sql: Session; config: Config },
  scheduleId: string,
): Promise<number | null> {
  return sql.transaction(async (session) => {
    // Application, runs, schedule, project: the order of requests and of runs that end.
    const [application] = await session.query<Application>(APPLICATION, [scheduleId]);
    const unfinished = await lockUnfinished(session, scheduleId);
    const [row] = await session.query<ScheduleRow>(SCHEDULE, [scheduleId]);
    if (!application || !row?.enabled || row.next_run_at === null) return null;
    const [now, first] = [new Date(row.now), new Date(row.next_run_at)];
    if (first > now) return first.getTime() - now.getTime();
    const due = dueTimes(row.cron, row.time_zone, first, now);
    const late = now.getTime() - due.last.getTime() > limits.scheduleLateSecondsMax * 1000;
    const wasWorking = (late || due.count > 1) && (await session.query(WORKED, [first])).length > 0;
    const cause = wasWorking ? 'busy' : 'down';
    const firing: Firing = { sql: session, config, row, application, unfinished, due, late, cause };
    return record(firing, await decide(firing), nextDue(row.cron, row.time_zone, now), now);
  });
}

async function decide(firing: Firing): Promise<Decision> {
  const { sql, config, row, application, unfinished, due, late, cause } = firing;
  if (late && row.missed === 'skip') return without('missed', missedReason(due, cause));
  if (STOPPED_STATUSES.has(application.status)) return without('failed', STOPPED);
  if (unfinished.length && row.concurrency === 'forbid') return without('skipped', OVERLAPS);
  const note = row.missed === 'run_once' && hasMissed(firing) ? caughtUpReason(due, late, cause) : null;
  try {
    const run_id = await startRunOf({ sql, config }, row, note);
    if (row.concurrency === 'replace') await cancelRuns(sql, unfinished, REPLACED);
    return { outcome: 'started', reason: note, run_id };
  } catch (error) {
    if (!(error instanceof Problem) || error.code === 'service_unavailable') throw error;
    return without('failed', error.detail);
  }
}

const STOPPED_STATUSES = new Set(['stopping', 'stopped']);

function without(outcome: Decision['outcome'], reason: string): Decision {
  return { outcome, reason, run_id: null };
}

/** Whether due times passed without a decision, the last one or earlier ones. */
function hasMissed({ due, late }: Firing): boolean {
  return late || due.count > 1;
}

const FIRED = named(`insert into schedule_firings (schedule_id, due_at, fired_at, outcome, reason, run_id, missed_count)
  values ($1, $2, now(), $3, $4, $5, $6)`);
const NEXT = named(`update cron_schedules set next_run_at = $2, status_reason = $3,
    failures_in_a_row = failures_in_a_row + $4, observed_generation = observed_generation + 1 where id = $1`);

async function record(firing: Firing, decision: Decision, next: Date | null, now: Date): Promise<number | null> {
  const { sql, row, due, cause } = firing;
  const { outcome, run_id } = decision;
  const missedBefore = { ...due, count: due.count - 1 };
  const reason = decision.reason ?? (hasMissed(firing) ? missedReason(missedBefore, cause) : null);
  await sql.query(FIRED, [row.id, due.last, outcome, reason, run_id, due.count - 1]);
  await sql.query(NEXT, [row.id, next, reason, outcome === 'failed' ? 1 : 0]);
  const missed = hasMissed(firing) || outcome === 'failed';
  if (missed) await recordEvent(sql, 'cron_schedules', row, 'missed');
  if (outcome === 'skipped') await recordEvent(sql, 'cron_schedules', row, 'skipped');
  return next && next.getTime() - now.getTime();
}
