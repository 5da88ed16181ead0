// Certificates: a domain that is active gets one, and a new one in time before it ends; so do names of the platform
// itself and default host names. The row's lease is the right to order, so that there is one order at a time for a host
// name.
import type { CertificateDriver } from '../../drivers/certificates';
import { findCover, findCertifiedDomain, saveCertificateStatus, wakeCover } from '../../models/domains/certificate';
import { admitOrder, findPause, type Waiting } from '../../models/domains/certificate/orders';
import { canAnswerChallenge, findZoneProject } from '../../models/domains/domain/records';
import { jittered, settled, type Job, type JobContext, type Outcome } from '../job';
import { isChallengeDelegated } from './certificate/delegated_challenge';
import { NO_ZONE, orderCertificate } from './certificate/order';
import { askRenewal, isDue, nextCertificateCheckMs } from './certificate/renewal';
import { certificateStatusOf, NONE, purposeOf, type CertificateRow, type Holder } from './certificate/row';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const COVER_MS = 5_000;
/** Which part of the limits of an authority orders may use up: the last ones are left for what matters more. */
const SHARES = { platform: 1, domain: 0.95, application: 0.8, cdn_zone: 0.8, preview: 0.5 };

const ZONE_LOST =
  'The certificate is renewed over DNS, but neither a zone above the name nor that of its challenge ' +
  '(`_acme-challenge.`) is delegated to this platform any more. Delegate it again; otherwise the names below get ' +
  'certificates of their own before this one ends.';

const PROJECT = ['domain', 'application', 'preview', 'cdn_zone']
  .map((kind) => `(select o.project_id from ${kind}s o where o.id = certificates.${kind}_id)`)
  .join(', ');

// No `states`: an order is tried for ever, in growing pauses.
export const job: Job<CertificateRow> = {
  table: 'certificates',
  project: `coalesce(${PROJECT})`,
  stepMs: 3 * MINUTE_MS,
  reconcile,
};

async function reconcile(row: CertificateRow, ctx: JobContext): Promise<Outcome> {
  const domain = row.domain_id === null ? null : await findCertifiedDomain(ctx.sql, row.domain_id);
  // Its row goes, and this one with it.
  if (!domain && row.domain_id !== null) return settled();
  const { certificates: driver } = ctx.drivers;
  if (!driver) return showAndSettle(row, ctx, row.chain ? null : NONE, HOUR_MS);
  if (ctx.drivers.operatorCertificate?.of(row.id) && purposeOf(row) !== 'domain') return settleCovered(row, ctx);
  const holder: Holder = { domain, ...(domain ? NO_PROOF : await proofOfWildcard(row.id, row, ctx)) };
  const renewal = await askRenewal(row, driver, ctx);
  if (!isDue({ ...row, renewal }, driver)) {
    await showAndSettle(row, ctx, null, null);
    return settled({ renewal }, nextCertificateCheckMs({ ...row, renewal }));
  }
  // Without its records the authority would refuse, and count it. A domain that becomes active again makes this due.
  if (domain && (domain.status !== 'active' || domain.missing_since)) return settled({}, jittered(10 * MINUTE_MS));
  const covered = domain ? null : await waitForCover(row, holder, ctx);
  if (covered) return covered;
  if (domain?.type === 'wildcard' && !(await canAnswerChallenge(ctx.sql, domain, row.id)))
    return hold(row, ctx, { reason: NO_ZONE, isWaiting: false }, jittered(10 * MINUTE_MS));
  const waiting = await admit(row, driver, ctx);
  if (waiting) return hold(row, ctx, { ...waiting, isWaiting: true }, jittered(waiting.waitMs + MINUTE_MS));
  return orderCertificate(row, holder, driver, ctx);
}

const NONE_YET = { chain: null };
const NO_PROOF = { zoneProject: null, isDelegated: false };

