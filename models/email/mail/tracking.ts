// Messages that were opened, and links that were followed.
import { named } from '../../../db/statement';
import type { ControlDatabase } from '../../../db/control_database';
import type { MailReference } from '../../../core/mail/mail_reference';
import { addMetricPoints } from '../../applications/metric_point';
import { mailPoints } from './accept';

const RETURNING = `from email_messages m where m.id = d.message_id and d.message_id = $1 and d.number = $2
  and d.status = 'delivered'`;
const OPENED = named(`update email_deliveries d set opened_at = now() ${RETURNING} and d.opened_at is null
  returning m.project_id, m.email_relay_zone_id, m.email_domain_id`);
const CLICKED = named(`update email_deliveries d set clicked_at = now() ${RETURNING} and d.clicked_at is null
  returning m.project_id, m.email_relay_zone_id, m.email_domain_id`);

/** Counts each message once. */
export async function recordTracking(
  database: ControlDatabase,
  kind: 'open' | 'click',
  { message_id, number }: MailReference,
): Promise<void> {
  await database.transaction(async (sql) => {
    const statement = kind === 'open' ? OPENED : CLICKED;
    const [found] = await sql.query<Parameters<typeof mailPoints>[0]>(statement, [message_id, number]);
    if (found) await addMetricPoints(sql, mailPoints(found, kind === 'open' ? 'opened' : 'clicked'));
  });
}
