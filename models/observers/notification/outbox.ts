// The outbox: notifications are rows, written in the transaction of the event that they report.
import type { Sql } from '../../../core/context';
import { mintId } from '../../../core/ids';
import { limits } from '../../../core/limits';
import type {
  AlarmEvent,
  AlarmMessage,
  CertificateMessage,
  IncidentEvent,
  IncidentMessage,
  NotificationEvent,
} from '../../../core/notifications';
import { named } from '../../../db/statement';
import type { NotificationStatus } from '../../../schema/types';

/** The table whose name wakes those who send. */
export const NOTIFICATIONS = 'notifications';

const QUEUE = named(`insert into notifications (message_id, project_id, notifier_id, incident_id, event, subject,
  data)
  select $1, $2, n.id, $3, $4, $5, $6 from notifiers n where n.project_id = $2 and n.id = any($7) and n.enabled
    and n.deleted_at is null order by n.id`);

interface Receivers {
  project_id: string;
  notifier_ids: readonly string[];
}

/** One message to each of the notifiers that is switched on. */
export function queueIncidentMessage(
  sql: Sql,
  event: IncidentEvent,
  to: Receivers,
  message: IncidentMessage,
): Promise<void> {
  const { id } = message.incident;
  return queue(sql, to, { incident: id, event, subject: id, message });
}

/** One message to each of the notifiers that is switched on. */
export function queueCertificateMessage(sql: Sql, to: Receivers, message: CertificateMessage): Promise<void> {
  const subject = message.observer.id;
  return queue(sql, to, { incident: null, event: 'observer.certificate_expiring', subject, message });
}

const QUEUE_ALARM = named(`insert into notifications (message_id, project_id, notifier_id, event, subject, data)
  select $1, n.project_id, n.id, $2, $3, $4 from alarm_notifiers a join notifiers n on n.id = a.notifier_id
    join projects p on p.id = n.project_id and p.deleted_at is null
    where n.enabled and n.deleted_at is null order by n.id returning notifier_id`);

/** One message to each notifier of the installation that is switched on. @returns how many there are */
export async function queueAlarmMessage(sql: Sql, event: AlarmEvent, message: AlarmMessage): Promise<number> {
  const { id } = message.alarm;
  const queued = await sql.query(QUEUE_ALARM, [mintId('msg'), event, id, JSON.stringify(message)]);
  if (queued.length) sql.due(NOTIFICATIONS);
  return queued.length;
}

interface Queued {
  incident: string | null;
  event: NotificationEvent;
  /** Messages of one subject reach a receiver one after the other. */
  subject: string;
  message: object;
}

async function queue(
  sql: Sql,
  { project_id, notifier_ids }: Receivers,
  { incident, event, subject, message }: Queued,
): Promise<void> {
  if (!notifier_ids.length) return;
  const values = [mintId('msg'), project_id, incident, event, subject, JSON.stringify(message), notifier_ids];
  await sql.query(QUEUE, values);
  sql.due(NOTIFICATIONS);
}

const TEST = named(`insert into notifications (message_id, project_id, notifier_id, event, subject, data)
  values ($1, $2, $3, 'notifier.test', $1, '{}')
  on conflict on constraint notifications_once do update set status = 'pending', attempts = 0,
    fence = notifications.fence + 1, next_at = now(), created_at = now(), sent_at = null, error = null,
    status_code = null, duration_ms = null
    where notifications.created_at < now() - make_interval(hours => $4) returning seq`);
const TEST_OF = named('select seq from notifications where notifier_id = $1 and message_id = $2');
/** Of the digest: as long as the random part of other ids. */
const SCOPE_CHARACTERS = 26;
const END = named(`select status, status_code, error, duration_ms from notifications where seq = $1`);
const WITHDRAW = named(
  `update notifications set status = 'failed', error = $2, fence = fence + 1 where seq = $1 and status = 'pending'`,
);

interface TestEnd {
  status: NotificationStatus;
  status_code: number | null;
  error: string | null;
  duration_ms: number | null;
}

/**
 * A test notification of a notifier; it has one attempt. Requests with the same Idempotency-Key, also concurrent ones,
 * share it for as long as the key is valid.
 * @param scope of the key; undefined: a new notification for each request
 */
export async function queueTest(
  sql: Sql,
  notifier: { id: string; project_id: string },
  scope: string | undefined,
): Promise<number> {
  const id = scope === undefined ? mintId('msg') : `msg_${scope.slice(0, SCOPE_CHARACTERS)}`;
  const values = [id, notifier.project_id, notifier.id, limits.idempotencyTtlHours];
  const [row] = await sql.query<{ seq: number }>(TEST, values);
  sql.due(NOTIFICATIONS);
  return row?.seq ?? (await sql.query<{ seq: number }>(TEST_OF, [notifier.id, id]))[0]?.seq ?? 0;
}

export async function endOfTest(sql: Sql, seq: number): Promise<TestEnd | null> {
  const [row] = await sql.query<TestEnd>(END, [seq]);
  return row ?? null;
}

/** Withdraws a test whose requester no longer waits. */
export async function withdrawTest(sql: Sql, seq: number, reason: string): Promise<void> {
  await sql.query(WITHDRAW, [seq, reason]);
}
