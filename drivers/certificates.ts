// Certificates of host names, from an authority that checks that the name leads here.
import type { DriverContext } from '../core/driver';

export interface CertificateRequest {
  /** A wildcard is validated over DNS, other names over HTTP (RFC 8555 section 8.3 and 8.4). */
  hostname: string;
  /** Private key of the account, PEM. It identifies the account. */
  accountKey: string;
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

/** Publishes challenge responses. Each call returns once the response is visible. */
export interface ChallengePublisher {
  /** Serves the text at http://<hostname>/.well-known/acme-challenge/<token> (RFC 8555 section 8.3). */
  http(token: string, text: string): Promise<void>;
  /** Publishes a TXT record (section 8.4). */
  dns(name: string, value: string): Promise<void>;
}

export interface CertificateDriver {
  /** Address of the authority. A certificate of another authority is replaced. */
  readonly authority: string;

  /**
   * Issues a certificate, in up to two minutes. If it is killed, an unused order remains at the authority. Throws
   * DriverError with a message for the owner of the name: `transient` when the authority is unreachable, busy or rate
   * limited (`retryAfterMs`), else `invalid`.
   */
  issue(request: CertificateRequest, publish: ChallengePublisher, ctx: DriverContext): Promise<IssuedCertificate>;
}
