// Converts errors of an authority to messages for the owner of a host name.
import { DriverError } from '../../core/driver';

/** A problem document of an authority (RFC 8555 section 6.7). */
export interface AcmeProblem {
  type?: string;
  detail?: string;
  /** One per affected name. */
  subproblems?: AcmeProblem[];
}

const PREFIX = 'urn:ietf:params:acme:error:';
const BUSY_MS = 3_600_000;
const DETAIL_CHARACTERS = 500;

const meanings: Record<string, string> = {
  dns: 'The certificate authority found no usable DNS records of the host name',
  connection: 'The certificate authority could not reach the host name on port 80',
  unauthorized:
    'The host name does not lead to this platform: the certificate authority got the answer of another server',
  incorrectResponse:
    'The host name does not lead to this platform: the certificate authority got the answer of another server',
  caa: 'A CAA record in the DNS forbids this certificate authority to issue for the host name',
  rejectedIdentifier: 'The certificate authority issues no certificates for this host name',
  externalAccountRequired:
    'The certificate authority requires an external account binding, which the platform does not support',
  userActionRequired: 'The operator has to accept new terms of the certificate authority',
};

/**
 * The error for the owner of the name.
 * @param retryAfterMs requested by the authority; null where it requested no delay
 */
export function toRefusal(problem: AcmeProblem, retryAfterMs: number | null): DriverError {
  const kind = (problem.type ?? '').replace(PREFIX, '');
  const detail = detailOf(problem);
  if (kind === 'rateLimited')
    return new DriverError(
      'transient',
      sentence('The certificate authority accepts no more requests at the moment', detail),
      retryAfterMs ?? BUSY_MS,
    );
  return new DriverError(
    'invalid',
    sentence(meanings[kind] ?? 'The certificate authority refused', detail),
    retryAfterMs ?? undefined,
  );
}

/** The authority is unreachable or has an internal error. @param what a status or an error code */
export function toOutage(what: string, retryAfterMs: number | null): DriverError {
  return new DriverError(
    'transient',
    `The certificate authority is not available (${what}). The platform tries again.`,
    retryAfterMs ?? undefined,
  );
}

function detailOf({ detail, subproblems }: AcmeProblem): string {
  const text = subproblems?.find((one) => one.detail)?.detail ?? detail ?? '';
  return String(text)
    .replace(/\p{Cc}|\p{Surrogate}/gu, ' ')
    .slice(0, DETAIL_CHARACTERS)
    .trim();
}

function sentence(meaning: string, detail: string): string {
  if (!detail) return `${meaning}.`;
  return `${meaning}: ${detail}${/[.!?]$/.test(detail) ? '' : '.'}`;
}
