// Content of an upload in pieces of any size: what is stored is what was sent, though the memory of each piece is given
// back as soon as it is written.
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openBlobStore, reencryptFiles } from '../../../engines/object_storage/files/blobs';
import type { OpenFile } from '../../../core/files/open_files';
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

/** Files that their rows say are encrypted. */
async function* files(
  fileIds: readonly string[],
  bucketId = 'bucket',
): AsyncGenerator<{ bucketId: string; fileId: string }[]> {
  for (const fileId of fileIds) yield [{ bucketId, fileId }];
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

test('keys of files are sealed with a new key of the installation, and the old one is not needed', async () => {
  const root = mkdtempSync(path.join(directory, 'blobs-'));
  const [before, added] = [randomBytes(32), randomBytes(32)];
  const old = { id: 'k1', key: before };
  const blobs = openBlobStore(root, secretBox([old]));
  const whole = randomBytes(200_000);
  const write = async (content: Buffer, encryption: 'AES256' | null): Promise<string> =>
    (await blobs.write('bucket', sent([content]), undefined, encryption)).fileId;
  const fileIds = [await write(whole, 'AES256'), await write(Buffer.from('short'), 'AES256')];
  await blobs.copy({ bucketId: 'bucket', fileId: fileIds[0] as string }, 'other');
  // As a file begins whose key is sealed.
  const imitations = ['v1.k1.', `v1.k1.${'A'.repeat(90).padEnd(600)}`, `v1.k2.${'A'.repeat(90).padEnd(600)}`, ''].map(
    (text) => Buffer.from(text),
  );
  const plain = await Promise.all(imitations.map((content) => write(content, null)));
  const reading = await blobs.open('bucket', fileIds[0] as string, 'AES256');

  const rotated = secretBox([{ id: 'added', key: added }, old]);
  const reencrypt = (ids = fileIds) => reencryptFiles(root, rotated, files(ids));
  expect(await reencrypt()).toMatchObject({ reencrypted: 2, unreadable: 0 });
  expect(await reencrypt()).toMatchObject({ reencrypted: 0, unreadable: 0 });

  const fresh = openBlobStore(root, secretBox([{ id: 'added', key: added }]));
  const bytesOf = async (file: OpenFile, size: number): Promise<Buffer> => {
    const pieces: Buffer[] = [];
    for await (const piece of readFile(file, 0, size)) pieces.push(piece);
    return Buffer.concat(pieces);
  };
  expect((await bytesOf(reading, whole.length)).equals(whole)).toBe(true);
  expect((await bytesOf(await fresh.open('bucket', fileIds[0] as string, 'AES256'), whole.length)).equals(whole)).toBe(
    true,
  );
  expect(String(await bytesOf(await fresh.open('bucket', fileIds[1] as string, 'AES256'), 5))).toBe('short');
  for (const [index, content] of imitations.entries())
    expect(
      (await bytesOf(await fresh.open('bucket', plain[index] as string, null), content.length)).equals(content),
    ).toBe(true);
  // Removed meanwhile, and what is no encrypted file though its row says so.
  expect(await reencrypt(['0'.repeat(32), ...plain])).toMatchObject({ reencrypted: 0, unreadable: plain.length });
});

test('files are read while their keys are sealed again', async () => {
  const root = mkdtempSync(path.join(directory, 'blobs-'));
  const ring = Array.from({ length: 40 }, (_, i) => ({ id: `k${i}`, key: randomBytes(32) }));
  const box = secretBox(ring);
  const { fileId } = await openBlobStore(root, box).write(
    'bucket',
    sent([Buffer.from('content')]),
    undefined,
    'AES256',
  );
  let isOver = false;
  const rotations = (async () => {
    for (const first of ring) {
      const others = ring.filter((one) => one !== first);
      await reencryptFiles(root, secretBox([first, ...others]), files([fileId]));
    }
    isOver = true;
  })();
  let opened = 0;
  for (; !isOver; opened += 1) (await openBlobStore(root, box).open('bucket', fileId, 'AES256')).release();
  await rotations;
  expect(opened).toBeGreaterThan(5);
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
