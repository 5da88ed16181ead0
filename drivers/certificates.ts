// Certificates of host names, from an authority that checks that the name leads here.
import type { DriverContext } from '../core/driver';

export interface CertificateRequest {
  /** A wildcard is validated over DNS, other names over HTTP (RFC 8555 section 8.3 and 8.4). */
  hostname: string;
  /** Private key of the account, PEM. It identifies the account. */
  accountKey: string;
  /** Chain of the certificate that the new one replaces; null where it is the first, or of another authority. */
  replaces: string | null;
  /** What an attempt that was killed has left: it is continued, as long as the authority still knows it. */
  unfinished: UnfinishedOrder | null;
}

/** An order at the authority, and the key that its certificate is for. */
export interface UnfinishedOrder {
  url: string;
  /** PEM (PKCS #8). */
  key: string;
}

export interface IssuedCertificate {
  /** PEM, leaf first. */
  chain: string;
  /** PEM (PKCS #8), generated for this certificate. */
  key: string;
  /** Display name of the issuer: "Example Trust R3". */
  issuer: string;
  issuedAt: Date;
  expiresAt: Date;
}

/** What an order needs meanwhile. Each call returns once its effect is visible, or stored. */
export interface ChallengePublisher {
  /** Serves the text at http://<hostname>/.well-known/acme-challenge/<token> (RFC 8555 section 8.3). */
  http(token: string, text: string): Promise<void>;
  /** Publishes a TXT record (section 8.4). */
  dns(name: string, value: string): Promise<void>;
  /** Stores what a later attempt continues, should this one be killed. */
  order(order: UnfinishedOrder): Promise<void>;
}

/** When the authority would like a certificate to be renewed (RFC 9773 section 4.2). */
export interface RenewalWindow {
  start: Date;
  end: Date;
  /** When to ask again. */
  retryAfterMs: number;
}

/** What an authority grants an account. Renewals that it has been told of (`replaces`) count towards none of it. */
export interface AuthorityLimits {
  ordersPer3Hours: number;
  /** Per registered domain. */
  certificatesPerWeek: number;
  /** Per host name. */
  duplicatesPerWeek: number;
  failuresPerHour: number;
}

export interface CertificateDriver {
  /** Address of the authority. A certificate of another authority is replaced. */
  readonly authority: string;
  /** null: no limits are known beforehand, only those that its answers tell of. */
  readonly limits: AuthorityLimits | null;

  /**
   * Issues a certificate, in up to two minutes. Throws DriverError with a message for the owner of the name:
   * `transient` when the authority is unreachable, busy or rate limited (`retryAfterMs`), else `invalid`.
   */
  issue(request: CertificateRequest, publish: ChallengePublisher, ctx: DriverContext): Promise<IssuedCertificate>;

  /**
   * When to renew. @returns null where the authority gives no such information
   * @throws DriverError transient, with `retryAfterMs` where the authority asked to wait
   */
  renewalWindow(chain: string, ctx: DriverContext): Promise<RenewalWindow | null>;

  /** Asks the authority for something that changes nothing. @throws DriverError where it does not answer */
  probe(ctx: DriverContext): Promise<void>;

  /** What to do where the clock here and that of the authority differ by more than a minute; else ''. */
  clockAdvice(): string;
}
