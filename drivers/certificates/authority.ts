// The installation's own certificate authority, for servers that only clients of the platform connect to.
import { createPublicKey, X509Certificate, randomBytes, webcrypto, type KeyObject } from 'node:crypto';
import { isIP } from 'node:net';
import type * as x509Library from '@peculiar/x509';

/** PEM; `key` is PKCS #8. */
export interface KeyedCertificate {
  certificate: string;
  key: string;
}

const DAY_MS = 86_400_000;
const AUTHORITY_DAYS = 3650;
const SERVER_DAYS = 397;
/** Clocks of clients may be slow. */
const EARLIER_MS = 3_600_000;
/** Renewal before the last third of a certificate's lifetime. */
const RENEW_BEFORE_MS = (SERVER_DAYS * DAY_MS) / 3;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Creates an authority that signs server certificates only (RFC 5280 section 4.2.1.9). */
export async function newAuthority(name: string): Promise<KeyedCertificate> {
  const x509 = await library();
  const keys = await newKeys();
  const made = await x509.X509CertificateGenerator.createSelfSigned({
    ...lifetime(AUTHORITY_DAYS),
    name: `CN=${name}`,
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: made.toString('pem'), key: await keyText(keys) };
}

/**
 * Issues a server certificate for these host names and addresses; the chain includes the authority. @param names at
 * least one
 */
export async function issueServerCertificate(
  authority: KeyedCertificate,
  names: readonly string[],
): Promise<KeyedCertificate> {
  const x509 = await library();
  const keys = await newKeys();
  const issuer = new x509.X509Certificate(authority.certificate);
  const made = await x509.X509CertificateGenerator.create({
    ...lifetime(SERVER_DAYS),
    subject: `CN=${names[0]}`,
    issuer: issuer.subject,
    publicKey: keys.publicKey,
    signingKey: await signingKey(authority.key),
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) ? ('ip' as const) : ('dns' as const), value })),
      ),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
    ],
  });
  return { certificate: `${made.toString('pem')}\n${authority.certificate.trim()}\n`, key: await keyText(keys) };
}

/** A self-signed certificate, for servers that require keys as certificates. @param name `CN=…` */
export async function certificateFor(name: string, key: KeyObject): Promise<string> {
  const x509 = await library();
  const publicBytes = createPublicKey(key).export({ type: 'spki', format: 'der' });
  const keys = {
    privateKey: await signingKey(key.export({ type: 'pkcs8', format: 'pem' }).toString()),
    publicKey: await webcrypto.subtle.importKey('spki', publicBytes, ALGORITHM, true, ['verify']),
  };
  const made = await x509.X509CertificateGenerator.createSelfSigned({
    ...lifetime(AUTHORITY_DAYS),
    ...{ name, keys: keys as CryptoKeyPair, signingAlgorithm: ALGORITHM },
  });
  return `${made.toString('pem')}\n`;
}

/** Whether a certificate has to be replaced: it expires soon, lacks a name, or is from another authority. */
export function isOutdated(
  certificate: string,
  authority: string,
  names: readonly string[],
  now = Date.now(),
): boolean {
  const own = new X509Certificate(certificate);
  const covered = names.every((name) => (isIP(name) ? own.checkIP(name) : own.checkHost(name)) !== undefined);
  return (
    !covered || Date.parse(own.validTo) - now < RENEW_BEFORE_MS || !own.verify(new X509Certificate(authority).publicKey)
  );
}

// Imported on demand, since loading takes long.
function library(): Promise<typeof x509Library> {
  return import('@peculiar/x509');
}

function newKeys(): Promise<CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']) as Promise<CryptoKeyPair>;
}

function lifetime(days: number): { serialNumber: string; notBefore: Date; notAfter: Date } {
  const now = Date.now();
  return {
    serialNumber: `00${randomBytes(15).toString('hex')}`,
    notBefore: new Date(now - EARLIER_MS),
    notAfter: new Date(now + days * DAY_MS),
  };
}

async function keyText({ privateKey }: CryptoKeyPair): Promise<string> {
  const bytes = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', privateKey as webcrypto.CryptoKey));
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN PRIVATE KEY-----', ...lines, '-----END PRIVATE KEY-----', ''].join('\n');
}

async function signingKey(pem: string): Promise<CryptoKey> {
  const bytes = Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64');
  return (await webcrypto.subtle.importKey('pkcs8', bytes, ALGORITHM, false, ['sign'])) as CryptoKey;
}
