// The checksums of S3: verified while content streams, returned with objects, and put together for multipart uploads.
import { createHash, type Hash } from 'node:crypto';
import zlib from 'node:zlib';

export const ALGORITHMS = ['CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256'] as const;
export type ChecksumAlgorithm = (typeof ALGORITHMS)[number];
export type ChecksumType = 'FULL_OBJECT' | 'COMPOSITE';

const BYTES: Record<ChecksumAlgorithm, number> = { CRC32: 4, CRC32C: 4, CRC64NVME: 8, SHA1: 20, SHA256: 32 };

/** Reflected polynomials. */
const POLYNOMIALS = { CRC32: 0xedb88320n, CRC32C: 0x82f63b78n, CRC64NVME: 0x9a6c9329ac4bc9b5n } as const;

export interface Checksum {
  update(chunk: Buffer): void;
  /** Base64. */
  digest(): string;
}

export function isAlgorithm(text: string): text is ChecksumAlgorithm {
  return (ALGORITHMS as readonly string[]).includes(text);
}

export function checksum(algorithm: ChecksumAlgorithm): Checksum {
  if (algorithm === 'SHA1' || algorithm === 'SHA256') return hashChecksum(createHash(algorithm.toLowerCase()));
  if (algorithm === 'CRC64NVME') return crc64();
  return algorithm === 'CRC32' && nativeCrc32 ? zlibCrc32(nativeCrc32) : crc32(algorithm);
}

/** Whether a text can be the value of a checksum at all. */
export function isChecksumValue(algorithm: ChecksumAlgorithm, value: string): boolean {
  const bytes = Buffer.from(value, 'base64');
  return bytes.length === BYTES[algorithm] && bytes.toString('base64') === value;
}

function hashChecksum(hash: Hash): Checksum {
  return { update: (chunk) => void hash.update(chunk), digest: () => hash.digest('base64') };
}

/** Since Node 20.15 and 22.2; ten times as fast as tables. */
const { crc32: nativeCrc32 } = zlib as { crc32?: (data: Buffer, value?: number) => number };

function zlibCrc32(update: (data: Buffer, value?: number) => number): Checksum {
  let crc = 0;
  return {
    update: (chunk) => void (crc = update(chunk, crc)),
    digest() {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(crc);
      return bytes.toString('base64');
    },
  };
}

/** Eight tables, so that eight bytes take one turn ("slicing by 8"). */
const tables32 = new Map<string, Int32Array[]>();

function tablesOf(algorithm: 'CRC32' | 'CRC32C'): Int32Array[] {
  const known = tables32.get(algorithm);
  if (known) return known;
  const polynomial = Number(POLYNOMIALS[algorithm]) | 0;
  const made = Array.from({ length: 8 }, () => new Int32Array(256));
  for (let n = 0; n < 256; n += 1) {
    let value = n;
    for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ polynomial : value >>> 1;
    (made[0] as Int32Array)[n] = value;
  }
  for (let n = 0; n < 256; n += 1) {
    for (let t = 1; t < 8; t += 1) {
      const before = made[t - 1]?.[n] as number;
      (made[t] as Int32Array)[n] = (before >>> 8) ^ (made[0]?.[before & 255] as number);
    }
  }
  tables32.set(algorithm, made);
  return made;
}

function crc32(algorithm: 'CRC32' | 'CRC32C'): Checksum {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = tablesOf(algorithm) as [
    ...[Int32Array, Int32Array, Int32Array, Int32Array, Int32Array, Int32Array, Int32Array, Int32Array],
  ];
  let crc = -1;

  return {
    update(chunk) {
      let value = crc;
      let i = 0;
      for (const whole = chunk.length - 7; i < whole; i += 8) {
        value ^= chunk[i]! | (chunk[i + 1]! << 8) | (chunk[i + 2]! << 16) | (chunk[i + 3]! << 24);
        value =
          t7[value & 255]! ^
          t6[(value >>> 8) & 255]! ^
          t5[(value >>> 16) & 255]! ^
          t4[value >>> 24]! ^
          t3[chunk[i + 4]!]! ^
          t2[chunk[i + 5]!]! ^
          t1[chunk[i + 6]!]! ^
          t0[chunk[i + 7]!]!;
      }
      for (; i < chunk.length; i += 1) value = (value >>> 8) ^ t0[(value ^ chunk[i]!) & 255]!;
      crc = value;
    },
    digest() {
      const bytes = Buffer.alloc(4);
      bytes.writeInt32BE(~crc);
      return bytes.toString('base64');
    },
  };
}

/** Of each table the upper and the lower halves of its values; eight tables as above. */
type Tables64 = readonly [high: Int32Array, low: Int32Array][];
let tables64: Tables64 | undefined;

