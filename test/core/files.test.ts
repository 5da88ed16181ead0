import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { symlinkSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { replaceFile, replaceFileDurably } from '../../core/files';

let directory: string;

beforeEach(() => void (directory = mkdtempSync(path.join(os.tmpdir(), 'files-'))));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test.each([
  ['replaceFile', replaceFile],
  ['replaceFileDurably', replaceFileDurably],
])('%s leaves the new content alone, for this user unless told otherwise', async (_name, replace) => {
  const file = path.join(directory, 'note.json');
  await replace(file, 'one');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await replace(file, Buffer.from('two'), { mode: 0o644 });
  expect(readFileSync(file, 'utf8')).toBe('two');
  expect(statSync(file).mode & 0o777).toBe(0o644);
  expect(readdirSync(directory)).toEqual(['note.json']);
});

test('a link in place of the file is replaced, not followed', async () => {
  const [target, file] = [path.join(directory, 'target'), path.join(directory, 'note')];
  writeFileSync(target, 'of somebody else');
  symlinkSync(target, file);
  await replaceFile(file, 'ours');
  expect([readFileSync(target, 'utf8'), readFileSync(file, 'utf8')]).toEqual(['of somebody else', 'ours']);
});

test('replacements at the same time leave one whole content', async () => {
  const file = path.join(directory, 'note');
  const contents = Array.from({ length: 20 }, (_, index) => String(index).repeat(10_000));
  await Promise.all(contents.map((content) => replaceFile(file, content)));
  expect(contents).toContain(readFileSync(file, 'utf8'));
  expect(readdirSync(directory)).toEqual(['note']);
});

test('what cannot be replaced stays, and nothing is left beside it', async () => {
  const file = path.join(directory, 'taken');
  mkdirSync(path.join(file, 'inside'), { recursive: true });
  await expect(replaceFile(file, 'text')).rejects.toMatchObject({ code: expect.stringMatching(/^E/) });
  expect(existsSync(path.join(file, 'inside'))).toBe(true);
  expect(readdirSync(directory)).toEqual(['taken']);
  await expect(replaceFile(path.join(directory, 'absent/note'), 'text')).rejects.toMatchObject({ code: 'ENOENT' });
});
