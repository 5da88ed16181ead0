// Checksums of S3: verified while content streams, returned with objects, and combined for multipart uploads.
import { createHash, type Hash } from 'node:crypto';
import { CRC_BYTES, openCrc, POLYNOMIALS, type CrcName } from './crc';

export const ALGORITHMS = ['CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256'] as const;
export type ChecksumAlgorithm = (typeof ALGORITHMS)[number];
export type ChecksumType = 'FULL_OBJECT' | 'COMPOSITE';

const BYTES: Record<ChecksumAlgorithm, number> = { ...CRC_BYTES, SHA1: 20, SHA256: 32 };

interface Checksum {
  update(chunk: Buffer): void;
  /** Base64. */
  digest(): string;
}

export function isAlgorithm(text: string): text is ChecksumAlgorithm {
  return (ALGORITHMS as readonly string[]).includes(text);
}

export function checksum(algorithm: ChecksumAlgorithm): Checksum {
  if (algorithm === 'SHA1' || algorithm === 'SHA256') return hashChecksum(createHash(algorithm.toLowerCase()));
  const crc = openCrc(algorithm);
  return { update: (chunk) => crc.update(chunk), digest: () => crcText(algorithm, crc.value()) };
}

/** Whether the text is a well-formed value of the algorithm. */
export function isChecksumValue(algorithm: ChecksumAlgorithm, value: string): boolean {
  const bytes = Buffer.from(value, 'base64');
  return bytes.length === BYTES[algorithm] && bytes.toString('base64') === value;
}

function hashChecksum(hash: Hash): Checksum {
  return { update: (chunk) => void hash.update(chunk), digest: () => hash.digest('base64') };
}

/** Base64, most significant byte first. */
function crcText(name: CrcName, crc: bigint): string {
  const hex = crc.toString(16).padStart(CRC_BYTES[name] * 2, '0');
  return Buffer.from(hex, 'hex').toString('base64');
}

/**
 * Default type of multipart uploads: CRC-64 covers the full object, others are composed of the checksums of the parts.
 */
export function usualType(algorithm: ChecksumAlgorithm): ChecksumType {
  return algorithm === 'CRC64NVME' ? 'FULL_OBJECT' : 'COMPOSITE';
}

export function canBe(algorithm: ChecksumAlgorithm, type: ChecksumType): boolean {
  return type === 'COMPOSITE' ? algorithm !== 'CRC64NVME' : algorithm.startsWith('CRC');
}

/** Checksum of an object with several parts. */
export function combined(
  algorithm: ChecksumAlgorithm,
  type: ChecksumType,
  parts: readonly { checksum: string; size: number }[],
): string {
  if (type === 'FULL_OBJECT') return combinedCrc(algorithm as CrcName, parts);
  const total = checksum(algorithm);
  for (const part of parts) total.update(Buffer.from(part.checksum, 'base64'));
  return `${total.digest()}-${parts.length}`;
}

function combinedCrc(algorithm: CrcName, parts: readonly { checksum: string; size: number }[]): string {
  const value = (text: string): bigint => BigInt(`0x${Buffer.from(text, 'base64').toString('hex')}`);
  const crc = parts.reduce((total, part) => shifted(algorithm, total, part.size) ^ value(part.checksum), 0n);
  return crcText(algorithm, crc);
}

/** The CRC after appending that many zero bytes: multiplied by x^8n in the field of the polynomial. */
function shifted(algorithm: CrcName, crc: bigint, bytes: number): bigint {
  const width = BYTES[algorithm] * 8;
  let matrix = Array.from({ length: width }, (_, bit) => (bit === 0 ? POLYNOMIALS[algorithm] : 1n << BigInt(bit - 1)));
  const times = (of: readonly bigint[], vector: bigint): bigint =>
    of.reduce((sum, row, bit) => ((vector >> BigInt(bit)) & 1n ? sum ^ row : sum), 0n);
  const squared = (of: readonly bigint[]): bigint[] => of.map((row) => times(of, row));
  // Squared three times: 2, 4 and 8 bits, that is one byte.
  for (let i = 0; i < 3; i += 1) matrix = squared(matrix);
  let result = crc;
  for (let n = BigInt(bytes); n; n >>= 1n) {
    if (n & 1n) result = times(matrix, result);
    if (n > 1n) matrix = squared(matrix);
  }
  return result;
}