/** How the platform's own wildcard is proven, where it can be: while the parent zone is silent, as before. */
async function proofOfWildcard(
  id: string,
  { chain }: Pick<CertificateRow, 'chain'>,
  ctx: JobContext,
): Promise<Omit<Holder, 'domain'>> {
  if (!id.startsWith('*.')) return NO_PROOF;
  const zoneProject = await findZoneProject(ctx.sql, id);
  if (zoneProject !== null) return { zoneProject, isDelegated: false };
  return { zoneProject, isDelegated: (await isChallengeDelegated(id, ctx)) ?? chain !== null };
}

async function showAndSettle(
  row: CertificateRow,
  ctx: JobContext,
  shown: typeof NONE | null,
  nextMs: number | null,
): Promise<Outcome> {
  await saveCertificateStatus(ctx.sql, row, shown ?? certificateStatusOf(row, null), null);
  return settled({}, nextMs);
}

async function hold(
  row: CertificateRow,
  ctx: JobContext,
  obstacle: { reason: string; isWaiting: boolean },
  nextMs: number,
): Promise<Outcome> {
  await saveCertificateStatus(ctx.sql, row, certificateStatusOf(row, obstacle), obstacle);
  return settled({}, nextMs);
}

/** Served with another certificate, so this one is not renewed any more, and must not be served when it is over. */
async function settleCovered(row: CertificateRow, ctx: JobContext): Promise<Outcome> {
  await saveCertificateStatus(ctx.sql, row, NONE, null);
  const none = { authority: null, chain: null, key: null, issuer: null, issued_at: null, expires_at: null };
  return settled(row.chain === null ? {} : { ...none, renewal: null }, jittered(6 * HOUR_MS));
}

/**
 * A wildcard of the platform is enough for the names below it: they wait until it is there, or until it has failed,
 * and then get one each. null: an order is needed.
 */
async function waitForCover(row: CertificateRow, holder: Holder, ctx: JobContext): Promise<Outcome | null> {
  const isProvable = holder.isDelegated || holder.zoneProject !== null;
  if (row.id.startsWith('*.')) return isProvable ? null : waitForZone(row, ctx);
  const cover = await findCover(ctx.sql, row.id);
  if (!cover) return null;
  if (cover.is_good) return settleCovered(row, ctx);
  if (!cover.is_open || !isStillGood(row)) return null;
  const { zoneProject, isDelegated } = await proofOfWildcard(row.id.replace(/^[^.]+/, '*'), NONE_YET, ctx);
  if (zoneProject === null && !isDelegated) return null;
  await wakeCover(ctx.sql, row.id);
  return settled({}, COVER_MS);
}

/** Nothing is missing where there has never been a zone: names below the wildcard have certificates of their own. */
function waitForZone(row: CertificateRow, ctx: JobContext): Promise<Outcome> {
  const nextMs = jittered(10 * MINUTE_MS);
  if (row.chain === null) return showAndSettle(row, ctx, NONE, nextMs);
  return hold(row, ctx, { reason: ZONE_LOST, isWaiting: false }, nextMs);
}

/** Also where there is none yet: a moment without is no gap. */
function isStillGood({ expires_at }: CertificateRow): boolean {
  return expires_at === null || Date.parse(expires_at) > Date.now() + HOUR_MS;
}

/** What a killed attempt has left was counted already. */
async function admit(row: CertificateRow, driver: CertificateDriver, ctx: JobContext): Promise<Waiting | null> {
  const { authority, limits } = driver;
  const pause = await findPause(ctx.sql, authority);
  if (pause || row.unfinished !== null) return pause;
  const isRenewal = row.chain !== null && row.authority === authority;
  const isAnnounced = isRenewal && Boolean(row.renewal?.start);
  const purpose = purposeOf(row);
  const order = { authority, hostname: row.id, isRenewal, isAnnounced, share: SHARES[purpose] };
  const isDefaultName = purpose !== 'domain' && purpose !== 'platform';
  return admitOrder(ctx.sql, { ...order, isDefaultName }, limits);
}
