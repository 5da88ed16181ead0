// Content of an upload in pieces of any size: what is stored is what was sent, though the memory of each piece is given
// back as soon as it is written.
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openBlobStore } from '../../../engines/object_storage/files/blobs';
import { dechunked } from '../../../engines/object_storage/files/chunked';
import { readFile } from '../../../engines/object_storage/read_object';
import { secretBox } from '../../../core/secrets';
import { fuzzSeed, randomFrom } from '../../support/runner/seeded_random';

const secrets = secretBox([{ id: 'k1', key: randomBytes(32) }]);
const UNSIGNED = { signing: null, announced: [], trailers: new Map<string, string>() };

let directory: string;
beforeAll(() => void (directory = mkdtempSync(path.join(tmpdir(), 'object-pieces-'))));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Each with memory of its own, as pieces that a socket has received. */
async function* sent(pieces: readonly Buffer[]): AsyncGenerator<Buffer> {
  for (const piece of pieces) {
    await new Promise(setImmediate);
    yield Buffer.from(Uint8Array.from(piece).buffer);
  }
}

async function stored(content: AsyncIterable<Buffer>): Promise<{ size: number; md5: string; bytes: Buffer }> {
  const root = mkdtempSync(path.join(directory, 'blobs-'));
  const { fileId, size, md5 } = await openBlobStore(root, secrets).write('bucket', content);
  const [file] = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith(fileId));
  return { size, md5, bytes: readFileSync(path.join(root, file as string)) };
}

function cut(whole: Buffer, lengths: () => number): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < whole.length;) {
    const piece = whole.subarray(at, at + lengths());
    pieces.push(piece);
    at += piece.length;
  }
  return pieces;
}

test('pieces of any size', async () => {
  const random = randomFrom(fuzzSeed(1));
  const whole = randomBytes(5_000_000);
  const found = await stored(sent(cut(whole, () => 1 + Math.floor(random() ** 3 * 400_000))));
  expect(found.bytes.equals(whole)).toBe(true);
  expect(found).toMatchObject({ size: whole.length, md5: createHash('md5').update(whole).digest('hex') });
});

test('encrypted, at rest and in any range', async () => {
  const random = randomFrom(fuzzSeed(2));
  const root = mkdtempSync(path.join(directory, 'blobs-'));
  const blobs = openBlobStore(root, secrets);
  const whole = Buffer.alloc(3_000_000, 'content of an object ');
  const content = sent(cut(whole, () => 1 + Math.floor(random() ** 3 * 400_000)));
  const { fileId, size, md5 } = await blobs.write('bucket', content, undefined, 'AES256');
  expect([size, md5]).toEqual([whole.length, createHash('md5').update(whole).digest('hex')]);
  const [file] = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith(fileId));
  expect(readFileSync(path.join(root, file as string)).includes('content')).toBe(false);
  const copy = await blobs.copy({ bucketId: 'bucket', fileId }, 'other');
  for (let turn = 0; turn < 40; turn += 1) {
    const start = Math.floor(random() * whole.length);
    const end = turn ? start + 1 + Math.floor(random() ** 4 * (whole.length - start)) : whole.length;
    const pieces: Buffer[] = [];
    for await (const piece of readFile(await blobs.open('other', copy, 'AES256'), start, end)) pieces.push(piece);
    expect([start, end, Buffer.concat(pieces).equals(whole.subarray(start, end))]).toEqual([start, end, true]);
  }
  const stranger = secretBox([{ id: 'k1', key: randomBytes(32) }]);
  await expect(openBlobStore(root, stranger).open('bucket', fileId, 'AES256')).rejects.toThrow();
});

test('several at a time', async () => {
  const wholes = Array.from({ length: 12 }, () => randomBytes(1_000_000));
  const found = await Promise.all(wholes.map((whole) => stored(sent(cut(whole, () => 65_536)))));
  expect(found.map(({ md5 }) => md5)).toEqual(wholes.map((whole) => createHash('md5').update(whole).digest('hex')));
  expect(found.every(({ bytes }, index) => bytes.equals(wholes[index] as Buffer))).toBe(true);
});

test('chunks whose content is a piece of its own', async () => {
  const whole = randomBytes(2_000_000);
  const pieces = cut(whole, () => 65_536).flatMap((chunk) => [
    Buffer.from(`${chunk.length.toString(16)}\r\n`),
    chunk,
    Buffer.from('\r\n'),
  ]);
  const found = await stored(dechunked(sent([...pieces, Buffer.from('0\r\n\r\n')]), UNSIGNED));
  expect(found.bytes.equals(whole)).toBe(true);
  expect(found.size).toBe(whole.length);
});
