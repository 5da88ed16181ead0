// Certificates for the ingress.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Certificate } from '../../../engines/ingress/ingress';

/** Signed by itself. */
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

/** Signed by an authority of its own, whose certificate is `ca`. */
export function makeSignedCertificate(...names: [string, ...string[]]): Certificate & { ca: string } {
  const authority = makeCertificate('Test authority');
  const folder = mkdtempSync(path.join(tmpdir(), 'ingress-tls-'));
  const file = (name: string): string => path.join(folder, name);
  writeFileSync(file('ca.pem'), authority.chain);
  writeFileSync(file('ca.key'), authority.key);
  writeFileSync(file('names'), `subjectAltName=${names.map((one) => `DNS:${one}`).join()}\n`);
  const openssl = (...words: string[]): unknown => execFileSync('openssl', words, { cwd: folder, stdio: 'ignore' });
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', ...kind, '-subj', `/CN=${names[0]}`, '-keyout', 'key.pem', '-out', 'request.pem');
  const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'names'];
  openssl('x509', '-req', '-in', 'request.pem', ...signed, '-out', 'cert.pem');
  const [chain, key] = [readFileSync(file('cert.pem'), 'utf8'), readFileSync(file('key.pem'), 'utf8')];
  rmSync(folder, { recursive: true });
  return { chain, key, ca: authority.chain };
}
