// Deploy keys: Ed25519 in the format of OpenSSH (PROTOCOL.key of its sources), made here and used here only.
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto';

interface DeployKeyPair {
  /** `ssh-ed25519 AAAA… comment`. */
  public_key: string;
  /** `SHA256:…`, as ssh-keygen shows it. */
  fingerprint: string;
  /** PEM; never leaves the platform. */
  private_key: string;
}

const TYPE = 'ssh-ed25519';
const MAGIC = Buffer.from('openssh-key-v1\0');
const BLOCK = 8;
const LINE = 70;

export function makeDeployKey(comment: string): DeployKeyPair {
  const { privateKey } = generateKeyPairSync('ed25519');
  const { x = '', d = '' } = privateKey.export({ format: 'jwk' });
  const [point, seed] = [Buffer.from(x, 'base64url'), Buffer.from(d, 'base64url')];
  const blob = Buffer.concat([framed(TYPE), framed(point)]);
  return {
    public_key: `${TYPE} ${blob.toString('base64')} ${comment}`,
    fingerprint: keyFingerprint(blob),
    private_key: privateKeyFile(blob, point, seed, comment),
  };
}

/** Of a public key as it stands in known_hosts and authorized_keys. */
export function keyFingerprint(blob: Buffer): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
}

/** Of a line of known_hosts: `host type key`. */
export function hostKeyFingerprint(line: string): string {
  return keyFingerprint(Buffer.from(line.split(' ')[2] ?? '', 'base64'));
}

function privateKeyFile(blob: Buffer, point: Buffer, seed: Buffer, comment: string): string {
  const check = randomBytes(4);
  const secret = Buffer.concat([
    check,
    check,
    framed(TYPE),
    framed(point),
    framed(Buffer.concat([seed, point])),
    framed(comment),
  ]);
  const missing = (BLOCK - (secret.length % BLOCK)) % BLOCK;
  const padded = Buffer.concat([secret, Buffer.from(Array.from({ length: missing }, (_, index) => index + 1))]);
  // No cipher, no key derivation: the whole text is sealed by the platform.
  const header = [MAGIC, framed('none'), framed('none'), framed(''), uint32(1)];
  const text = Buffer.concat([...header, framed(blob), framed(padded)]).toString('base64');
  const lines = text.match(new RegExp(`.{1,${LINE}}`, 'g')) ?? [];
  return ['-----BEGIN OPENSSH PRIVATE KEY-----', ...lines, '-----END OPENSSH PRIVATE KEY-----', ''].join('\n');
}

function framed(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([uint32(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
