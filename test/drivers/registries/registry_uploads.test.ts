// Uploads of layers: what is received is written back to the disk on the way, and an error of the disk is not lost.
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { openEarlySync } from '../../../core/files/early_sync';
import { openUploadFiles } from '../../../engines/registry/uploads';

const MIB = 2 ** 20;
let directory: string;

beforeAll(() => (directory = mkdtempSync(path.join(os.tmpdir(), 'registry-uploads-'))));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test('a layer beyond the size of an early sync arrives in two chunks byte for byte', async () => {
  const uploads = openUploadFiles(directory);
  const halves = [randomBytes(70 * MIB), randomBytes(5 * MIB)];
  const whole = Buffer.concat(halves);
  const digest = `sha256:${createHash('sha256').update(whole).digest('hex')}`;
  await uploads.create('one');
  let offset = 0;
  for (const half of halves) {
    const pieces = Array.from({ length: half.length / MIB }, (_, at) =>
      Buffer.from(half.subarray(at * MIB, (at + 1) * MIB)),
    );
    offset = await uploads.append('one', Readable.from(pieces), Infinity);
  }
  expect(offset).toBe(whole.length);
  const { file, size } = await uploads.finish('one', digest);
  expect(size).toBe(whole.length);
  expect(readFileSync(file).equals(whole)).toBe(true);
});

test('an early sync that fails is told at the end', async () => {
  // A device: there is nothing that could be synced (EINVAL).
  const handle = await open('/dev/null', 'w');
  try {
    const early = openEarlySync(handle);
    early.count(MIB);
    await early.end();
    early.count(64 * MIB);
    await expect(early.end()).rejects.toThrow(/EINVAL/);
  } finally {
    await handle.close();
  }
});
