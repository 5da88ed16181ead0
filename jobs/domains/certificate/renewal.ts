// When a certificate is renewed: as its authority suggests (RFC 9773), else at two thirds of its life.
import type { CertificateDriver } from '../../../drivers/certificates';
import { DriverError } from '../../../core/driver';
import { jittered, type JobContext } from '../../job';
import type { CertificateRow, Renewal, Valid } from './row';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const RENEW_BEFORE_MS = 30 * DAY_MS;
/** A tenth before its owner is warned (models/domains/certificate/expiry_warnings.ts): not later than this. */
const LATEST_PART = 0.33;
const LATEST_MS = 1.1 * 14 * DAY_MS;
/** An authority may say of each new certificate that it is to be renewed at once: not before this, or a day. */
const EARLIEST_PART = 0.1;

/** Asks the authority if it is time to; what it has said before where it gives no answer. */
export async function askRenewal(
  row: CertificateRow,
  driver: CertificateDriver,
  ctx: JobContext,
): Promise<Renewal | null> {
  const { chain, renewal } = row;
  if (chain === null || row.authority !== driver.authority) return null;
  if (renewal && Date.parse(renewal.ask_at) > Date.now()) return renewal;
  try {
    const window = await driver.renewalWindow(chain, ctx);
    if (!window) return { ask_at: inMs(DAY_MS) };
    const [start, end] = [window.start.toISOString(), window.end.toISOString()];
    const isSame = renewal?.start === start && renewal.end === end;
    const at = isSame && renewal.at ? renewal.at : momentIn(window);
    return { start, end, at, ask_at: inMs(window.retryAfterMs) };
  } catch (error) {
    // Nothing depends on it: what it said before counts, else the life of the certificate.
    const pause = (error instanceof DriverError && error.retryAfterMs) || HOUR_MS;
    ctx.log.debug({ err: error }, 'the authority gave no renewal information');
    return { ...renewal, ask_at: inMs(pause) };
  }
}

/** Section 4.2: a uniformly random time within the window. */
function momentIn({ start, end }: { start: Date; end: Date }): string {
  const from = start.getTime();
  return new Date(from + Math.random() * (end.getTime() - from)).toISOString();
}

function inMs(ms: number): string {
  return new Date(Date.now() + ms).toISOString();
}

export function isDue(row: CertificateRow, driver: CertificateDriver): boolean {
  return !row.chain || row.authority !== driver.authority || renewalAt(row) <= Date.now();
}

/** Without a suggestion at two thirds of the lifetime, or 30 days before its end, whichever is later. */
function renewalAt({ issued_at, expires_at, renewal }: Valid & { renewal: Renewal | null }): number {
  const [from, to] = [Date.parse(issued_at ?? ''), Date.parse(expires_at ?? '')];
  if (renewal?.at) {
    const lifeMs = to - from;
    const earliest = from + Math.min(lifeMs * EARLIEST_PART, DAY_MS);
    const latest = to - Math.min(lifeMs * LATEST_PART, LATEST_MS);
    return Math.min(Math.max(Date.parse(renewal.at), earliest), latest);
  }
  return to - Math.min((to - from) / 3, RENEW_BEFORE_MS);
}

// Daily, for an authority that is another one by then; a minute, for a clock that is wrong by more than a lifetime.
export function nextCertificateCheckMs(row: Valid & { renewal: Renewal | null }): number {
  const askMs = row.renewal ? Date.parse(row.renewal.ask_at) - Date.now() : Infinity;
  return Math.min(Math.max(MINUTE_MS, Math.min(renewalAt(row) - Date.now(), askMs)), jittered(DAY_MS));
}
