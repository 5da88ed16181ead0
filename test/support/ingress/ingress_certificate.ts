// Certificates for the ingress, signed by themselves.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Certificate } from '../../../engines/ingress/ingress';

export function makeCertificate(...names: [string, ...string[]]): Certificate {
  const folder = mkdtempSync(path.join(tmpdir(), 'ingress-tls-'));
  const [key, chain] = [path.join(folder, 'key.pem'), path.join(folder, 'cert.pem')];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const subject = ['-subj', `/CN=${names[0]}`, '-addext', `subjectAltName=${names.map((one) => `DNS:${one}`).join()}`];
  execFileSync('openssl', ['req', '-x509', ...kind, ...subject, '-keyout', key, '-out', chain], { stdio: 'ignore' });
  const made = { chain: readFileSync(chain, 'utf8'), key: readFileSync(key, 'utf8') };
  rmSync(folder, { recursive: true });
  return made;
}
