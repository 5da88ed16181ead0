// The CRCs of the S3 endpoint beside zlib and published values.
import { randomBytes, randomInt } from 'node:crypto';
import zlib from 'node:zlib';
import { checksum } from '../../../engines/object_storage/files/checksums';
import { CRC_BYTES, openCrc, POLYNOMIALS, type CrcName } from '../../../engines/object_storage/files/crc';

const KIB = 1024;
/** Around turns of eight bytes, and what a network gives at once. */
const SIZES = [0, 1, 7, 8, 9, 15, 16, 17, 1000, 4095, 4096, 65_537, 131_073, 400_001];
const NAMES = Object.keys(POLYNOMIALS) as CrcName[];

/** Pieces of any size, as a network gives them. */
function* cut(content: Buffer, most: number): Generator<Buffer> {
  for (let from = 0; from < content.length;) {
    const length = randomInt(1, most + 1);
    yield content.subarray(from, from + length);
    from += length;
  }
}

/** A bit a turn, as the definition has it. */
function plainCrc(name: CrcName, content: Buffer): bigint {
  const all = (1n << BigInt(CRC_BYTES[name] * 8)) - 1n;
  let value = all;
  for (const byte of content) {
    value ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit += 1) value = value & 1n ? (value >> 1n) ^ POLYNOMIALS[name] : value >> 1n;
  }
  return value ^ all;
}

/** Of the digits 1 to 9, as the catalogue of parametrised CRC algorithms has them. */
test.each([
  ['CRC32', 'cbf43926'],
  ['CRC32C', 'e3069283'],
  ['CRC64NVME', 'ae8b14860a799888'],
] as const)('%s of its check value', (name, hex) => {
  const sum = checksum(name);
  sum.update(Buffer.from('123456789'));
  expect(Buffer.from(sum.digest(), 'base64').toString('hex')).toBe(hex);
});

test.each(SIZES)('CRC-32 of %d bytes is that of zlib', (size) => {
  const content = randomBytes(size);
  const crc = openCrc('CRC32');
  for (const piece of cut(content, 100 * KIB)) crc.update(piece);
  expect(crc.value()).toBe(BigInt(zlib.crc32(content)));
});

test.each(NAMES)('%s is the same bit by bit, however the pieces are cut', (name) => {
  for (const size of SIZES.filter((one) => one < 100_000)) {
    const content = randomBytes(size);
    const expected = plainCrc(name, content);
    for (const most of [3, 20, 100 * KIB]) {
      const crc = openCrc(name);
      for (const piece of cut(content, most)) crc.update(piece);
      expect(crc.value()).toBe(expected);
    }
  }
});
