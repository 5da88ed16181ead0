// The delivery queue: due messages, and results of attempts.
import type { Sql } from '../../../core/context';
import type { DkimRecord } from '../../../core/protocols/dkim';
import { named } from '../../../db/statement';
import type { ControlDatabase } from '../../../db/control_database';
import type { RejectionKind } from '../../../core/mail/rejection';
import type { EmailFindings } from '../email_domain/instructions';
import { addMetricPoints } from '../../applications/metric_point';
import { forgetBodies, mailPoints } from './accept';
import { resetUnclearRejections, suppressBounced } from './suppress';

/** A recipient whose turn has come, with what the delivery needs of message and domain. */
export interface ClaimedDelivery {
  message_id: string;
  number: number;
  fence: string;
  attempts: number;
  recipient: string;
  destination: string;
  expires_at: string;
  project_id: string | null;
  /** '' for mail of the platform. */
  account: string;
  email_relay_zone_id: string | null;
  email_domain_id: string | null;
  sender: string;
  header_from: string;
  body_hash: string;
  size_bytes: number;
  file: string | null;
  /** The whole message, where it is no file. */
  content: Buffer | null;
  body_offset: number;
  domain: SigningDomain | null;
}

export interface SigningDomain {
  id: string;
  name: string;
  return_path_subdomain: string;
  open_tracking: boolean;
  click_tracking: boolean;
  dkim_records: readonly DkimRecord[];
  dkim_keys: string;
  findings: EmailFindings | null;
}

/** How an attempt has ended. `queued`: another one comes. `kept`: in the sink. */
export interface AttemptEnd {
  message_id: string;
  number: number;
  fence: string;
  status: 'queued' | 'delivered' | 'bounced' | 'kept';
  /** What the server said, or why it could not be reached. */
  response: string;
  /** Of another attempt. */
  retry_in_ms: number | null;
  /** Why it has bounced. */
  rejection: RejectionKind | null;
  /** Attempts that a busy destination has put off count for nothing. */
  counts: boolean;
}

const CLAIM_MINUTES = 15;
/** Rows looked at for each one that is claimed: behind many for one busy destination there may be one for another. */
const LOOKED_AT = 10;
const CLAIM = named(`with waiting as (
    select message_id, number, destination, next_at from email_deliveries
      where next_at <= now() and not destination = any($2)
        and coalesce(email_relay_zone_id, '') not in (select z.id from email_relay_zones z
          join projects p on p.id = z.project_id where p.account_id = any($5))
      order by next_at limit $1 * ${LOOKED_AT}),
  ranked as (
    select *, row_number() over (partition by destination order by next_at) as place from waiting),
  due as (
    select d.message_id, d.number from ranked r
      join email_deliveries d on d.message_id = r.message_id and d.number = r.number
      where r.place <= coalesce(($3::jsonb ->> r.destination)::int, $4) and d.next_at <= now()
      order by r.next_at limit $1 for update of d skip locked),
  taken as (
    update email_deliveries d set fence = d.fence + 1, attempts = d.attempts + 1, claimed = true,
      next_at = now() + make_interval(mins => ${CLAIM_MINUTES})
    from due where d.message_id = due.message_id and d.number = due.number
    returning d.message_id, d.number, d.fence::text, d.attempts, d.recipient, d.destination, d.expires_at)
  select t.*, m.project_id, coalesce(p.account_id, '') as account, m.email_relay_zone_id, m.email_domain_id,
    m.sender, m.header_from, m.body_hash,
    m.size_bytes, m.file, m.body_offset, b.content, case when e.id is not null then jsonb_build_object('id', e.id,
      'name', e.name, 'return_path_subdomain', e.return_path_subdomain, 'open_tracking', e.open_tracking,
      'click_tracking', e.click_tracking, 'dkim_records', e.dkim_records, 'dkim_keys', e.dkim_keys,
      'findings', e.findings) end as domain
  from taken t join email_messages m on m.id = t.message_id
  left join projects p on p.id = m.project_id
  left join email_bodies b on b.message_id = m.id
  left join email_domains e on e.id = m.email_domain_id`);
const RELEASE =
  named(`update email_deliveries set claimed = false, next_at = now(), attempts = greatest(attempts - 1, 0)
  where claimed and status = 'queued'`);
