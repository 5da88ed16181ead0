// The order of a certificate, the challenges that it needs, and what becomes of a failure.
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError } from '../../../core/driver';
import type {
  CertificateDriver,
  ChallengePublisher,
  IssuedCertificate,
  UnfinishedOrder,
} from '../../../drivers/certificates';
import { AccountClosed, AuthorityBusy } from '../../../drivers/certificates/failures';
import { newPrivateKey } from '../../../drivers/certificates/private_key';
import { sealedColumns } from '../../../models/base/sealed_columns';
import {
  clearChallenges,
  ensureAccountKey,
  publishChallenge,
  replaceAccountKey,
  saveCertificateStatus,
  sealedCertificate,
} from '../../../models/domains/certificate';
import { endOrder, pauseOrders } from '../../../models/domains/certificate/orders';
import { isDnsChallengeServed, publishDnsChallenge, removeDnsChallenge } from '../../../models/domains/domain/records';
import { jittered, settled, type JobContext, type Outcome } from '../../job';
import { publishDelegatedChallenge } from './delegated_challenge';
import { nextCertificateCheckMs } from './renewal';
import { certificateStatusOf, NONE, type CertificateRow, type Holder } from './row';

const MINUTE_MS = 60_000;
/** Let's Encrypt bears five failures of a name in an hour; these are four. */
const PAUSES_MS = [1, 4, 16, 64, 256, 360].map((minutes) => minutes * MINUTE_MS);
const SERVED_WITHIN_MS = 30_000;
const SERVED_POLL_MS = 100;
/** Between an answer that brought a certificate and the first question about its renewal. */
const ASK_MS = 5_000;

export const NO_ZONE =
  'A certificate for a wildcard needs a DNS challenge: the project has to hold the DNS zone of the name on this ' +
  'platform. Create the zone and delegate it, or add the host names that you need one by one.';

const CLOSED =
  'The certificate authority has closed the account of the platform, which opens another one and tries again.';

export async function orderCertificate(
  row: CertificateRow,
  holder: Holder,
  driver: CertificateDriver,
  ctx: JobContext,
): Promise<Outcome> {
  if (holder.domain?.certificate.status === 'none')
    await saveCertificateStatus(ctx.sql, row, { ...NONE, status: 'pending' }, null);
  await removeChallenges(row, ctx);
  try {
    const issued = await obtain(row, holder, driver, ctx);
    await endOrder(ctx.sql, row.id, 'issued');
    await saveCertificateStatus(ctx.sql, row, certificateStatusOf(issued, null), null);
    ctx.log.info({ issuer: issued.issuer, expires_at: issued.expires_at }, 'A certificate was issued.');
    // Its times are those of the authority: renewals would be late.
    if (driver.clockAdvice()) ctx.log.warn(driver.clockAdvice());
    return settled({}, Math.min(ASK_MS, nextCertificateCheckMs({ ...issued, renewal: null })));
  } catch (error) {
    throw await noteFailure(row, error, driver, ctx);
  } finally {
    await removeChallenges(row, ctx);
  }
}

/** The owner of challenges in zones: the domain, or the row of a wildcard of the platform. */
function challengeOwnerOf({ id, domain_id }: CertificateRow): string {
  return domain_id ?? id;
}

async function removeChallenges(row: CertificateRow, ctx: JobContext): Promise<void> {
  await clearChallenges(ctx.sql, row.id);
  if (row.domain_id === null && !row.id.startsWith('*.')) return;
  await ctx.sql.transaction((sql) => removeDnsChallenge(sql, challengeOwnerOf(row)));
}

