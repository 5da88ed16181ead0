// DNSSEC keys with ECDSA P-256 and SHA-256 (algorithm 13, RFC 6605), and their digests for the parent zone.
import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';

/**
 * A key-signing key has the SEP flag and its digest is in the parent zone; a zone-signing key signs the other records.
 */
export interface SigningKey {
  role: 'ksk' | 'zsk';
  /** PKCS #8 in base64: a secret. */
  private_key: string;
}

export interface OpenedKey {
  role: SigningKey['role'];
  private: KeyObject;
  /** RDATA of the DNSKEY record. */
  rdata: Buffer;
  /** RFC 4034 appendix B. */
  tag: number;
}

/** A DS record (RFC 4034 §5.1). */
export interface DelegationSigner {
  key_tag: number;
  algorithm: number;
  digest_type: number;
  /** Hexadecimal, upper case. */
  digest: string;
}

export const DNSSEC_ALGORITHM = 13;
const PROTOCOL = 3;
const FLAGS = { ksk: 257, zsk: 256 };
const SHA256_DIGEST = 2;

export function openSigningKey({ role, private_key }: SigningKey): OpenedKey {
  const key = createPrivateKey({ key: Buffer.from(private_key, 'base64'), format: 'der', type: 'pkcs8' });
  const { x, y } = createPublicKey(key).export({ format: 'jwk' }) as { x: string; y: string };
  const head = Buffer.alloc(4);
  head.writeUInt16BE(FLAGS[role], 0);
  head.writeUInt8(PROTOCOL, 2);
  head.writeUInt8(DNSSEC_ALGORITHM, 3);
  const rdata = Buffer.concat([head, Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]);
  return { role, private: key, rdata, tag: keyTag(rdata) };
}

/** @param zone in lower case, without a trailing dot */
export function delegationSigner(zone: string, key: SigningKey): DelegationSigner {
  const rdata = digestRdata(zone, openSigningKey(key));
  return {
    key_tag: rdata.readUInt16BE(0),
    algorithm: DNSSEC_ALGORITHM,
    digest_type: SHA256_DIGEST,
    digest: rdata.subarray(4).toString('hex').toUpperCase(),
  };
}

/** RDATA of the DS record of a key, and of its CDS (RFC 7344). */
export function digestRdata(zone: string, { rdata, tag }: Pick<OpenedKey, 'rdata' | 'tag'>): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt16BE(tag, 0);
  head.writeUInt8(DNSSEC_ALGORITHM, 2);
  head.writeUInt8(SHA256_DIGEST, 3);
  const labels = zone.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  const name = Buffer.concat([...labels, Buffer.from([0])]);
  return Buffer.concat([head, createHash('sha256').update(name).update(rdata).digest()]);
}

function keyTag(rdata: Buffer): number {
  let sum = 0;
  rdata.forEach((byte, index) => (sum += index % 2 ? byte : byte << 8));
  return (sum + (sum >>> 16)) & 0xffff;
}
