// Accepted messages: their rows, many messages to a transaction.
import type { Sql } from '../../../core/context';
import { limits } from '../../../core/limits';
import { named } from '../../../db/statement';
import type { ControlDatabase } from '../../../db/control_database';
import { addMetricPoints, type MetricPointInput } from '../../applications/metric_point';

export const DELIVERIES = 'email_deliveries';

/** A message that has come whole; the file of a larger one is on the disk. Mail of the platform itself has no zone. */
export interface AcceptedMessage {
  id: string;
  project_id: string | null;
  email_relay_zone_id: string | null;
  email_domain_id: string | null;
  sender: string;
  header_from: string;
  message_id: string;
  subject: string;
  body_hash: string;
  size_bytes: number;
  /** Null where `content` is the message. */
  file: string | null;
  content: Buffer | null;
  body_offset: number;
  recipients: readonly string[];
}

export type Acceptance = 'accepted' | 'over_limit' | 'no_zone';

interface Row {
  message_id: string;
  number: number;
  email_relay_zone_id: string | null;
  recipient: string;
  destination: string;
}

const LIMITS = named(
  `select z.id, z.daily_limit, z.status, coalesce(d.recipients, 0) as used from email_relay_zones z
    left join email_days d on d.email_relay_zone_id = z.id and d.day = (now() at time zone 'utc')::date
    where z.id = any($1) and z.deleted_at is null order by z.id for no key update of z`,
);
const COUNT = named(`insert into email_days as d (email_relay_zone_id, day, recipients)
  select id, (now() at time zone 'utc')::date, recipients
    from jsonb_to_recordset($1::jsonb) as z (id text, recipients integer)
  on conflict (email_relay_zone_id, day) do update set recipients = d.recipients + excluded.recipients`);
const MESSAGES = named(`insert into email_messages (id, project_id, email_relay_zone_id, email_domain_id, sender,
    header_from, message_id, subject, body_hash, size_bytes, file, body_offset)
  select id, project_id, email_relay_zone_id, email_domain_id, sender, header_from, message_id, subject, body_hash,
    size_bytes, file, body_offset
  from jsonb_to_recordset($1::jsonb) as m (id text, project_id text, email_relay_zone_id text, email_domain_id text,
    sender text, header_from text, message_id text, subject text, body_hash text, size_bytes bigint, file text,
    body_offset integer)`);
const BODIES = named(`insert into email_bodies (message_id, content)
  select * from unnest($1::text[], $2::bytea[])`);
const RECIPIENTS = named(`insert into email_deliveries (message_id, number, email_relay_zone_id, recipient,
    destination, status, next_at, ended_at, expires_at)
  select r.message_id, r.number, r.email_relay_zone_id, r.recipient, r.destination,
    case when s.id is null then 'queued' else 'suppressed' end, case when s.id is null then now() end,
    case when s.id is null then null else now() end, now() + make_interval(hours => $2)
  from jsonb_to_recordset($1::jsonb) as r (message_id text, number integer, email_relay_zone_id text, recipient text,
    destination text)
  left join email_suppressions s on s.email_relay_zone_id = r.email_relay_zone_id and s.email = lower(r.recipient)
  returning message_id, status`);
const FINISH = named(`update email_messages set finished_at = now() where id = any($1)`);
const FORGET_BODIES = named('delete from email_bodies where message_id = any($1)');

/** Accepts all messages in one transaction. Returns one result per message, in their order. */
export async function acceptMessages(
  database: ControlDatabase,
  messages: readonly AcceptedMessage[],
  retryHours: number,
): Promise<Acceptance[]> {
  return database.transaction(async (sql) => {
    const verdicts = await admit(sql, messages);
    const accepted = messages.filter((_, index) => verdicts[index] === 'accepted');
    if (!accepted.length) return verdicts;
    await insertMessages(sql, accepted);
    const rows = accepted.flatMap(rowsOf);
    const stored = await sql.query<{ message_id: string; status: string }>(RECIPIENTS, [
      JSON.stringify(rows),
      retryHours,
    ]);
    await finishSuppressed(sql, accepted, stored);
    await addMetricPoints(sql, acceptedPoints(accepted, stored));
    sql.due(DELIVERIES);
    return verdicts;
  });
}

