// Certificates: a domain that is active gets one, and a new one in time before it ends; so do names of the platform
// itself. The row's lease is the right to order, so that there is one order at a time for a host name.
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError } from '../../core/driver';
import { newPrivateKey } from '../../drivers/certificates/private_key';
import type { CertificateDriver, ChallengePublisher } from '../../drivers/certificates';
import {
  ensureAccountKey,
  clearChallenges,
  findCertifiedDomain,
  publishChallenge,
  sealedCertificate,
  saveCertificateStatus,
  type CertifiedDomain,
} from '../../models/domains/certificate';
import {
  canAnswerChallenge,
  isDnsChallengeServed,
  publishDnsChallenge,
  removeDnsChallenge,
} from '../../models/domains/domain/records';
import type { Certificate } from '../../schema/types';
import { jittered, settled, type Job, type JobContext, type LoopRow, type Outcome } from '../job';

interface CertificateRow extends LoopRow {
  /** Null: of the platform itself. */
  domain_id: string | null;
  authority: string | null;
  chain: string | null;
  issuer: string | null;
  issued_at: string | null;
  expires_at: string | null;
}

type Valid = Pick<CertificateRow, 'issuer' | 'issued_at' | 'expires_at'>;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Let's Encrypt bears five failures of a name in an hour; these are four. */
const PAUSES_MS = [MINUTE_MS, 4 * MINUTE_MS, 16 * MINUTE_MS, 64 * MINUTE_MS, 256 * MINUTE_MS, 6 * HOUR_MS];
const RENEW_BEFORE_MS = 30 * DAY_MS;

const NONE: Certificate = { status: 'none', issuer: null, expires_at: null, error: null };
const NO_ZONE =
  'A certificate for a wildcard needs a DNS challenge: the project has to hold the DNS zone of the name on this ' +
  'platform. Create the zone and delegate it, or add the host names that you need one by one.';
const SERVED_WITHIN_MS = 30_000;
const SERVED_POLL_MS = 100;

// No `states`: an order is tried for ever, in growing pauses.
export const job: Job<CertificateRow> = {
  table: 'certificates',
  project: '(select d.project_id from domains d where d.id = certificates.domain_id)',
  stepMs: 3 * MINUTE_MS,
  reconcile,
};

async function reconcile(row: CertificateRow, ctx: JobContext): Promise<Outcome> {
  const domain = row.domain_id === null ? null : await findCertifiedDomain(ctx.sql, row.domain_id);
  // Its row goes, and this one with it.
  if (!domain && row.domain_id !== null) return settled();
  const { certificates: driver } = ctx.drivers;
  if (!driver) return showAndSettle(row, ctx, row.chain ? certificateStatusOf(row, null) : NONE, HOUR_MS);
  if (!isDue(row, driver)) return showAndSettle(row, ctx, certificateStatusOf(row, null), nextCheckMs(row));
  // Without its records the authority would refuse, and count it. A domain that becomes active again makes this due.
  if (domain && (domain.status !== 'active' || domain.missing_since)) return settled({}, jittered(10 * MINUTE_MS));
  if (domain?.type === 'wildcard' && !(await canAnswerChallenge(ctx.sql, domain, row.id)))
    return showAndSettle(row, ctx, certificateStatusOf(row, NO_ZONE), jittered(10 * MINUTE_MS));
  return orderCertificate(row, domain, driver, ctx);
}

async function showAndSettle(
  row: CertificateRow,
  ctx: JobContext,
  shown: Certificate,
  nextMs: number | null,
): Promise<Outcome> {
  await saveCertificateStatus(ctx.sql, row, shown);
  return settled({}, nextMs);
}

async function orderCertificate(
  row: CertificateRow,
  domain: CertifiedDomain | null,
  driver: CertificateDriver,
  ctx: JobContext,
): Promise<Outcome> {
  if (domain?.certificate.status === 'none') await saveCertificateStatus(ctx.sql, row, { ...NONE, status: 'pending' });
  await removeChallenges(row, ctx);
  try {
    const issued = await obtain(row, domain, driver, ctx);
    await saveCertificateStatus(ctx.sql, row, certificateStatusOf(issued, null));
    ctx.log.info({ issuer: issued.issuer, expires_at: issued.expires_at }, 'A certificate was issued.');
    return settled({}, nextCheckMs(issued));
  } catch (error) {
    throw await showRefusal(row, error, ctx);
  } finally {
    await removeChallenges(row, ctx);
  }
}

