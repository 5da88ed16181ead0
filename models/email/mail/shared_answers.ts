// Answers that many recipients of a destination got in the same words, while it took mail for none: such a server
// refuses the sender, whatever its words say of mailboxes.
import type { Sql } from '../../../core/context';
import type { RejectionKind } from '../../../core/mail/rejection';
import { named } from '../../../db/statement';

/** A refused recipient of a message. */
export interface Refused {
  message_id: string;
  number: number;
  zone: string;
  recipient: string;
  destination: string;
  last_response: string;
  rejection: RejectionKind;
}

const RECIPIENTS_MIN = 5;
const HOURS = 24;
const READ_MAX = 1000;
const REFUSED = named(`select d.message_id, d.number, d.email_relay_zone_id as zone, d.recipient, d.destination,
    d.last_response, d.rejection
  from unnest($1::text[]) as of (destination)
  cross join lateral (select * from email_deliveries r where r.destination = of.destination
    and r.rejection is not null and r.ended_at > now() - make_interval(hours => ${HOURS})
    order by r.ended_at desc limit ${READ_MAX}) d
  where d.last_response is not null and d.email_relay_zone_id is not null and not exists (
    select 1 from email_deliveries a where a.destination = of.destination and a.status = 'delivered'
      and a.ended_at > now() - make_interval(hours => ${HOURS}))`);

/** Recipients, of earlier messages too, whose answer says nothing about their mailbox. */
export async function sharedAnswers(sql: Sql, bounced: readonly { destination: string }[]): Promise<Refused[]> {
  const destinations = [...new Set(bounced.map(({ destination }) => destination))];
  const refused = await sql.query<Refused>(REFUSED, [destinations]);
  const groups = new Map<string, Refused[]>();
  for (const each of refused) {
    const key = `${each.destination} ${commonTextOf(each)}`;
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  const shared = [...groups.values()].filter((group) => distinct(group) >= RECIPIENTS_MIN).flat();
  return shared.filter(({ rejection }) => rejection !== 'other');
}

function distinct(group: readonly Refused[]): number {
  return new Set(group.map(({ recipient }) => recipient.toLowerCase())).size;
}

/**
 * Without what differs from one answer to the next: the recipient, addresses, identifiers and numbers. In linear time:
 * a thousand answers are read for each bounce, and their server may be anybody's.
 */
export function commonTextOf({ last_response, recipient }: Pick<Refused, 'last_response' | 'recipient'>): string {
  const local = recipient.slice(0, recipient.lastIndexOf('@')).toLowerCase();
  const words = last_response
    .toLowerCase()
    .replaceAll(recipient.toLowerCase(), ' ')
    .replaceAll(local, ' ')
    .replace(/\[[^\][]*\]/g, ' ')
    .split(/\s+/)
    .filter((word) => !/[@\d]/.test(word));
  return words
    .join(' ')
    .replace(/[^\p{L}]+/gu, ' ')
    .trim();
}
