// How programs of an application verify the database servers that are attached to it. Their certificates are of the
// installation's own authority, which no client knows by itself: it lies in files that sandboxes show, and variables
// name these files to the clients that read them. What the user sets wins (docs/decisions/0031).
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { rootCertificates } from 'node:tls';
import { replaceFile } from '../../../core/files';
import type { AttachedDatabase } from '../../../models/applications/attached_database';
import type { JobContext } from '../../job';
import { databaseAuthority } from './certificate';

/** Variables, and directories that the sandbox shows. */
interface Trust {
  env: Record<string, string>;
  readable: string[];
}

const systemBundles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/**
 * Nothing without databases.
 * @param databases those whose variables the program has: an attachment of now is not in a release of before, and a
 * release of before still has one that was removed
 */
export async function databaseTrust(
  databases: readonly Pick<AttachedDatabase, 'engine'>[],
  ctx: Pick<JobContext, 'sql' | 'secrets' | 'config'>,
): Promise<Trust> {
  if (databases.length === 0) return { env: {}, readable: [] };
  const { certificate } = await databaseAuthority(ctx);
  const directory = path.join(ctx.config.runtimeDir, 'trust');
  return { env: trustVariables(databases, await writeTrustFiles(directory, certificate)), readable: [directory] };
}

interface TrustFiles {
  /** The authority of databases alone. */
  authority: string;
  /** The system's certificate authorities and the authority of databases. */
  bundle: string;
}

/** Writes files that differ: the database authority never changes, but the system's authorities are updated. */
export async function writeTrustFiles(directory: string, certificate: string): Promise<TrustFiles> {
  const files = trustFilesBelow(directory);
  const texts = await trustTexts(certificate);
  await mkdir(directory, { recursive: true, mode: 0o755 });
  await ensureFile(files.authority, texts.authority);
  await ensureFile(files.bundle, texts.bundle);
  return files;
}

export function trustFilesBelow(directory: string): TrustFiles {
  return { authority: path.posix.join(directory, 'databases.pem'), bundle: path.posix.join(directory, 'bundle.pem') };
}

/** What is in the files, for places that share none with this host. @param certificate of the database authority */
export async function trustTexts(certificate: string): Promise<TrustFiles> {
  const authority = `${certificate.trim()}\n`;
  return { authority, bundle: `${(await systemAuthorities()).trim()}\n${authority}` };
}

/**
 * NODE_EXTRA_CA_CERTS adds to the authorities that Node knows; SSL_CERT_FILE (OpenSSL, and with it Python, Ruby, Go)
 * and PGSSLROOTCERT (libpq) replace the system's authorities. With a root certificate, libpq verifies the server even
 * under `sslmode=require` (PostgreSQL, "SSL Support" of libpq). PGSSLMODE is for clients that drop the parameters of
 * the address. PGCHANNELBINDING is not among them: lib/pq of Go refuses to connect where it is set, and with `prefer`,
 * its default, a server that offers channel binding notices who takes the offer out. Clients of MariaDB read none of
 * these: their code has to use DATABASE_CA_FILE. MYSQL_ATTR_SSL_CA is the variable of Laravel's default configuration.
 */
export function trustVariables(
  databases: readonly Pick<AttachedDatabase, 'engine'>[],
  { authority, bundle }: TrustFiles,
): Record<string, string> {
  const postgresql = databases.filter(({ engine }) => engine === 'postgresql');
  return {
    NODE_EXTRA_CA_CERTS: authority,
    SSL_CERT_FILE: bundle,
    DATABASE_CA_FILE: authority,
    ...(databases.some(({ engine }) => engine === 'mariadb') && { MYSQL_ATTR_SSL_CA: authority }),
    ...(postgresql.length > 0 && { PGSSLROOTCERT: bundle, PGSSLMODE: 'require' }),
  };
}

async function systemAuthorities(): Promise<string> {
  for (const file of systemBundles) {
    const text = await readFile(file, 'utf8').catch(() => null);
    if (text !== null) return text;
  }
  return rootCertificates.join('\n');
}

// Whole or not at all: programs read it at any time.
async function ensureFile(file: string, text: string): Promise<void> {
  if ((await readFile(file, 'utf8').catch(() => null)) === text) return;
  await replaceFile(file, text, { mode: 0o644 });
}
