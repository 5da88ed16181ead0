// Suppression of recipients, because of what their servers have answered.
import type { Sql } from '../../../core/context';
import { mintId } from '../../../core/ids';
import type { RejectionKind } from '../../../core/mail/rejection';
import { wakeRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';
import { sharedAnswers, type Refused } from './shared_answers';

interface BouncedRecipient {
  project_id: string;
  zone: string;
  recipient: string;
  destination: string;
  rejection: RejectionKind | null;
  response: string;
}

const SUPPRESS = named(`insert into email_suppressions (id, project_id, email_relay_zone_id, email, reason, detail,
    created_at, updated_at)
  select r.id, r.project_id, r.zone, r.email, r.reason, r.detail, now(), now()
  from jsonb_to_recordset($1::jsonb) as r (id text, project_id text, zone text, email text, reason text, detail text)
  join email_relay_zones z on z.id = r.zone on conflict (email_relay_zone_id, email) do nothing`);
/** Refused without a clear reason so often within two weeks, and not taken since (`resetUnclearRejections`). */
const UNCLEAR_MAX = 3;
const UNCLEAR_DAYS = 14;
const REPEATED = named(`select r.zone, r.email from jsonb_to_recordset($1::jsonb) as r (zone text, email text)
  where (select count(*) from email_deliveries d where d.email_relay_zone_id = r.zone and lower(d.recipient) = r.email
    and d.rejection = 'unclear' and d.ended_at > now() - make_interval(days => ${UNCLEAR_DAYS})) >= ${UNCLEAR_MAX}`);
const RESET_UNCLEAR = named(`update email_deliveries d set rejection = 'other'
  from jsonb_to_recordset($1::jsonb) as r (zone text, email text)
  where d.email_relay_zone_id = r.zone and lower(d.recipient) = r.email and d.rejection = 'unclear'`);
// A wrong conclusion from the first of many equal answers is corrected.
const LIFT = named(`with refused as (
    update email_deliveries d set rejection = 'other'
    from jsonb_to_recordset($1::jsonb) as r (message_id text, number integer)
    where d.message_id = r.message_id and d.number = r.number
    returning d.email_relay_zone_id, lower(d.recipient) as email, d.ended_at)
  delete from email_suppressions s using refused r
    where s.email_relay_zone_id = r.email_relay_zone_id and s.email = r.email and s.reason = 'bounce'
      and s.created_at >= r.ended_at`);

/** Suppresses missing mailboxes at once and unclear ones after some messages, and has their zones reviewed. */
export async function suppressBounced(sql: Sql, bounced: readonly BouncedRecipient[]): Promise<void> {
  const shared = await sharedAnswers(sql, bounced);
  if (shared.length) await liftSuppressions(sql, shared);
  const isShared = new Set(shared.map(({ zone, recipient }) => keyOf({ zone, recipient: recipient.toLowerCase() })));
  const own = bounced.filter((each) => !isShared.has(keyOf(each)));
  const unclear = own.filter(({ rejection }) => rejection === 'unclear');
  const repeated = unclear.length
    ? await sql.query<{ zone: string; email: string }>(REPEATED, [JSON.stringify(unclear.map(candidateOf))])
    : [];
  const isRepeated = new Set(repeated.map(({ zone, email }) => `${zone} ${email}`));
  const due = own.filter((each) => each.rejection === 'mailbox' || isRepeated.has(keyOf(each)));
  await suppress(
    sql,
    due.map((each) => ({ ...each, reason: 'bounce' as const })),
  );
  const zones = [...new Set(bounced.map(({ zone }) => zone))];
  await wakeRows(sql, { table: 'email_relay_zones', where: 'id = any($1)', values: [zones] });
}

/** A mailbox that takes a message again was full for a time only. */
export async function resetUnclearRejections(
  sql: Sql,
  delivered: readonly Pick<BouncedRecipient, 'zone' | 'recipient'>[],
) {
  if (delivered.length) await sql.query(RESET_UNCLEAR, [JSON.stringify(delivered.map(candidateOf))]);
}

async function liftSuppressions(sql: Sql, refused: readonly Refused[]): Promise<void> {
  await sql.query(LIFT, [JSON.stringify(refused.map(({ message_id, number }) => ({ message_id, number })))]);
}

function candidateOf({ zone, recipient }: Pick<BouncedRecipient, 'zone' | 'recipient'>) {
  return { zone, email: recipient.toLowerCase() };
}

function keyOf({ zone, recipient }: Pick<BouncedRecipient, 'zone' | 'recipient'>): string {
  return `${zone} ${recipient.toLowerCase()}`;
}

const DETAIL_CHARACTERS = 500;

/** Adds recipients to the suppression lists of their zones; those that are there stay as they are. */
export async function suppress(
  sql: Sql,
  recipients: readonly (Pick<BouncedRecipient, 'project_id' | 'zone' | 'recipient' | 'response'> & {
    reason: 'bounce' | 'complaint';
  })[],
): Promise<void> {
  if (!recipients.length) return;
  const rows = recipients.map(({ project_id, zone, recipient, reason, response }) => {
    const email = recipient.toLowerCase();
    return { id: mintId('sup'), project_id, zone, email, reason, detail: response.slice(0, DETAIL_CHARACTERS) };
  });
  await sql.query(SUPPRESS, [JSON.stringify(rows)]);
}
