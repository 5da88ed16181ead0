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

const HOUR_MS = 3_600_000;
const days = (count: number): string => `now() - interval '${count} days'`;
const RATE_WINDOWS_END = `(extract(epoch from now()) - ${10 * limits.rateWindowSeconds}) * 1000`;

/** Rows that go with their time: those of `table` whose `column` is before `end`, an expression of SQL. */
export interface Retention {
  table: string;
  column: string;
  end: string;
  everyMs: number;
}

export const RETENTIONS: readonly Retention[] = [
  { table: 'activity', column: 'created_at', end: days(limits.activityRetentionDays), everyMs: HOUR_MS },
  { table: 'activity_undos', column: 'created_at', end: days(limits.activityUndoDays), everyMs: HOUR_MS },
  // Older ids would be refused for their age.
  { table: 'ai_usage_events', column: 'received_at', end: days(limits.aiUsageEventDays + 2), everyMs: HOUR_MS },
  { table: 'approvals', column: 'created_at', end: days(limits.activityRetentionDays), everyMs: HOUR_MS },
  // After it no limit of an authority counts them.
  { table: 'certificate_orders', column: 'created_at', end: days(8), everyMs: HOUR_MS },
  {
    ...{ table: 'idempotency_records', column: 'created_at' },
    ...{ end: `now() - interval '${limits.idempotencyTtlHours} hours'`, everyMs: HOUR_MS / 6 },
  },
  { table: 'installation_alarms', column: 'ended_at', end: days(90), everyMs: HOUR_MS },
  { table: 'invitations', column: 'expires_at', end: 'now()', everyMs: HOUR_MS },
  // Abandoned logins at other providers.
  { table: 'login_attempts', column: 'expires_at', end: 'now()', everyMs: HOUR_MS },
  // Until then the server can distinguish expired from unknown tokens.
  { table: 'oauth_records', column: 'expires_at', end: days(1), everyMs: HOUR_MS },
  // `window_start` is in ms since the epoch.
  { table: 'rate_windows', column: 'window_start', end: RATE_WINDOWS_END, everyMs: HOUR_MS / 6 },
  { table: 'sessions', column: 'expires_at', end: 'now()', everyMs: HOUR_MS },
];

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

/** Deletes rows whose time is over, a batch at most. */
export async function sweep(sql: Session, { table, column, end }: Retention): Promise<Swept> {
  const text = `with old as (select ctid from ${table} where ${column} < ${end}
    order by ${column} limit ${BATCH} for update skip locked),
    deleted as (delete from ${table} where ctid in (select ctid from old) returning 1) select count(*) as rows
      from deleted`;
  const [found] = await sql.query<{ rows: number }>(named(text), []);
  const rows = found?.rows ?? 0;
  return { rows, full: rows === BATCH };
}