async function insertMessages(sql: Sql, messages: readonly AcceptedMessage[]): Promise<void> {
  const rows = messages.map(({ content: _, recipients: __, ...row }) => row);
  const small = messages.filter(({ content }) => content !== null);
  await Promise.all([
    sql.query(MESSAGES, [JSON.stringify(rows)]),
    small.length && sql.query(BODIES, [small.map(({ id }) => id), small.map(({ content }) => content)]),
  ]);
}

/** What the zones still may send today; counts what they send now. */
async function admit(sql: Sql, messages: readonly AcceptedMessage[]): Promise<Acceptance[]> {
  const ids = [...new Set(messages.flatMap(({ email_relay_zone_id }) => email_relay_zone_id ?? []))].sort();
  if (!ids.length) return messages.map(() => 'accepted');
  const zones = await sql.query<{ id: string; daily_limit: number | null; status: string; used: number }>(LIMITS, [
    ids,
  ]);
  const byId = new Map(zones.map((zone) => [zone.id, { ...zone, added: 0 }]));
  const verdicts = messages.map(({ email_relay_zone_id, recipients }): Acceptance => {
    if (email_relay_zone_id === null) return 'accepted';
    const zone = byId.get(email_relay_zone_id);
    if (zone?.status !== 'active') return 'no_zone';
    const limit = zone.daily_limit ?? limits.mailRecipientsPerDay;
    if (zone.used + zone.added + recipients.length > limit) return 'over_limit';
    zone.added += recipients.length;
    return 'accepted';
  });
  const counted = [...byId.values()].filter(({ added }) => added > 0);
  if (counted.length)
    await sql.query(COUNT, [JSON.stringify(counted.map(({ id, added }) => ({ id, recipients: added })))]);
  return verdicts;
}

function rowsOf({ id, email_relay_zone_id, recipients }: AcceptedMessage): Row[] {
  return recipients.map((recipient, number) => ({
    message_id: id,
    number,
    email_relay_zone_id,
    recipient,
    destination: recipient.slice(recipient.lastIndexOf('@') + 1).toLowerCase(),
  }));
}

async function finishSuppressed(
  sql: Sql,
  messages: readonly AcceptedMessage[],
  stored: readonly { message_id: string; status: string }[],
): Promise<void> {
  const waiting = new Set(stored.filter(({ status }) => status === 'queued').map(({ message_id }) => message_id));
  const finished = messages.map(({ id }) => id).filter((id) => !waiting.has(id));
  if (!finished.length) return;
  await sql.query(FINISH, [finished]);
  await forgetBodies(sql, finished);
}

/** Nothing more is sent of these messages. */
export async function forgetBodies(sql: Sql, ids: readonly string[]): Promise<void> {
  await sql.query(FORGET_BODIES, [[...ids]]);
}

function acceptedPoints(
  messages: readonly AcceptedMessage[],
  stored: readonly { message_id: string; status: string }[],
): MetricPointInput[] {
  const byId = new Map(messages.map((message) => [message.id, message]));
  return stored.flatMap(({ message_id, status }) => {
    const message = byId.get(message_id);
    return message ? mailPoints(message, status === 'queued' ? 'sent' : 'suppressed') : [];
  });
}

/** One count of a metric of the zone; none for mail of the platform itself. */
export function mailPoints(
  message: Pick<AcceptedMessage, 'project_id' | 'email_relay_zone_id' | 'email_domain_id'>,
  metric: 'sent' | 'delivered' | 'bounced' | 'complained' | 'opened' | 'clicked' | 'suppressed',
): MetricPointInput[] {
  const { project_id, email_relay_zone_id: resource_id, email_domain_id } = message;
  if (project_id === null || resource_id === null) return [];
  return [{ at: new Date(), project_id, resource_id, part_id: email_domain_id ?? '', metric, samples: 0, total: 1 }];
}
