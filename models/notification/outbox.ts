// The outbox: messages are rows, written in the transaction of what they tell of.
import type { Sql } from '../../core/context';
import { mintId } from '../../core/ids';
import type { IncidentEvent, IncidentMessage } from '../../core/notifications';
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

const TEST = named(`insert into notifications (message_id, project_id, notifier_id, event, subject, data)
  values ($1, $2, $3, 'notifier.test', $1, '{}') returning seq`);
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

/** A test message of a notifier; it has one attempt. */
export async function queueTest(sql: Sql, notifier: { id: string; project_id: string }): Promise<number> {
  const [row] = await sql.query<{ seq: number }>(TEST, [mintId('msg'), notifier.project_id, notifier.id]);
  sql.due(NOTIFICATIONS);
  return row?.seq ?? 0;
}

export async function endOfTest(sql: Sql, seq: number): Promise<TestEnd | null> {
  const [row] = await sql.query<TestEnd>(END, [seq]);
  return row ?? null;
}

/** Nobody waits for it any longer. */
export async function withdrawTest(sql: Sql, seq: number, reason: string): Promise<void> {
  await sql.query(WITHDRAW, [seq, reason]);
}
