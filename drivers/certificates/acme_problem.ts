// Converts errors of an authority to messages for the owner of a host name.
import { DriverError } from '../../core/driver';
import { AuthorityBusy } from './failures';

/** A problem document of an authority (RFC 8555 section 6.7). */
export interface AcmeProblem {
  type?: string;
  detail?: string;
  /** One per affected name. */
  subproblems?: AcmeProblem[];
}

/** What an authority refused, and why: the last part of the type of its problem. */
export class AcmeRefusal extends DriverError {
  constructor(
    readonly kind: string,
    ...given: ConstructorParameters<typeof DriverError>
  ) {
    super(...given);
  }
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

const advice: Record<string, string> = {
  dns: 'Create A or AAAA records of the host name that lead to the platform.',
  connection: 'Let port 80 through to the ingress of the platform.',
  unauthorized: 'Let the DNS records of the host name lead to the platform alone.',
  incorrectResponse: 'Let the DNS records of the host name lead to the platform alone.',
  caa: 'Change the record, or add one that allows the authority.',
};

/** A literal address at the start of what Let's Encrypt says, or in a message of Go. */
const IPV6 = /(?:^|[\s[])([0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7})(?=[\]:\s]|$)/i;

/**
 * The error for the owner of the name.
 * @param retryAfterMs requested by the authority; null where it requested no delay
 */
export function toRefusal(problem: AcmeProblem, retryAfterMs: number | null): DriverError {
  const kind = (problem.type ?? '').replace(PREFIX, '');
  const detail = detailOf(problem);
  if (kind === 'rateLimited') return toBusy(detail, retryAfterMs ?? BUSY_MS);
  const meaning = meanings[kind] ?? 'The certificate authority refused';
  const byIpv6 = ADDRESSED.has(kind) && IPV6.test(detail) ? IPV6_ADVICE : null;
  const message = [sentence(meaning, detail), byIpv6 ?? advice[kind]].filter(Boolean).join(' ');
  return new AcmeRefusal(kind, 'invalid', message, retryAfterMs ?? undefined);
}

/**
 * Limits are those of a name, of a domain, or of the account; only the words tell. Those of the name itself do not: a
 * customer chooses it, and would hold up the certificates of all others.
 */
function toBusy(detail: string, retryAfterMs: number): DriverError {
  const message = sentence('The certificate authority accepts no more requests at the moment', detail);
  const Busy = OF_ACCOUNT.test(detail.replace(DOTTED, ' ')) ? AuthorityBusy : DriverError;
  return new Busy('transient', message, retryAfterMs);
}

const OF_ACCOUNT = /new orders|this account|registrations|too many requests|busy/i;
/** Host names, and addresses of manuals. */
const DOTTED = /\S*\.\S+/g;
const ADDRESSED = new Set(['connection', 'unauthorized', 'incorrectResponse']);
const IPV6_ADVICE = 'It came by IPv6: remove the AAAA record of the host name, or let it lead to the platform too.';

/** The certificate of the authority is not valid at the time that it is here. */
export function toClockError(what: string): DriverError {
  return new DriverError(
    'transient',
    `The certificate of the certificate authority itself is not valid (${what}). If the clock of this machine is ` +
      `wrong, set it: it says ${new Date().toISOString().slice(0, 16)} UTC.`,
  );
}

/** What to add where the clocks differ so much that times of certificates are wrong; else ''. */
export function clockAdvice(aheadMs: number | null): string {
  if (aheadMs === null || Math.abs(aheadMs) < CLOCK_OFF_MS) return '';
  const minutes = Math.round(Math.abs(aheadMs) / 60_000);
  const way = aheadMs > 0 ? 'ahead of' : 'behind';
  return (
    `The clock of this machine is ${minutes} min ${way} that of the certificate authority. Set it, for example ` +
    'with chrony.'
  );
}

const CLOCK_OFF_MS = 60_000;

/** The authority is unreachable or has an internal error. @param what a status or an error code */
export function toOutage(what: string, retryAfterMs: number | null): DriverError {
  const message = `The certificate authority is not available (${what}). The platform tries again.`;
  return retryAfterMs === null
    ? new DriverError('transient', message)
    : new AuthorityBusy('transient', message, retryAfterMs);
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
