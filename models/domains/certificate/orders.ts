// Orders of the last days, counted as authorities count them: what would be refused waits here instead, and the last
// part of each limit is kept for what matters more (docs/decisions/0223).
import { getDomain } from 'tldts';
import type { Session } from '../../../db/control_database';
import { named } from '../../../db/statement';
import { baseOf } from '../domain/hostname';

/** As in drivers/certificates.ts. */
interface Limits {
  ordersPer3Hours: number;
  certificatesPerWeek: number;
  duplicatesPerWeek: number;
  failuresPerHour: number;
}

interface NewOrder {
  authority: string;
  hostname: string;
  /** Replaces a certificate of the same authority. */
  isRenewal: boolean;
  /** The authority was told which: it does not count the order at all (RFC 9773 section 5). */
  isAnnounced: boolean;
  /** Part of the limits that may be used up by orders of this importance, 0 to 1. */
  share: number;
  /** The name is below a domain of the platform, whose weekly limit all accounts share. */
  isDefaultName: boolean;
}

/** Why an order has to wait. */
export interface Waiting {
  reason: string;
  waitMs: number;
}

interface Order {
  hostname: string;
  registered_domain: string;
  is_renewal: boolean;
  outcome: 'open' | 'issued' | 'failed';
  account_id: string | null;
  age_ms: number;
}

/** Whose order it is, and how many of them share the limits. */
interface Tenant {
  account_id: string;
  accounts: number;
}

interface Rule {
  windowMs: number;
  max: number;
  counts(order: Order): boolean;
  /** What is full, as a sentence. */
  reason: string;
}

const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 24 * HOUR_MS;
/** Orders that wait look again at least so often: another authority may have been set, or a limit raised. */
const LOOK_MS = HOUR_MS;
/** A clock that is wrong makes every certificate look like an old one, and an authority may say so of a new one. */
const ISSUED_PER_HOUR: Rule = {
  windowMs: HOUR_MS,
  max: 5,
  counts: () => true,
  reason: 'Five certificates of the name were issued within an hour. Compare the clock of this machine with others.',
};
/** No account gets less than its part of so many, however many there are: most order nothing. */
const ACCOUNTS_MAX = 4;

const LOCK = named(`select pg_advisory_xact_lock(hashtext('certificate_orders'))`);
const RECENT = named(`select hostname, registered_domain, is_renewal, outcome, account_id,
    (extract(epoch from now() - created_at) * 1000)::float8 as age_ms
  from certificate_orders where authority = $1 and created_at > now() - interval '7 days'
    and (registered_domain = $2 or created_at > now() - interval '3 hours') order by created_at`);
const ISSUED = named(`select hostname, registered_domain, is_renewal, outcome, account_id,
    (extract(epoch from now() - created_at) * 1000)::float8 as age_ms
  from certificate_orders where authority = $1 and hostname = $2 and outcome = 'issued'
    and created_at > now() - interval '1 hour' order by created_at`);
const OPEN = named(`select 1 from certificate_orders where hostname = $1 and authority = $2 and outcome = 'open'`);
const INSERT = named(`insert into certificate_orders (authority, hostname, registered_domain, is_renewal, account_id)
  values ($1, $2, $3, $4, $5)`);
const TENANT = named(`select p.account_id, (select count(*) from (select from accounts a where status = 'active'
      and exists (select from projects o where o.account_id = a.id and o.deleted_at is null) limit ${ACCOUNTS_MAX})
    as those)::int as accounts
  from certificates c left join domains d on d.id = c.domain_id left join applications a on a.id = c.application_id
    left join previews v on v.id = c.preview_id left join cdn_zones z on z.id = c.cdn_zone_id
    join projects p on p.id = coalesce(d.project_id, a.project_id, v.project_id, z.project_id)
  where c.id = $1`);

/**
 * Counts a new order. One whose attempts have not come to an end, since the authority is away, is counted already.
 * @returns why it has to wait; then it is not counted
 */
export async function admitOrder(database: Session, order: NewOrder, limits: Limits | null): Promise<Waiting | null> {
  const { authority, hostname, isRenewal, isAnnounced } = order;
  const domain = registeredDomainOf(hostname);
  return database.transaction(async (sql) => {
    await sql.query(LOCK, []);
    if ((await sql.query(OPEN, [hostname, authority])).length) return null;
    const tooMany = waitingFor(ISSUED_PER_HOUR, await sql.query<Order>(ISSUED, [authority, hostname]));
    if (tooMany) return tooMany;
    const [tenant = null] = await sql.query<Tenant>(TENANT, [hostname]);
    if (limits && !isAnnounced) {
      const recent = await sql.query<Order>(RECENT, [authority, domain]);
      const full = rulesFor(order, domain, limits, tenant).flatMap((rule) => waitingFor(rule, recent) ?? []);
      if (full.length) return full.reduce((one, other) => (other.waitMs > one.waitMs ? other : one));
    }
    await sql.query(INSERT, [authority, hostname, domain, isRenewal, tenant?.account_id ?? null]);
    return null;
  });
}

const END = named(`update certificate_orders set outcome = $2 where hostname = $1 and outcome = 'open'`);

