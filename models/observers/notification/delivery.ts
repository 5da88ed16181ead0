// Delivery of messages from the outbox: leased, sent, and completed or retried. A receiver gets the messages about one
// subject one after the other.
import type { AlarmMessage, Delivery, IncidentMessage, NotificationEvent } from '../../../core/notifications';
import { RETRY_SECONDS } from '../../../core/notifications';
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';
import type { NotifierType } from '../../../schema/types';

export interface ClaimedMessage {
  seq: number;
  fence: number;
  attempts: number;
  message_id: string;
  event: NotificationEvent;
  data: IncidentMessage & AlarmMessage & { id: string; action: string; resource: { id: string } };
  created_at: string;
  project_id: string;
  project_name: string;
  account: string;
  notifier_id: string;
  /** null: the notifier is gone. */
  notifier: { name: string; type: NotifierType; enabled: boolean; sealed_config: string } | null;
}

// What waits for a message before it, to a receiver that is away, waits for no worker.
const LAG = named(`select coalesce(extract(epoch from now() - min(n.next_at)), 0)::float8 as lag from notifications n
  where n.status = 'pending' and n.next_at <= now() and not exists (select from notifications p
    where p.notifier_id = n.notifier_id and p.subject = n.subject and p.status = 'pending' and p.seq < n.seq)`);

/** For how many seconds the oldest message has been due that no worker has claimed. */
export async function notificationLagSeconds(sql: Pick<Sql, 'query'>): Promise<number> {
  return Math.max(0, (await sql.query<{ lag: number }>(LAG, []))[0]?.lag ?? 0);
}

/** Longer than an attempt may take. Should its worker die, the message is sent again then. */
const CLAIMED_SECONDS = 60;

const CLAIM = named(`with due as (select n.seq from notifications n where n.status = 'pending' and n.next_at <= now()
    and not exists (select from notifications p where p.notifier_id = n.notifier_id and p.subject = n.subject
      and p.status = 'pending' and p.seq < n.seq)
      and n.project_id not in (select p.id from projects p where p.account_id = any($2))
    order by n.next_at limit $1 for update skip locked),
  taken as (update notifications n set next_at = now() + interval '${CLAIMED_SECONDS} s', fence = n.fence + 1,
    attempts = n.attempts + 1
    from due where n.seq = due.seq returning n.*)
  select t.seq, t.fence, t.attempts, t.message_id, t.event, t.data, t.created_at, t.project_id,
    p.name as project_name, p.account_id as account, t.notifier_id,
    case when r.id is null then null else jsonb_build_object('name', r.name, 'type', r.type, 'enabled', r.enabled,
      'sealed_config', r.sealed_config) end as notifier
  from taken t join projects p on p.id = t.project_id left join notifiers r on r.id = t.notifier_id
    and r.deleted_at is null order by t.seq`);

/** @param passOver accounts that have had their turn */
export function claimMessages(sql: Sql, limit: number, passOver: readonly string[] = []): Promise<ClaimedMessage[]> {
  return sql.query<ClaimedMessage>(CLAIM, [limit, passOver]);
}

const END = named(`with ended as (update notifications set status = $3, next_at = now() + $4::float8 * interval '1 ms',
    sent_at = now(),
    status_code = $5, error = $6, duration_ms = $7 where seq = $1 and fence = $2 and status = 'pending'
      returning notifier_id, incident_id)
  update notifiers n set last_delivery = jsonb_build_object('at', to_char(now() at time zone 'utc',
    'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'status', $8::text, 'error', $6::text),
    observed_generation = n.observed_generation + 1 from ended where n.id = ended.notifier_id`);

/** Writes how an attempt went; void where another worker has taken the message over. */
export async function endAttempt(
  sql: Sql,
  { seq, fence, attempts, event }: ClaimedMessage,
  delivery: Delivery,
  durationMs: number,
): Promise<void> {
  const pauseMs = event === 'notifier.test' ? null : pauseAfter(attempts, delivery);
  const status = delivery.delivered ? 'delivered' : pauseMs === null ? 'failed' : 'pending';
  const { status_code, error } = delivery;
  const shown = delivery.delivered ? 'delivered' : 'failed';
  await sql.query(END, [seq, fence, status, pauseMs ?? 0, status_code, error, Math.round(durationMs), shown]);
}

/**
 * Milliseconds until the next attempt; null: there is none. Up to a tenth more, so that a storm does not come back as
 * one.
 */
function pauseAfter(attempts: number, { delivered, retry }: Delivery): number | null {
  const seconds = RETRY_SECONDS[attempts - 1];
  if (delivered || retry === 'never' || seconds === undefined) return null;
  return Math.max(retry ?? 0, seconds * 1000 * (1 + Math.random() / 10));
}

// Deliveries of an incident are deleted with it; the observer may have been deleted before.
const SWEEP = named(`delete from notifications where seq in (select n.seq from notifications n
  where n.status <> 'pending' and n.created_at < now() - make_interval(days => $1)
    and not exists (select from incidents i where i.id = n.incident_id) order by n.created_at limit $2)`);
const SWEEP_INCIDENTS = named(
  `with old as (select id from incidents where status = 'resolved' and started_at < now() - interval '1 year'
    order by started_at limit $1),
  notified as (delete from notifications where incident_id in (select id from old))
  delete from incidents where id in (select id from old) returning 1`,
);
const DELIVERIES_DAYS = 30;

/** Deletes incidents beyond retention. @returns the number of deleted incidents */
export async function sweepIncidents(sql: Sql, batch: number): Promise<number> {
  await sql.query(SWEEP, [DELIVERIES_DAYS, batch]);
  return (await sql.query(SWEEP_INCIDENTS, [batch])).length;
}