function crc64Tables(): Tables64 {
  if (tables64) return tables64;
  const made = Array.from({ length: 8 }, (): [Int32Array, Int32Array] => [new Int32Array(256), new Int32Array(256)]);
  const [[high0, low0]] = made as [[Int32Array, Int32Array]];
  for (let n = 0; n < 256; n += 1) {
    let value = BigInt(n);
    for (let bit = 0; bit < 8; bit += 1) value = value & 1n ? (value >> 1n) ^ POLYNOMIALS.CRC64NVME : value >> 1n;
    high0[n] = Number(BigInt.asIntN(32, value >> 32n));
    low0[n] = Number(BigInt.asIntN(32, value));
  }
  for (let n = 0; n < 256; n += 1) {
    for (let t = 1; t < 8; t += 1) {
      const [h, l] = [made[t - 1]![0][n]!, made[t - 1]![1][n]!];
      made[t]![0][n] = (h >>> 8) ^ high0[l & 255]!;
      made[t]![1][n] = ((l >>> 8) | (h << 24)) ^ low0[l & 255]!;
    }
  }
  return (tables64 = made);
}

function crc64(): Checksum {
  const [[h0, l0], [h1, l1], [h2, l2], [h3, l3], [h4, l4], [h5, l5], [h6, l6], [h7, l7]] = crc64Tables() as [
    ...[Tables64[0], Tables64[0], Tables64[0], Tables64[0], Tables64[0], Tables64[0], Tables64[0], Tables64[0]],
  ];
  let [high, low] = [-1, -1];
  return {
    update(chunk) {
      let [h, l] = [high, low];
      let i = 0;
      for (const whole = chunk.length - 7; i < whole; i += 8) {
        l ^= chunk[i]! | (chunk[i + 1]! << 8) | (chunk[i + 2]! << 16) | (chunk[i + 3]! << 24);
        h ^= chunk[i + 4]! | (chunk[i + 5]! << 8) | (chunk[i + 6]! << 16) | (chunk[i + 7]! << 24);
        const [a, b, c, d] = [l & 255, (l >>> 8) & 255, (l >>> 16) & 255, l >>> 24];
        const [e, f, g, k] = [h & 255, (h >>> 8) & 255, (h >>> 16) & 255, h >>> 24];
        l = l7[a]! ^ l6[b]! ^ l5[c]! ^ l4[d]! ^ l3[e]! ^ l2[f]! ^ l1[g]! ^ l0[k]!;
        h = h7[a]! ^ h6[b]! ^ h5[c]! ^ h4[d]! ^ h3[e]! ^ h2[f]! ^ h1[g]! ^ h0[k]!;
      }
      for (; i < chunk.length; i += 1) {
        const index = (l ^ chunk[i]!) & 255;
        l = ((l >>> 8) | (h << 24)) ^ l0[index]!;
        h = (h >>> 8) ^ h0[index]!;
      }
      [high, low] = [h, l];
    },
    digest() {
      const bytes = Buffer.alloc(8);
      bytes.writeInt32BE(~high, 0);
      bytes.writeInt32BE(~low, 4);
      return bytes.toString('base64');
    },
  };
}

/** Of a multipart upload, unless it says otherwise: CRC-64 of the whole, others of the checksums of the parts. */
export function usualType(algorithm: ChecksumAlgorithm): ChecksumType {
  return algorithm === 'CRC64NVME' ? 'FULL_OBJECT' : 'COMPOSITE';
}

export function canBe(algorithm: ChecksumAlgorithm, type: ChecksumType): boolean {
  return type === 'COMPOSITE' ? algorithm !== 'CRC64NVME' : algorithm.startsWith('CRC');
}

/** The checksum of an object of several parts. */
export function combined(
  algorithm: ChecksumAlgorithm,
  type: ChecksumType,
  parts: readonly { checksum: string; size: number }[],
): string {
  if (type === 'FULL_OBJECT') return combinedCrc(algorithm as keyof typeof POLYNOMIALS, parts);
  const total = checksum(algorithm);
  for (const part of parts) total.update(Buffer.from(part.checksum, 'base64'));
  return `${total.digest()}-${parts.length}`;
}

function combinedCrc(
  algorithm: keyof typeof POLYNOMIALS,
  parts: readonly { checksum: string; size: number }[],
): string {
  const value = (text: string): bigint => BigInt(`0x${Buffer.from(text, 'base64').toString('hex')}`);
  const crc = parts.reduce((total, part) => shifted(algorithm, total, part.size) ^ value(part.checksum), 0n);
  const hex = crc.toString(16).padStart(BYTES[algorithm] * 2, '0');
  return Buffer.from(hex, 'hex').toString('base64');
}

/** The CRC as it is after that many zero bytes: multiplied by x^8n in the field of the polynomial. */
function shifted(algorithm: keyof typeof POLYNOMIALS, crc: bigint, bytes: number): bigint {
  const width = BYTES[algorithm] * 8;
  let matrix = Array.from({ length: width }, (_, bit) => (bit === 0 ? POLYNOMIALS[algorithm] : 1n << BigInt(bit - 1)));
  const times = (of: readonly bigint[], vector: bigint): bigint =>
    of.reduce((sum, row, bit) => ((vector >> BigInt(bit)) & 1n ? sum ^ row : sum), 0n);
  const squared = (of: readonly bigint[]): bigint[] => of.map((row) => times(of, row));
  // One bit, two, four, and eight: a byte.
  for (let i = 0; i < 3; i += 1) matrix = squared(matrix);
  let result = crc;
  for (let n = BigInt(bytes); n; n >>= 1n) {
    if (n & 1n) result = times(matrix, result);
    if (n > 1n) matrix = squared(matrix);
  }
  return result;
}
