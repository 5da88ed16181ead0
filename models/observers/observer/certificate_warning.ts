// Warnings about certificates of targets that expire soon: once per certificate, and at most once a day, since servers
// behind one name may have several. The check itself still passes and counts as passed.
import type { Sql } from '../../../core/context';
import type { CheckOutcome } from '../../../core/protocols/checks';
import { queueCertificateMessage } from '../notification/outbox';
import type { StoredUptime } from './fields';
import { observerOf, type Alerting } from './incident_moves';

/** Of the last warning. Times in ISO 8601. */
interface Warned {
  /** When the certificate of the warning expires. */
  warned_certificate: string | null;
  certificate_warned_at: string | null;
}

export type Watching = Omit<Alerting, 'uptime'> &
  Warned & { uptime: Pick<StoredUptime, 'target' | 'certificate_expiry_days'> | null };

const DAY_MS = 86_400_000;

/** Of the certificate that a check has seen, if it has seen one. */
export async function warnOfCertificate(
  sql: Sql,
  observer: Watching,
  {
    certificate_expires_at: expires_at,
    certificate_authority: authority,
  }: Pick<CheckOutcome, 'certificate_expires_at' | 'certificate_authority'>,
  checkedAt: Date,
): Promise<void> {
  if (expires_at === null || !isDue(observer, expires_at, checkedAt)) return;
  const days_left = Math.floor((Date.parse(expires_at) - checkedAt.getTime()) / DAY_MS);
  await queueCertificateMessage(sql, observer, {
    observer: observerOf(observer),
    certificate: { expires_at, days_left, authority },
  });
  observer.warned_certificate = expires_at;
  observer.certificate_warned_at = checkedAt.toISOString();
}

function isDue({ uptime, warned_certificate, certificate_warned_at }: Watching, at: string, checkedAt: Date): boolean {
  const leftMs = Date.parse(at) - checkedAt.getTime();
  // One that has expired fails the check, which is an incident; it is none where certificates are not verified.
  if (!uptime || leftMs < 0 || leftMs > uptime.certificate_expiry_days * DAY_MS) return false;
  if (warned_certificate !== null && Date.parse(warned_certificate) === Date.parse(at)) return false;
  return certificate_warned_at === null || checkedAt.getTime() - Date.parse(certificate_warned_at) >= DAY_MS;
}
