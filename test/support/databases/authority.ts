// A certificate authority of a test: certificates of any name and time, good and bad.
import { webcrypto } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import * as x509 from '@peculiar/x509';

x509.cryptoProvider.set(webcrypto as never);

export interface Leaf {
  cert: string;
  key: string;
}

interface Days {
  from: number;
  until: number;
}

export interface Authority {
  pem: string;
  /** Writes the root into a file, for OUTBOUND_CA_FILE. */
  write(path: string): string;
  /** A certificate of these names (or addresses), from and until days from now. @param subject instead of a CN */
  issue(names: readonly string[], days?: Days, subject?: string): Promise<Leaf>;
  /** An authority under this one. */
  intermediate(name: string, days: Days): Promise<Authority>;
  /** Another certificate for the name and the key of another authority. */
  crossSign(other: Authority, days: Days): Promise<string>;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const DAY_MS = 86_400_000;
const keysOf = new WeakMap<Authority, webcrypto.CryptoKeyPair>();

export async function makeAuthority(name = 'Test root'): Promise<Authority> {
  const keys = await newKeys();
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    ...{ serialNumber: '01', name: `CN=${name}`, keys, signingAlgorithm: ALGORITHM },
    ...validity({ from: -1, until: 3650 }),
    extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
  });
  return authorityOf(root, keys);
}

function authorityOf(own: x509.X509Certificate, keys: webcrypto.CryptoKeyPair): Authority {
  let serial = 1;
  const sign = async (
    subject: string,
    publicKey: webcrypto.CryptoKey,
    days: Days,
    extension: x509.Extension,
  ): Promise<x509.X509Certificate> =>
    x509.X509CertificateGenerator.create({
      serialNumber: (serial += 1).toString(16).padStart(4, '0'),
      ...{ subject, issuer: own.subject, publicKey, signingKey: keys.privateKey, signingAlgorithm: ALGORITHM },
      ...validity(days),
      extensions: [extension],
    });
  const authority: Authority = {
    pem: own.toString('pem'),
    write(path) {
      writeFileSync(path, own.toString('pem'));
      return path;
    },
    async issue(names, days = { from: -1, until: 30 }, subject = `CN=${names[0]}`) {
      const leaf = await newKeys();
      const alternatives = names.map((value) => ({
        ...{ type: /^[\d.]+$/.test(value) ? ('ip' as const) : ('dns' as const), value },
      }));
      const made = await sign(subject, leaf.publicKey, days, new x509.SubjectAlternativeNameExtension(alternatives));
      const exported = await webcrypto.subtle.exportKey('pkcs8', leaf.privateKey);
      return { cert: made.toString('pem'), key: x509.PemConverter.encode(exported, 'PRIVATE KEY') };
    },
    async intermediate(name, days) {
      const below = await newKeys();
      const extension = new x509.BasicConstraintsExtension(true, undefined, true);
      return authorityOf(await sign(`CN=${name}`, below.publicKey, days, extension), below);
    },
    async crossSign(other, days) {
      const { subject } = new x509.X509Certificate(other.pem);
      const extension = new x509.BasicConstraintsExtension(true, undefined, true);
      return (await sign(subject, keysOf.get(other)!.publicKey, days, extension)).toString('pem');
    },
  };
  keysOf.set(authority, keys);
  return authority;
}

function validity({ from, until }: Days): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(Date.now() + from * DAY_MS), notAfter: new Date(Date.now() + until * DAY_MS) };
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return (await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair;
}