/** Resolves when the name server has the record. @throws DriverError invalid if the platform cannot create it */
async function publishInZone(
  row: CertificateRow,
  { domain, zoneProject, isDelegated }: Holder,
  challenge: { name: string; value: string },
  ctx: JobContext,
): Promise<void> {
  if (isDelegated) return publishDelegatedChallenge(row.id, challenge, ctx);
  const id = challengeOwnerOf(row);
  const own = zoneProject === null ? null : { id, project_id: zoneProject, dns: 'automatic' as const };
  const owner = domain ?? own;
  const made = owner && (await ctx.sql.transaction((sql) => publishDnsChallenge(sql, owner, challenge)));
  if (!made) throw new DriverError('invalid', NO_ZONE);
  if (made.conflicts.length) throw new DriverError('invalid', made.conflicts.join(' '));
  const end = performance.now() + SERVED_WITHIN_MS;
  while (!(await isDnsChallengeServed(ctx.sql, id))) {
    if (performance.now() > end)
      throw new DriverError('transient', 'The name server does not have the DNS challenge yet.');
    await sleep(SERVED_POLL_MS, undefined, { signal: ctx.signal });
  }
}

interface Issued {
  issuer: string;
  issued_at: string;
  expires_at: string;
}

async function obtain(
  row: CertificateRow,
  holder: Holder,
  driver: CertificateDriver,
  ctx: JobContext,
): Promise<Issued> {
  const { authority } = driver;
  const accountKey = await ensureAccountKey(ctx.sql, ctx.secrets, authority, newPrivateKey);
  const place = sealedColumns.unfinishedOrder.contextOf(row.id);
  const publish: ChallengePublisher = {
    http: (token, text) => publishChallenge(ctx.sql, row.id, token, text),
    dns: (name, value) => publishInZone(row, holder, { name, value }, ctx),
    order: (order) => ctx.record({ unfinished: ctx.secrets.seal(JSON.stringify({ ...order, authority }), place) }),
  };
  const replaces = row.authority === authority ? row.chain : null;
  const request = { hostname: row.id, accountKey, replaces, unfinished: unfinishedOf(row, authority, ctx) };
  const made = await driver.issue(request, publish, ctx).catch(async (error: unknown) => {
    if (error instanceof AccountClosed) {
      ctx.log.warn({ authority }, 'the account was closed by the authority; another one is opened');
      const keys = { old: accountKey, next: await newPrivateKey() };
      await replaceAccountKey(ctx.sql, ctx.secrets, authority, keys);
      await ctx.record({ unfinished: null });
      throw new DriverError('transient', CLOSED);
    }
    throw error;
  });
  const valid = validityOf(made);
  const sealed = sealedCertificate(ctx.secrets, row.id, made);
  await ctx.record({ ...valid, ...sealed, authority, unfinished: null, renewal: null });
  return valid;
}

function validityOf({ issuer, issuedAt, expiresAt }: IssuedCertificate): Issued {
  return { issuer, issued_at: issuedAt.toISOString(), expires_at: expiresAt.toISOString() };
}

function unfinishedOf({ id, unfinished }: CertificateRow, authority: string, ctx: JobContext): UnfinishedOrder | null {
  if (unfinished === null) return null;
  const text = ctx.secrets.open(unfinished, sealedColumns.unfinishedOrder.contextOf(id));
  const order = JSON.parse(text) as UnfinishedOrder & { authority: string };
  return order.authority === authority ? order : null;
}

/** Shows the failure to the owner of the name; `retryAfterMs` of the returned error is the back-off. */
async function noteFailure(
  row: CertificateRow,
  error: unknown,
  driver: CertificateDriver,
  ctx: JobContext,
): Promise<unknown> {
  if (!(error instanceof DriverError) || ctx.signal.aborted) return error;
  // The authority has judged: the order is over. What did not come so far is continued.
  if (error.reason !== 'transient') await endOrder(ctx.sql, row.id, 'failed');
  if (error.reason !== 'transient') await ctx.record({ unfinished: null });
  if (error instanceof AuthorityBusy)
    await pauseOrders(ctx.sql, driver.authority, error.retryAfterMs ?? MINUTE_MS, error.message);
  const obstacle = { reason: error.message, isWaiting: false };
  await saveCertificateStatus(ctx.sql, row, certificateStatusOf(row, obstacle), obstacle);
  const pause = jittered(PAUSES_MS[Math.min(row.attempts, PAUSES_MS.length - 1)] as number);
  return Object.assign(new DriverError(error.reason, error.message, Math.max(pause, error.retryAfterMs ?? 0)), {
    cause: error.cause,
  });
}
