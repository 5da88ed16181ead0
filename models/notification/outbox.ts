// The outbox: messages are rows, written in the transaction of what they tell of.
import type { Sql } from '../../core/context';
import { mintId } from '../../core/ids';
import { limits } from '../../core/limits';
import type { CertificateMessage, IncidentEvent, IncidentMessage } from '../../core/notifications';
import { named } from '../../db/statement';
import type { NotificationStatus } from '../../schema/types';

/** The table whose name wakes those who send. */
export const NOTIFICATIONS = 'notifications';

const QUEUE = named(`insert into notifications (message_id, project_id, notifier_id, incident_id, event, subject,
  data)
  select $1, $2, n.id, $3, $4, $3, $5 from notifiers n where n.project_id = $2 and n.id = any($6) and n.enabled
    order by n.id`);

/** One message to each of the notifiers that is switched on. */
export async function queueIncidentMessage(
  sql: Sql,
  event: IncidentEvent,
  to: { project_id: string; notifier_ids: readonly string[] },
  message: IncidentMessage,
): Promise<void> {
  if (!to.notifier_ids.length) return;
  const values = [mintId('msg'), to.project_id, message.incident.id, event, JSON.stringify(message), to.notifier_ids];
  await sql.query(QUEUE, values);
  sql.due(NOTIFICATIONS);
}

const QUEUE_CERTIFICATE = named(`insert into notifications (message_id, project_id, notifier_id, event, subject, data)
  select $1, $2, n.id, 'observer.certificate_expiring', $3, $4 from notifiers n
    where n.project_id = $2 and n.id = any($5) and n.enabled order by n.id`);

/** One message to each of the notifiers that is switched on. */
export async function queueCertificateMessage(
  sql: Sql,
  to: { project_id: string; notifier_ids: readonly string[] },
  message: CertificateMessage,
): Promise<void> {
  if (!to.notifier_ids.length) return;
  const values = [mintId('msg'), to.project_id, message.observer.id, JSON.stringify(message), to.notifier_ids];
  await sql.query(QUEUE_CERTIFICATE, values);
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

export interface TestEnd {
  status: NotificationStatus;
  status_code: number | null;
  error: string | null;
  duration_ms: number | null;
}

/**
 * A test message of a notifier; it has one attempt. Requests of one Idempotency-Key, also such as come at once, share
 * it for as long as the key holds.
 * @param scope of the key; undefined: a message of its own
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

/** Nobody waits for it any longer. */
export async function withdrawTest(sql: Sql, seq: number, reason: string): Promise<void> {
  await sql.query(WITHDRAW, [seq, reason]);
}
