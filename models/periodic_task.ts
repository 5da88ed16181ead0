// Rows of periodic tasks, and the SQL of their sweeps.
import { limits } from '../core/limits';
import type { Session } from '../db/control_database';
import { named } from '../db/statement';

/** Rows that one statement deletes: few, so that its locks are held only briefly. */
const BATCH = 1_000;

/** Inserts missing rows of the tasks. Unknown rows stay: during an upgrade they may belong to the newer version. */
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

/** Deletes OAuth tokens a day after their expiry: until then the server can distinguish expired from unknown tokens. */
export function sweepOauthRecords(sql: Session): Promise<Swept> {
  return sweep(sql, 'oauth_records', 'expires_at', `now() - interval '1 day'`);
}

/** Deletes abandoned logins at other providers. */
export function sweepLoginAttempts(sql: Session): Promise<Swept> {
  return sweep(sql, 'login_attempts', 'expires_at', 'now()');
}

/** Deletes orders of certificates that no limit of an authority counts any more. */
export function sweepCertificateOrders(sql: Session): Promise<Swept> {
  return sweep(sql, 'certificate_orders', 'created_at', `now() - interval '8 days'`);
}

/** Deletes expired invitations. */
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

/** Returns the volume ids that have no row, not even one in tear-down. */
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
