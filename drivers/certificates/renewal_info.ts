// ACME Renewal Information (RFC 9773).
import { X509Certificate } from 'node:crypto';
import type * as x509Library from '@peculiar/x509';
import { DriverError } from '../../core/driver';
import type { RenewalWindow } from '../certificates';

const AUTHORITY_KEY_IDENTIFIER = '2.5.29.35';
/** Section 4.3.2 and 4.3.3: where the answer says nothing, or nothing sensible. */
const RETRY_AFTER_MS = 6 * 3_600_000;
const RETRY_MIN_MS = 60_000;
const RETRY_MAX_MS = 86_400_000;

/** The id of a certificate (section 4.1); null for one without an authority key identifier. @param chain leaf first */
export async function certificateIdOf(chain: string): Promise<string | null> {
  const { X509Certificate: Parsed } = (await import('@peculiar/x509')) as typeof x509Library;
  const leaf = new X509Certificate(chain);
  const issuer = new Parsed(leaf.raw).getExtension(AUTHORITY_KEY_IDENTIFIER) as { keyId?: string } | null;
  if (!issuer?.keyId) return null;
  const { serialNumber } = leaf;
  // As in DER: a leading bit of 1 would make it negative.
  const serial = Number.parseInt(serialNumber[0] as string, 16) >= 8 ? `00${serialNumber}` : serialNumber;
  return [issuer.keyId, serial].map((hex) => Buffer.from(hex, 'hex').toString('base64url')).join('.');
}

/** @throws DriverError transient for an answer that is no window (section 4.2) */
export function parseRenewalInfo(text: string, retryAfterMs: number | null): RenewalWindow {
  const { suggestedWindow } = parsed(text);
  const [start, end] = [new Date(suggestedWindow?.start ?? ''), new Date(suggestedWindow?.end ?? '')];
  if (!(start.getTime() < end.getTime()))
    throw new DriverError('transient', 'The certificate authority gave renewal information without a usable window.');
  return { start, end, retryAfterMs: Math.min(Math.max(retryAfterMs ?? RETRY_AFTER_MS, RETRY_MIN_MS), RETRY_MAX_MS) };
}

function parsed(text: string): { suggestedWindow?: { start?: string; end?: string } } {
  try {
    return (JSON.parse(text) as object | null) ?? {};
  } catch {
    return {};
  }
}
