// Certificates of host names, from an authority that checks that the name leads here.
import { readFileSync } from 'node:fs';
import { StartupError } from '../core/startup_error';
import { acmeCertificates } from './certificates/acme';
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

interface CertificateOptions {
  /** Directory of the authority (RFC 8555 section 7.1.1). */
  directory: string;
  /** Where the authority writes to. */
  email: string | null;
  /** PEM file of roots to trust at the directory, besides the usual ones. */
  caFile: string | null;
}

/** Asks nobody yet. @throws StartupError for a file that can't be read */
export function openCertificates({ directory, email, caFile }: CertificateOptions): CertificateDriver {
  return acmeCertificates({ directory, email, roots: caFile === null ? null : rootsIn(caFile) });
}

function rootsIn(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new StartupError(`ACME_CA_FILE cannot be read: ${(error as NodeJS.ErrnoException).code} ${file}`);
  }
}