const END = named(`update email_deliveries d set claimed = false, status = r.status, last_response = r.response,
    next_at = case when r.status = 'queued' then now() + make_interval(secs => r.retry_in_ms / 1000.0) end,
    ended_at = case when r.status = 'queued' then null else now() end,
    rejection = r.rejection,
    attempts = case when r.counts then d.attempts else greatest(d.attempts - 1, 0) end
  from jsonb_to_recordset($1::jsonb) as r (message_id text, number integer, fence bigint, status text, response text,
    retry_in_ms float8, rejection text, counts boolean)
  where d.message_id = r.message_id and d.number = r.number and d.fence = r.fence and d.status = 'queued'
  returning d.message_id, d.number, d.recipient, d.destination, d.email_relay_zone_id, d.status,
    r.rejection, r.response`);
const FINISHED = named(`update email_messages m set finished_at = now()
  where id = any($1) and finished_at is null
    and not exists (select 1 from email_deliveries d where d.message_id = m.id and d.status = 'queued')
  returning m.id, m.file`);
const OF_MESSAGES = named(`select id, project_id, email_relay_zone_id, email_domain_id from email_messages
  where id = any($1)`);
/** How many each destination takes now. */
export interface Room {
  /** Those that take none. */
  blocked: readonly string[];
  /** Those that take fewer than `each`. */
  free: Readonly<Record<string, number>>;
  each: number;
}

/** Recipients that are due, as many of a destination as it takes. @param passOver accounts that have had their turn */
export function claimDeliveries(
  sql: Sql,
  count: number,
  { blocked, free, each }: Room,
  passOver: readonly string[] = [],
): Promise<ClaimedDelivery[]> {
  return sql.query<ClaimedDelivery>(CLAIM, [count, [...blocked], JSON.stringify(free), each, passOver]);
}

/** At the start of the host: what the one before it had in hand is due at once. */
export async function releaseDeliveries(sql: Sql): Promise<void> {
  await sql.query(RELEASE, []);
}

interface Ended {
  message_id: string;
  number: number;
  recipient: string;
  destination: string;
  email_relay_zone_id: string | null;
  status: AttemptEnd['status'];
  rejection: RejectionKind | null;
  response: string;
}

/** Writes the ends of attempts in one transaction. @returns files of messages that have no recipient left */
export async function endAttempts(database: ControlDatabase, ends: readonly AttemptEnd[]): Promise<string[]> {
  return database.transaction(async (sql) => {
    const ended = await sql.query<Ended>(END, [JSON.stringify(ends)]);
    const done = ended.filter(({ status }) => status !== 'queued');
    if (!done.length) return [];
    const ids = [...new Set(done.map(({ message_id }) => message_id))];
    const kept = new Set(done.filter(({ status }) => status === 'kept').map(({ message_id }) => message_id));
    const files = await finishMessages(sql, ids, kept);
    await afterEnds(sql, ids, done);
    return files;
  });
}

/** Finishes messages that have no recipient left. @returns files that are no longer needed */
export async function finishMessages(
  sql: Sql,
  ids: readonly string[],
  kept: ReadonlySet<string> = new Set(),
): Promise<string[]> {
  const finished = await sql.query<{ id: string; file: string | null }>(FINISHED, [[...ids]]);
  const gone = finished.filter(({ id }) => !kept.has(id));
  const forgotten = gone.flatMap(({ id, file }) => (file === null ? id : []));
  if (forgotten.length) await forgetBodies(sql, forgotten);
  return gone.flatMap(({ file }) => file ?? []);
}

/** Metrics, and the suppression of addresses that bounce. */
async function afterEnds(sql: Sql, ids: readonly string[], done: readonly Ended[]): Promise<void> {
  type Origin = Parameters<typeof mailPoints>[0] & { id: string };
  const messages = await sql.query<Origin>(OF_MESSAGES, [ids]);
  const byId = new Map(messages.map((message) => [message.id, message]));
  const points = done.flatMap(({ message_id, status }) => {
    const message = byId.get(message_id);
    return message && status !== 'kept' ? mailPoints(message, status === 'delivered' ? 'delivered' : 'bounced') : [];
  });
  await addMetricPoints(sql, points);
  const ofZones = done.flatMap(({ email_relay_zone_id: zone, ...end }) => {
    const project_id = byId.get(end.message_id)?.project_id;
    return zone && project_id ? [{ ...end, zone, project_id }] : [];
  });
  await resetUnclearRejections(
    sql,
    ofZones.filter(({ status }) => status === 'delivered'),
  );
  const bounced = ofZones.filter(({ status }) => status === 'bounced');
  if (bounced.length) await suppressBounced(sql, bounced);
}
