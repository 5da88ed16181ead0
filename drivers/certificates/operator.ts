// A certificate provided by the operator, for example for *.APPS_DOMAIN.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { StartupError } from '../../core/startup_error';

export interface OperatorCertificate {
  /** The certificate, PEM with the leaf first, if it covers the host name and is not over; else null. */
  of(hostname: string): { chain: string; key: string } | null;
  /** The same of one that is over, for names without another one. */
  lastResort(hostname: string): { chain: string; key: string } | null;
  close(): void;
}

interface Files {
  ingressCertFile: string | null;
  ingressKeyFile: string | null;
}
interface Loaded {
  chain: string;
  key: string;
  leaf: X509Certificate;
}

const CHECK_EVERY_MS = 60_000;

/**
 * Reads INGRESS_CERT_FILE and INGRESS_KEY_FILE; null where neither is set. Checks the files for changes every minute,
 * calls `changed`, and serves the new ones once they match.
 * @throws StartupError where only one is set, and for files that are unreadable or do not match
 */
export function operatorCertificate(
  { ingressCertFile: certFile, ingressKeyFile: keyFile }: Files,
  changed: () => void,
  checkEveryMs = CHECK_EVERY_MS,
): OperatorCertificate | null {
  if (certFile === null && keyFile === null) return null;
  if (certFile === null || keyFile === null)
    throw new StartupError('set both INGRESS_CERT_FILE and INGRESS_KEY_FILE, or neither');
  let loaded = load(certFile, keyFile);
  const reload = (): void => {
    try {
      loaded = load(certFile, keyFile);
      changed();
    } catch {
      // Only one file is replaced yet: the change of the other one triggers the next call.
    }
  };
  for (const file of [certFile, keyFile]) watchFile(file, { interval: checkEveryMs, persistent: false }, reload);
  const lastResort = (hostname: string): { chain: string; key: string } | null =>
    loaded.leaf.checkHost(hostname) ? { chain: loaded.chain, key: loaded.key } : null;
  return {
    of: (hostname) => (Date.parse(loaded.leaf.validTo) > Date.now() ? lastResort(hostname) : null),
    lastResort,
    close: () => [certFile, keyFile].forEach((file) => unwatchFile(file, reload)),
  };
}

function load(certFile: string, keyFile: string): Loaded {
  const [chain, key] = [read('INGRESS_CERT_FILE', certFile), read('INGRESS_KEY_FILE', keyFile)];
  const leaf = parse('INGRESS_CERT_FILE', () => new X509Certificate(chain));
  const fits = leaf.checkPrivateKey(parse('INGRESS_KEY_FILE', () => createPrivateKey(key)));
  if (!fits)
    throw new StartupError('the key in INGRESS_KEY_FILE is not that of the first certificate in INGRESS_CERT_FILE');
  return { chain, key, leaf };
}

function read(setting: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new StartupError(`${setting} cannot be read: ${(error as NodeJS.ErrnoException).code} ${file}`);
  }
}

function parse<T>(setting: string, work: () => T): T {
  try {
    return work();
  } catch {
    throw new StartupError(`${setting} is malformed: expected PEM without a passphrase`);
  }
}