async function removeChallenges({ id, domain_id }: CertificateRow, ctx: JobContext): Promise<void> {
  await clearChallenges(ctx.sql, id);
  if (domain_id !== null) await ctx.sql.transaction((sql) => removeDnsChallenge(sql, domain_id));
}

/** Resolves when the name server has the record. @throws DriverError invalid if the platform cannot create it */
async function publishInZone(
  domain: CertifiedDomain | null,
  name: string,
  value: string,
  ctx: JobContext,
): Promise<void> {
  const made = domain && (await ctx.sql.transaction((sql) => publishDnsChallenge(sql, domain, { name, value })));
  if (!made) throw new DriverError('invalid', NO_ZONE);
  if (made.conflicts.length) throw new DriverError('invalid', made.conflicts.join(' '));
  const end = performance.now() + SERVED_WITHIN_MS;
  while (!(await isDnsChallengeServed(ctx.sql, domain.id))) {
    if (performance.now() > end)
      throw new DriverError('transient', 'The name server does not have the DNS challenge yet.');
    await sleep(SERVED_POLL_MS, undefined, { signal: ctx.signal });
  }
}

async function obtain(
  row: CertificateRow,
  domain: CertifiedDomain | null,
  driver: CertificateDriver,
  ctx: JobContext,
): Promise<Valid> {
  const accountKey = await ensureAccountKey(ctx.sql, ctx.secrets, driver.authority, newPrivateKey);
  const publish: ChallengePublisher = {
    http: (token, text) => publishChallenge(ctx.sql, row.id, token, text),
    dns: (name, value) => publishInZone(domain, name, value, ctx),
  };
  const made = await driver.issue({ hostname: row.id, accountKey }, publish, ctx);
  const valid = {
    issuer: made.issuer,
    issued_at: made.issuedAt.toISOString(),
    expires_at: made.expiresAt.toISOString(),
  };
  await ctx.record({ ...valid, ...sealedCertificate(ctx.secrets, row.id, made), authority: driver.authority });
  return valid;
}

/** Shows the failure to the owner of the domain; `retryAfterMs` of the returned error is the back-off. */
async function showRefusal(row: CertificateRow, error: unknown, ctx: JobContext): Promise<unknown> {
  if (!(error instanceof DriverError) || ctx.signal.aborted) return error;
  await saveCertificateStatus(ctx.sql, row, certificateStatusOf(row, error.message));
  const pause = jittered(PAUSES_MS[Math.min(row.attempts, PAUSES_MS.length - 1)] as number);
  return Object.assign(new DriverError(error.reason, error.message, Math.max(pause, error.retryAfterMs ?? 0)), {
    cause: error.cause,
  });
}

/** One that is still good is served, and shown, while a new one is tried for. */
function certificateStatusOf({ issuer, expires_at }: Valid, error: string | null): Certificate {
  if (expires_at && Date.parse(expires_at) > Date.now()) return { status: 'issued', issuer, expires_at, error };
  return { status: 'failed', issuer, expires_at, error };
}

function isDue(row: CertificateRow, driver: CertificateDriver): boolean {
  return !row.chain || row.authority !== driver.authority || renewalAt(row) <= Date.now();
}

/** Time of renewal: at two thirds of the lifetime, or 30 days before its end, whichever is later. */
function renewalAt({ issued_at, expires_at }: Valid): number {
  const [from, to] = [Date.parse(issued_at ?? ''), Date.parse(expires_at ?? '')];
  return to - Math.min((to - from) / 3, RENEW_BEFORE_MS);
}

// Daily, for an authority that is another one by then; a minute, for a clock that is wrong by more than a lifetime.
function nextCheckMs(row: Valid): number {
  return Math.min(Math.max(MINUTE_MS, renewalAt(row) - Date.now()), jittered(DAY_MS));
}
