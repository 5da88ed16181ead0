// How much of a zone's mail bounces or is complained about, and when that is too much. The bounds are those at which
// large receivers begin to refuse all of a sender's mail.
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';
import type { EmailRelayZone } from '../email_relay_zone';

interface ZoneRates {
  /** Ended within a day. */
  ended: number;
  /** Addresses that do not exist. */
  bounced: number;
  complained: number;
  /** Refused for reasons that say nothing about the mailbox. */
  refused: number;
  /** The last answer about an address that does not exist, and the last refusal for another reason. */
  bounce_answer: string | null;
  refusal_answer: string | null;
}

const BOUNCE_SHARE_MAX = 0.1;
const COMPLAINT_SHARE_MAX = 0.005;
/** Below these numbers a share says nothing. */
const BOUNCES_MIN = 20;
const COMPLAINTS_MIN = 3;
/** From here on the owner is told, and nothing else happens: the mail of others is not at risk. */
const REFUSAL_SHARE_REPORTED = 0.1;
const REFUSALS_MIN = 5;
const ANSWER_CHARACTERS = 300;
/** A suspended zone sends nothing, so that its rates fall; it stays so for a day at least. */
const SUSPENDED_MS = 24 * 3_600_000;

const RATES = named(`select count(*) filter (where status in ('delivered', 'bounced'))::int as ended,
    count(*) filter (where rejection = 'mailbox')::int as bounced,
    count(complained_at)::int as complained,
    count(*) filter (where rejection = 'other')::int as refused,
    (array_agg(last_response order by ended_at desc) filter (where rejection = 'mailbox'))[1] as bounce_answer,
    (array_agg(last_response order by ended_at desc) filter (where rejection = 'other'))[1] as refusal_answer
  from email_deliveries where email_relay_zone_id = $1 and ended_at > now() - interval '24 hours'`);

const NO_RATES: ZoneRates = {
  ...{ ended: 0, bounced: 0, complained: 0, refused: 0, bounce_answer: null, refusal_answer: null },
};

export async function ratesOf(sql: Sql, zoneId: string): Promise<ZoneRates> {
  const [rates] = await sql.query<ZoneRates>(RATES, [zoneId]);
  return rates ?? NO_RATES;
}

type RatesVerdict = Pick<EmailRelayZone, 'status' | 'status_reason' | 'suspended_at'>;

/** Active zones with too much of either are suspended; suspended ones come back after a day of better rates. */
export function evaluateRates(
  zone: Pick<EmailRelayZone, 'enabled' | 'status' | 'suspended_at'>,
  rates: ZoneRates,
  now: Date,
): RatesVerdict {
  const usual = zone.enabled ? 'active' : 'disabled';
  const reason = reasonOf(rates);
  if (!zone.suspended_at) {
    if (!reason || usual === 'disabled') return { status: usual, status_reason: noteOf(rates), suspended_at: null };
    return { status: 'suspended', status_reason: reason, suspended_at: now.toISOString() };
  }
  const isOver = now.getTime() - Date.parse(zone.suspended_at) >= SUSPENDED_MS;
  if (isOver && !reason) return { status: usual, status_reason: noteOf(rates), suspended_at: null };
  const status_reason =
    reason ?? 'Too much mail of the zone came back. The zone can send again one day after its suspension.';
  return { status: 'suspended', status_reason, suspended_at: zone.suspended_at };
}

/** Why mail of a zone that may send does not arrive. */
function noteOf({ ended, refused, refusal_answer }: ZoneRates): string | null {
  if (refused < REFUSALS_MIN || refused <= ended * REFUSAL_SHARE_REPORTED) return null;
  return (
    `${refused} of ${ended} recipients within 24 hours did not get their mail, for reasons other than their mailbox. ` +
    answerText(refusal_answer)
  ).trim();
}

function answerText(answer: string | null): string {
  return answer ? `The last answer: “${answer.slice(0, ANSWER_CHARACTERS)}”` : '';
}

function reasonOf({ ended, bounced, complained, bounce_answer }: ZoneRates): string | null {
  const within = `of ${ended} recipients within 24 hours`;
  if (bounced >= BOUNCES_MIN && bounced > ended * BOUNCE_SHARE_MAX)
    return (
      `${bounced} ${within} do not exist; the limit is ${BOUNCE_SHARE_MAX * 100} percent. ` + answerText(bounce_answer)
    ).trim();
  if (complained >= COMPLAINTS_MIN && complained > ended * COMPLAINT_SHARE_MAX)
    return `${complained} ${within} reported the mail as spam; the limit is ${COMPLAINT_SHARE_MAX * 100} percent.`;
  return null;
}
