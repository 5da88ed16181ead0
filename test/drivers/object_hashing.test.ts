// What the S3 endpoint hashes bodies with, beside OpenSSL and published values.
import { createHash, randomBytes, randomInt } from 'node:crypto';
import zlib from 'node:zlib';
import { checksum } from '../../drivers/object_storage/embedded/checksums';
import * as crcs from '../../drivers/object_storage/embedded/hashing/crc';
import * as md5s from '../../drivers/object_storage/embedded/hashing/md5';

const KIB = 1024;
/** Around blocks of 64 bytes, the length behind the last one, and buffers of 128 KiB. */
const SIZES = [
  0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 4095, 4096, 65_537, 131_071, 131_072, 131_073, 262_144, 400_001,
];

const expectedMd5 = (content: Buffer): string => createHash('md5').update(content).digest('hex');

/** Pieces of any size, as a network gives them. */
function* cut(content: Buffer, most: number): Generator<Buffer> {
  for (let from = 0; from < content.length;) {
    const length = randomInt(1, most + 1);
    yield content.subarray(from, from + length);
    from += length;
  }
}

function modulesWithoutWebAssembly(): { md5: typeof md5s; crc: typeof crcs } {
  const had = globalThis.WebAssembly;
  try {
    Object.assign(globalThis, { WebAssembly: undefined });
    let found: { md5: typeof md5s; crc: typeof crcs } | null = null;
    jest.isolateModules(() => {
      found = {
        md5: jest.requireActual('../../drivers/object_storage/embedded/hashing/md5'),
        crc: jest.requireActual('../../drivers/object_storage/embedded/hashing/crc'),
      };
      // The first use looks for it.
      found.md5.openMd5().release();
      found.crc.crcUpdate('CRC32C');
    });
    return found as unknown as { md5: typeof md5s; crc: typeof crcs };
  } finally {
    Object.assign(globalThis, { WebAssembly: had });
  }
}

describe('MD5', () => {
  test.each(SIZES)('of one body of %d bytes', async (size) => {
    const content = randomBytes(size);
    const md5 = md5s.openMd5();
    for (const piece of cut(content, 100 * KIB)) await md5.update(piece);
    expect(await md5.digest()).toBe(expectedMd5(content));
  });

  // 70 is more than there are buffers.
  test.each([2, 3, 4, 5, 8, 9, 20, 70])('of %d bodies that arrive at the same time', async (count) => {
    const hash = async (content: Buffer): Promise<void> => {
      const md5 = md5s.openMd5();
      for (const piece of cut(content, 80 * KIB)) {
        await md5.update(piece);
        // A body that is late meets others at any point of theirs.
        if (randomInt(0, 3) === 0) await new Promise(setImmediate);
      }
      expect(await md5.digest()).toBe(expectedMd5(content));
    };
    const contents = Array.from({ length: count }, (_, n) =>
      randomBytes(SIZES[n % SIZES.length]! + randomInt(0, 200_000)),
    );
    await Promise.all(contents.map(hash));
  });

  test('bodies that break off leave their buffers to others and do not disturb them', async () => {
    const content = randomBytes(300_000);
    for (let turn = 0; turn < 80; turn += 1) {
      const [broken, waiting, whole] = [md5s.openMd5(), md5s.openMd5(), md5s.openMd5()];
      await broken.update(randomBytes(randomInt(1, 100_000)));
      const stopped = waiting.update(randomBytes(200_000));
      const hashed = whole.update(content);
      broken.release();
      waiting.release();
      broken.release();
      await hashed;
      expect(await whole.digest()).toBe(expectedMd5(content));
      await stopped;
    }
  });

  test('where there is no WebAssembly', async () => {
    const content = randomBytes(200_000);
    const md5 = modulesWithoutWebAssembly().md5.openMd5();
    for (const piece of cut(content, 50 * KIB)) await md5.update(piece);
    expect(await md5.digest()).toBe(expectedMd5(content));
  });
});

describe('CRC', () => {
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

  // The same loop for each: zlib says what one of them is for every length and cut.
  test.each(SIZES)('CRC-32 of %d bytes is that of zlib', (size) => {
    const content = randomBytes(size);
    const update = crcs.crcUpdate('CRC32');
    let register = 0xffffffffn;
    for (const piece of cut(content, 100 * KIB)) register = update(register, piece);
    expect(BigInt.asUintN(32, ~register)).toBe(BigInt(crc32Of(content)));
  });

  test.each(['CRC32', 'CRC32C', 'CRC64NVME'] as const)('%s is the same where there is no WebAssembly', (name) => {
    const [update, plain] = [crcs.crcUpdate(name), modulesWithoutWebAssembly().crc.crcUpdate(name)];
    const bits = crcs.CRC_BYTES[name] * 8;
    for (const size of [0, 1, 15, 16, 17, 31, 1000, 70_000]) {
      const content = randomBytes(size);
      const start = BigInt.asUintN(bits, -1n);
      expect(BigInt.asUintN(bits, update(start, content))).toBe(BigInt.asUintN(bits, plain(start, content)));
    }
  });
});

/** zlib.crc32 is newer than the oldest Node that runs this; gzip ends with the same value. */
function crc32Of(content: Buffer): number {
  const packed = zlib.gzipSync(content, { level: 0 });
  return packed.readUInt32LE(packed.length - 8);
}
