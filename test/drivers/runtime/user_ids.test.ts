// Installations of one host never give the same user id to their tenants. Eight processes claim at once, as services do
// that start together.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { claimUserIds } from '../../../drivers/runtime/sandbox/user_ids';

const ROOT = path.join(__dirname, '../../..');
const MILLION = 1_000_000;
let place: string;
let claims: string;

beforeEach(() => {
  place = mkdtempSync(path.join(tmpdir(), 'platform-user-ids-'));
  claims = path.join(place, 'claims');
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

function installation(name: string): string {
  const directory = path.join(place, name);
  mkdirSync(directory, { recursive: true });
  return directory;
}

const claim = (name: string, more: { base?: number; isUsed?: boolean } = {}) =>
  claimUserIds({ directory: installation(name), base: more.base ?? null, isUsed: more.isUsed ?? false, claims });

async function claimElsewhere(name: string): Promise<number> {
  const options = { directory: installation(name), base: null, isUsed: false, claims };
  const call = `claimUserIds(${JSON.stringify(options)}).then(({ base }) => console.log(base))`;
  const program = `require('./drivers/runtime/sandbox/user_ids').${call}`;
  const args = ['--require', path.join(ROOT, 'test/support/runner/typescript.js'), '-e', program];
  return Number((await promisify(execFile)(process.execPath, args, { cwd: ROOT })).stdout);
}

test('each gets a range of its own, and keeps it', async () => {
  expect(await claim('one')).toEqual({ base: 700_000, sharedWith: null });
  expect(await claim('two')).toEqual({ base: 700_000 + MILLION, sharedWith: null });
  expect((await claim('one', { isUsed: true })).base).toBe(700_000);
  expect((await claim('two', { base: 700_000 + MILLION })).base).toBe(700_000 + MILLION);
});

test('the range goes with a directory that another path leads to now', async () => {
  await claim('one');
  await claim('two');
  const directory = path.join(place, 'two-elsewhere');
  symlinkSync(installation('two'), directory);
  const options = { directory, base: null, isUsed: true, claims };
  expect(await claimUserIds(options)).toEqual({ base: 700_000 + MILLION, sharedWith: null });
  expect(readFileSync(path.join(claims, String(700_000 + MILLION)), 'utf8')).toBe(`${directory}\n`);
});

test('also where many start at once', async () => {
  const names = Array.from({ length: 8 }, (_, index) => `installation-${index}`);
  const bases = await Promise.all(names.map(claimElsewhere));
  expect(bases.sort((a, b) => a - b)).toEqual(names.map((_, index) => 700_000 + index * MILLION));
}, 60_000);

test('a range that is set must be free, and is kept for nobody else', async () => {
  await claim('one');
  await expect(claim('two', { base: 1_200_000 })).rejects.toThrow(
    `The user ids from 1200000 on belong to the installation in ${place}/one. ` +
      'Set TENANT_UID_BASE to another number, or leave it out.',
  );
  expect((await claim('two', { base: 5_000_000 })).base).toBe(5_000_000);
  expect((await claim('two', { base: 9_000_000 })).base).toBe(9_000_000);
  expect((await claim('three', { base: 5_000_000 })).base).toBe(5_000_000);
});

test('an installation that is gone gives its range back', async () => {
  await claim('one');
  rmSync(path.join(place, 'one'), { recursive: true });
  expect((await claim('two')).base).toBe(700_000);
});

test('one with files from before there were claims keeps the ids that they have', async () => {
  await claim('one');
  expect(await claim('old', { isUsed: true })).toEqual({ base: 700_000, sharedWith: path.join(place, 'one') });
  expect((await claim('three')).base).toBe(700_000 + MILLION);
});
