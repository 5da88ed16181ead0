// The row of a certificate, as its job reads it.
import type { Certificate } from '../../../schema/types';
import type { CertifiedDomain } from '../../../models/domains/certificate';
import type { LoopRow } from '../../job';

export interface CertificateRow extends LoopRow {
  domain_id: string | null;
  application_id: string | null;
  preview_id: string | null;
  cdn_zone_id: string | null;
  authority: string | null;
  chain: string | null;
  issuer: string | null;
  issued_at: string | null;
  expires_at: string | null;
  /** Sealed: the order of an attempt that was killed. */
  unfinished: string | null;
  renewal: Renewal | null;
}

/** What the authority says about the renewal (RFC 9773). Times are RFC 3339. */
export interface Renewal {
  /** The window that it suggests; absent: it suggests none. */
  start?: string;
  end?: string;
  /** A moment in the window, chosen once. */
  at?: string;
  /** When to ask again. */
  ask_at: string;
}

/** Whose name it is, as far as challenges are concerned. */
export interface Holder {
  /** null: it is a name of the platform, or a default host name. */
  domain: CertifiedDomain | null;
  /** The project whose zone answers for a wildcard of the platform. */
  zoneProject: string | null;
  /** No zone does, but the name of the challenge is delegated to our name server. */
  isDelegated: boolean;
}

export type Valid = Pick<CertificateRow, 'issuer' | 'issued_at' | 'expires_at'>;

export const NONE: Certificate = { status: 'none', issuer: null, expires_at: null, error: null };

type Purpose = 'domain' | 'application' | 'preview' | 'cdn_zone' | 'platform';

export function purposeOf(row: CertificateRow): Purpose {
  if (row.domain_id !== null) return 'domain';
  if (row.application_id !== null) return 'application';
  if (row.preview_id !== null) return 'preview';
  return row.cdn_zone_id === null ? 'platform' : 'cdn_zone';
}

/** One that is still good is served, and shown, while a new one is tried for. */
export function certificateStatusOf(
  { issuer, expires_at }: Valid,
  obstacle: { reason: string; isWaiting: boolean } | null,
): Certificate {
  const error = obstacle?.reason ?? null;
  if (expires_at && Date.parse(expires_at) > Date.now()) return { status: 'issued', issuer, expires_at, error };
  return { status: obstacle?.isWaiting ? 'pending' : 'failed', issuer, expires_at, error };
}
