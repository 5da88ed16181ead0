// Certificates of host names, from an authority that checks that the name leads here.
import type { DriverContext } from '../core/driver';

export interface CertificateRequest {
  /** A wildcard is proven in the DNS, others over HTTP (RFC 8555 section 8.3 and 8.4). */
  hostname: string;
  /** Private key of the account, PEM. The same key is the same account. */
  accountKey: string;
}

export interface IssuedCertificate {
  /** PEM, leaf first. */
  chain: string;
  /** PEM (PKCS #8), made for this certificate alone. */
  key: string;
  /** Who signed it, for people: "Example Trust R3". */
  issuer: string;
  issuedAt: Date;
  expiresAt: Date;
}

/** Publishes what proves to an authority that a name leads here. Each returns when the answer can be seen. */
export interface ChallengePublisher {
  /** Makes GET http://<hostname>/.well-known/acme-challenge/<token> answer the text (RFC 8555 section 8.3). */
  http(token: string, text: string): Promise<void>;
  /** Makes the TXT record of a name have the value (section 8.4). */
  dns(name: string, value: string): Promise<void>;
}

export interface CertificateDriver {
  /** Address of the authority. A certificate of another one is replaced. */
  readonly authority: string;

  /**
   * A new certificate, in up to two minutes. Killed in between, it costs the authority an order that nobody fetched.
   * Throws DriverError, whose message says to the owner of the name what is wrong: `transient` when the authority is
   * away, busy or asks for patience (`retryAfterMs`), else `invalid`.
   */
  issue(request: CertificateRequest, publish: ChallengePublisher, ctx: DriverContext): Promise<IssuedCertificate>;
}
