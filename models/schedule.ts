// Rows of periodic work, and the SQL of what it clears away.
import { limits } from '../core/limits';
import type { Session } from '../db/control_database';
import { named } from '../db/statement';

/** Rows that one statement deletes: short enough that nobody waits for its locks. */
const BATCH = 1_000;

/** Makes the missing rows of the tasks. Others stay: during an upgrade they may be those of the newer program. */
export async function ensureSchedules(sql: Session, tasks: readonly string[]): Promise<void> {
  await sql.query(named('insert into schedules (id) select unnest($1::text[]) on conflict (id) do nothing'), [tasks]);
}

/** Deletes activity after its 90 days. Returns how many rows went; a full batch means that there may be more. */
export function sweepActivity(sql: Session): Promise<Swept> {
  return sweep(sql, 'activity', 'created_at', `now() - interval '${limits.activityRetentionDays} days'`);
}

/** Deletes answers to Idempotency-Keys after their 24 hours. */
export function sweepIdempotencyRecords(sql: Session): Promise<Swept> {
  return sweep(sql, 'idempotency_records', 'created_at', `now() - interval '${limits.idempotencyTtlHours} hours'`);
}

/** Forgets ids of AI usage events that would be refused for their age by now. */
export function sweepAiUsageEvents(sql: Session): Promise<Swept> {
  return sweep(sql, 'ai_usage_events', 'received_at', `now() - interval '${limits.aiUsageEventDays + 2} days'`);
}

/** Deletes sessions that have expired. */
export function sweepSessions(sql: Session): Promise<Swept> {
  return sweep(sql, 'sessions', 'expires_at', 'now()');
}

/** Deletes tokens of the authorisation server a day after their end: until then they are told from what never was. */
export function sweepOauthRecords(sql: Session): Promise<Swept> {
  return sweep(sql, 'oauth_records', 'expires_at', `now() - interval '1 day'`);
}

/** Deletes logins at other providers that nobody finished. */
export function sweepLoginAttempts(sql: Session): Promise<Swept> {
  return sweep(sql, 'login_attempts', 'expires_at', 'now()');
}

/** Deletes invitations that nobody accepted in time. */
export function sweepInvitations(sql: Session): Promise<Swept> {
  return sweep(sql, 'invitations', 'expires_at', 'now()');
}

/** Deletes rate windows (`window_start` is in ms since the epoch) that ended long ago. */
export function sweepRateWindows(sql: Session): Promise<Swept> {
  return sweep(
    sql,
    'rate_windows',
    'window_start',
    `(extract(epoch from now()) - ${10 * limits.rateWindowSeconds}) * 1000`,
  );
}

/** Those of the volume ids that have no row, not even one in tear-down. */
export async function withoutVolumeRow(sql: Session, ids: readonly string[]): Promise<string[]> {
  const text = `select id from unnest($1::text[]) as owned (id) where not exists (select 1 from volumes
    where volumes.id = owned.id)`;
  return (await sql.query<{ id: string }>(named(text), [ids])).map(({ id }) => id);
}

export interface Swept {
  rows: number;
  /** There may be more to delete. */
  full: boolean;
}

async function sweep(sql: Session, table: string, column: string, before: string): Promise<Swept> {
  const text = `with old as (select ctid from ${table} where ${column} < ${before}
    order by ${column} limit ${BATCH} for update skip locked),
    deleted as (delete from ${table} where ctid in (select ctid from old) returning 1) select count(*) as rows
      from deleted`;
  const [found] = await sql.query<{ rows: number }>(named(text), []);
  const rows = found?.rows ?? 0;
  return { rows, full: rows === BATCH };
}
