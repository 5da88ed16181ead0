// A certificate authority of a test: certificates of any name and time, good and bad.
import { webcrypto } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import * as x509 from '@peculiar/x509';

x509.cryptoProvider.set(webcrypto as never);

export interface Leaf {
  cert: string;
  key: string;
}

export interface Authority {
  pem: string;
  /** Writes the root into a file, for OUTBOUND_CA_FILE. */
  write(path: string): string;
  /** A certificate of these names (or addresses), from and until days from now. @param subject instead of a CN */
  issue(names: readonly string[], days?: { from: number; until: number }, subject?: string): Promise<Leaf>;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const DAY_MS = 86_400_000;

export async function makeAuthority(): Promise<Authority> {
  const keys = await newKeys();
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name: 'CN=Test root',
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + 3650 * DAY_MS),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [new x509.BasicConstraintsExtension(true, 1, true)],
  });
  let serial = 1;
  return {
    pem: root.toString('pem'),
    write(path) {
      writeFileSync(path, root.toString('pem'));
      return path;
    },
    async issue(names, { from, until } = { from: -1, until: 30 }, subject = `CN=${names[0]}`) {
      const own = await newKeys();
      const made = await x509.X509CertificateGenerator.create({
        serialNumber: (serial += 1).toString(16).padStart(4, '0'),
        subject,
        issuer: root.subject,
        notBefore: new Date(Date.now() + from * DAY_MS),
        notAfter: new Date(Date.now() + until * DAY_MS),
        publicKey: own.publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm: ALGORITHM,
        extensions: [
          new x509.SubjectAlternativeNameExtension(
            names.map((value) => ({ type: /^[\d.]+$/.test(value) ? ('ip' as const) : ('dns' as const), value })),
          ),
        ],
      });
      const exported = await webcrypto.subtle.exportKey('pkcs8', own.privateKey);
      return { cert: made.toString('pem'), key: x509.PemConverter.encode(exported, 'PRIVATE KEY') };
    },
  };
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return (await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair;
}
