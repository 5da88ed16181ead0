// Bounces and complaints about recipients of messages.
import { named } from '../../../db/statement';
import { wakeRows } from '../../../db/loop_rows';
import type { ControlDatabase } from '../../../db/control_database';
import type { MailReference } from '../../../core/mail/mail_reference';
import { addMetricPoints } from '../../applications/metric_point';
import { mailPoints } from './accept';
import type { RejectionKind } from '../../../core/mail/rejection';
import { finishMessages } from './queue';
import { suppress, suppressBounced } from './suppress';

interface Reported {
  recipient: string;
  destination: string;
  status: string;
  project_id: string | null;
  email_relay_zone_id: string | null;
  email_domain_id: string | null;
}

const SENDER_DOMAIN = named(`select e.name from email_messages m join email_domains e on e.id = m.email_domain_id
  where m.id = $1`);
// A server that had taken the message gives it back: it counts as bounced, once.
const BOUNCE = named(`update email_deliveries d set status = 'bounced', ended_at = now(), next_at = null,
    last_response = $3, rejection = $4
  from email_messages m where m.id = d.message_id and d.message_id = $1 and d.number = $2
    and d.status in ('delivered', 'queued')
  returning d.message_id, d.recipient, d.destination, d.status, m.project_id, m.email_relay_zone_id,
    m.email_domain_id`);
const COMPLAINT = named(`update email_deliveries d set complained_at = now()
  from email_messages m where m.id = d.message_id and d.message_id = $1 and d.number = $2 and d.complained_at is null
  returning d.recipient, d.status, m.project_id, m.email_relay_zone_id, m.email_domain_id`);

/** The sending domain of a message that is still known; null where it has none. */
export async function findSenderDomain(
  database: ControlDatabase,
  { message_id }: Pick<MailReference, 'message_id'>,
): Promise<string | null> {
  const [found] = await database.query<{ name: string }>(SENDER_DOMAIN, [message_id]);
  return found?.name ?? null;
}

const RECIPIENT = named('select recipient from email_deliveries where message_id = $1 and number = $2');

/** Null for a message that is no longer known. */
export async function findRecipient(
  database: ControlDatabase,
  { message_id, number }: MailReference,
): Promise<string | null> {
  const [found] = await database.query<{ recipient: string }>(RECIPIENT, [message_id, number]);
  return found?.recipient ?? null;
}

export async function recordBounce(
  database: ControlDatabase,
  { message_id, number }: MailReference,
  { rejection, response }: { rejection: RejectionKind; response: string },
): Promise<void> {
  await database.transaction(async (sql) => {
    const [found] = await sql.query<Reported & { message_id: string }>(BOUNCE, [
      ...[message_id, number, response, rejection],
    ]);
    if (!found) return;
    // The report may precede the end of the delivery that it is about. The upkeep deletes the file.
    await finishMessages(sql, [found.message_id]);
    await addMetricPoints(sql, mailPoints(found, 'bounced'));
    const { project_id, email_relay_zone_id: zone, recipient, destination } = found;
    if (project_id && zone)
      await suppressBounced(sql, [{ project_id, zone, recipient, destination, rejection, response }]);
  });
}

export async function recordComplaint(database: ControlDatabase, { message_id, number }: MailReference): Promise<void> {
  await database.transaction(async (sql) => {
    const [found] = await sql.query<Reported>(COMPLAINT, [message_id, number]);
    if (!found) return;
    await addMetricPoints(sql, mailPoints(found, 'complained'));
    const { project_id, email_relay_zone_id: zone, recipient } = found;
    if (!project_id || !zone) return;
    const response = 'The recipient has reported the message as spam.';
    await suppress(sql, [{ project_id, zone, recipient, response, reason: 'complaint' }]);
    await wakeRows(sql, { table: 'email_relay_zones', where: 'id = $1', values: [zone] });
  });
}