/** How the order of a host name has ended. */
export async function endOrder(sql: Session, hostname: string, outcome: 'issued' | 'failed'): Promise<void> {
  await sql.query(END, [hostname, outcome]);
}

/** The domain that authorities count for: one label below a public suffix, private ones among them. */
function registeredDomainOf(hostname: string): string {
  const base = baseOf(hostname);
  const options = { extractHostname: false, validateHostname: false, allowPrivateDomains: true };
  return getDomain(base, options) ?? base;
}

/** Renewals count towards two of the limits alone, announced ones towards none. */
function rulesFor(order: NewOrder, domain: string, limits: Limits, tenant: Tenant | null): Rule[] {
  const { hostname, isRenewal, share } = order;
  const { ordersPer3Hours, certificatesPerWeek, duplicatesPerWeek, failuresPerHour } = limits;
  const ofName = ({ hostname: other }: Order): boolean => other === hostname;
  const rest = share < 1 ? ' The last ones are kept for renewals and for what is more important.' : '';
  const always: Rule[] = [
    {
      windowMs: WEEK_MS,
      max: duplicatesPerWeek,
      counts: (one) => ofName(one) && one.outcome !== 'failed',
      reason: `The certificate authority issues ${duplicatesPerWeek} certificates of one name in a week.`,
    },
    {
      windowMs: HOUR_MS,
      max: failuresPerHour - 1,
      counts: (one) => ofName(one) && one.outcome === 'failed',
      reason: `The certificate authority bears ${failuresPerHour} failed checks of one name in an hour.`,
    },
  ];
  if (isRenewal) return always;
  return [
    ...always,
    ...(tenant && tenant.accounts > 1 ? fairRules(order, domain, limits, tenant) : []),
    {
      windowMs: 3 * HOUR_MS,
      max: Math.floor(ordersPer3Hours * share),
      counts: ({ is_renewal }) => !is_renewal,
      reason: `The certificate authority takes ${ordersPer3Hours} orders of this platform in 3 hours.${rest}`,
    },
    {
      windowMs: WEEK_MS,
      max: Math.floor(certificatesPerWeek * share),
      counts: (one) => one.registered_domain === domain && !one.is_renewal && one.outcome !== 'failed',
      reason: `The certificate authority issues ${certificatesPerWeek} certificates in a week for ${domain}.${rest}`,
    },
  ];
}

/** One account must not use up what the authority gives to all of them. Alone it has everything. */
function fairRules({ share, isDefaultName }: NewOrder, domain: string, limits: Limits, tenant: Tenant): Rule[] {
  const { ordersPer3Hours, certificatesPerWeek } = limits;
  const partOf = (limit: number): number => Math.max(1, Math.floor((limit * share) / tenant.accounts));
  const isOwn = ({ account_id, is_renewal }: Order): boolean => account_id === tenant.account_id && !is_renewal;
  const ofOrders: Rule = {
    windowMs: 3 * HOUR_MS,
    max: partOf(ordersPer3Hours),
    counts: isOwn,
    reason: `One account may place ${partOf(ordersPer3Hours)} of the orders of this platform in 3 hours.`,
  };
  // Of a custom domain they are the account's own.
  if (!isDefaultName) return [ofOrders];
  const ofDomain: Rule = {
    windowMs: WEEK_MS,
    max: partOf(certificatesPerWeek),
    counts: (one) => one.registered_domain === domain && isOwn(one) && one.outcome !== 'failed',
    reason: `One account gets ${partOf(certificatesPerWeek)} of the certificates of a week for ${domain}.`,
  };
  return [ofOrders, ofDomain];
}

/** @param recent the oldest first */
function waitingFor({ windowMs, max, counts, reason }: Rule, recent: readonly Order[]): Waiting | null {
  const counted = recent.filter((order) => order.age_ms < windowMs && counts(order));
  if (counted.length < max) return null;
  const first = counted[counted.length - max] ?? counted.at(-1);
  const freeInMs = windowMs - (first?.age_ms ?? 0);
  const at = new Date(Date.now() + freeInMs).toISOString().slice(0, 16).replace('T', ' ');
  return {
    reason: `The certificate waits for its turn: ${lowerFirst(reason)} Room is expected at ${at} UTC.`,
    waitMs: Math.min(freeInMs, LOOK_MS),
  };
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

const PAUSE = named(`update acme_accounts set paused_until = now() + $2 * interval '1 ms', pause_reason = $3
  where authority = $1 and coalesce(paused_until, now()) < now() + $2 * interval '1 ms'`);
const PAUSED = named(`select (extract(epoch from paused_until - now()) * 1000)::float8 as ms, pause_reason as reason
  from acme_accounts where authority = $1 and paused_until > now()`);

/** The authority has asked all orders of this platform to wait: the others need not ask one by one. */
export async function pauseOrders(sql: Session, authority: string, ms: number, reason: string): Promise<void> {
  await sql.query(PAUSE, [authority, ms, reason]);
}

/** null: orders may be placed. */
export async function findPause(sql: Session, authority: string): Promise<Waiting | null> {
  const [row] = await sql.query<{ ms: number; reason: string }>(PAUSED, [authority]);
  return row ? { reason: row.reason, waitMs: row.ms } : null;
}
