// Database servers in a runtime of their own, with a certificate that clients verify.
import { X509Certificate } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DatabaseServer, EngineId } from '../../../drivers/database';
import { DriverError, driverContext } from '../../../core/driver';
import { openTrial, until, type Trial } from '../builds/runtime';
import type { Servers, Seen } from './hosted_servers';

/** An installation of MariaDB takes a second, and twenty where six others run beside it. */
export const withinMs = 90_000;
export const ctx = () => driverContext(withinMs);

/** Self-signed, for localhost and 127.0.0.1. */
export function newCertificate(): { certificate: string; key: string } {
  const directory = mkdtempSync('/tmp/platform-certificate-');
  const [key, certificate] = [path.join(directory, 'key.pem'), path.join(directory, 'certificate.pem')];
  const made = spawnSync('openssl', [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-keyout',
    key,
    '-out',
    certificate,
    '-days',
    '2',
    '-subj',
    '/CN=localhost',
    '-addext',
    'subjectAltName=DNS:localhost,IP:127.0.0.1',
  ]);
  if (made.status !== 0) throw new Error(String(made.stderr));
  const texts = { certificate: readFileSync(certificate, 'utf8'), key: readFileSync(key, 'utf8') };
  rmSync(directory, { recursive: true });
  return texts;
}

export function fingerprintOf(certificate: string): string {
  return new X509Certificate(certificate).fingerprint256;
}

/** A spec with small limits. */
export function specOf(
  engine: EngineId,
  version: string,
  port: number,
  more: Partial<DatabaseServer> = {},
): DatabaseServer {
  return {
    // Units of two runtimes on one host must not have the same name.
    id: `db_${engine}_${port}`,
    engine,
    version,
    tenant: 11,
    port,
    size: { memory_mb: 256, cpus: 1, max_connections: 20 },
    storage_gb: 1,
    running: true,
    database_name: engine === 'mariadb' ? 'app' : null,
    admin_password: `administrators-word-${process.pid}`,
    users: [{ username: 'app', password: 'first-word', access: 'admin' }],
    allowed_sources: [],
    tls: newCertificate(),
    replica_of: null,
    archive: false,
    ...more,
  };
}

/** Calls ensure as often as the loop would, until the server is as wanted. */
export async function settle(driver: Servers, spec: DatabaseServer): Promise<Seen> {
  for (const end = Date.now() + withinMs; ;) {
    const { requeueMs } = await driver.ensure(spec, ctx());
    const seen = await driver.observe(spec, ctx());
    if (requeueMs === undefined && seen.differs === null) return seen;
    if (Date.now() > end) throw new Error(`not as wanted: ${JSON.stringify(seen)}`);
    await sleep(requeueMs ?? 100);
  }
}

/** A trial whose servers are taken away at its end. */
export async function openServerTrial(): Promise<Trial> {
  return openTrial({ sandbox: 'auto' });
}

/** Removes all servers, as the loop does: a unit that starts elsewhere may hold a copy of a mount for a moment. */
export async function removeServers(driver: Servers): Promise<void> {
  for (const id of await driver.list(ctx())) await until(() => isRemoved(driver, id), withinMs);
}

async function isRemoved(driver: Servers, id: string): Promise<boolean> {
  try {
    await driver.remove(id, ctx());
    return true;
  } catch (error) {
    if (error instanceof DriverError && error.reason === 'transient') return false;
    throw error;
  }
}
