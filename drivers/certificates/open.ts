import { readFileSync } from 'node:fs';
import { StartupError } from '../../core/startup_error';
import type { AuthorityLimits, CertificateDriver } from '../certificates';
import { acmeCertificates } from './acme';

interface CertificateOptions {
  /** Directory of the authority (RFC 8555 section 7.1.1). */
  directory: string;
  /** Where the authority writes to. */
  email: string | null;
  /** PEM file of roots to trust at the directory, besides the usual ones. */
  caFile: string | null;
  /** Default: those of the authority, where they are known. */
  limits?: AuthorityLimits | null;
}

/** https://letsencrypt.org/docs/rate-limits/. Other authorities tell of theirs as they refuse. */
const LETS_ENCRYPT: AuthorityLimits = {
  ordersPer3Hours: 300,
  certificatesPerWeek: 50,
  duplicatesPerWeek: 5,
  failuresPerHour: 5,
};

/** Asks nobody yet. @throws StartupError for a file that can't be read */
export function openCertificates({
  directory,
  email,
  caFile,
  limits = limitsOf(directory),
}: CertificateOptions): CertificateDriver {
  return acmeCertificates({ directory, email, roots: caFile === null ? null : rootsIn(caFile), limits });
}

function limitsOf(directory: string): AuthorityLimits | null {
  return new URL(directory).hostname.endsWith('.letsencrypt.org') ? LETS_ENCRYPT : null;
}

function rootsIn(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new StartupError(`ACME_CA_FILE cannot be read: ${(error as NodeJS.ErrnoException).code} ${file}`);
  }
}
