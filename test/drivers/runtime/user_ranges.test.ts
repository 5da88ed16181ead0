// Directories of one host never have the same user ids.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { claimRange } from '../../../drivers/runtime/sandbox/user_ranges';
import { LAST_TENANT_ID } from '../../../drivers/runtime/sandbox/user_ids';

const RANGE = 65_536;
let place: string;

beforeEach(() => {
  place = mkdtempSync(path.join(tmpdir(), 'platform-user-ranges-'));
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

function claim(name: string): Promise<number | null> {
  mkdirSync(path.join(place, name), { recursive: true });
  return claimRange(path.join(place, name), path.join(place, 'claims'));
}

test('each directory has a range of its own as long as it is there', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `cache-${index}`);
  const first = await Promise.all(names.map(claim));
  expect(new Set(first).size).toBe(names.length);
  expect(await Promise.all(names.map(claim))).toEqual(first);
  rmSync(path.join(place, 'cache-3'), { recursive: true });
  expect(await claim('another')).toBe(first[3]);
  expect(await claim('cache-3')).not.toBe(first[3]);
});

test('ranges are those of no tenant, and of no container of a user of the host', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `cache-${index}`);
  const all = (await Promise.all(names.map(claim))).map(Number);
  const delegated = readFileSync('/etc/subuid', 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => line.split(':').map(Number));
  for (const first of all) {
    expect(first).toBeGreaterThan(LAST_TENANT_ID);
    expect(first + RANGE).toBeLessThanOrEqual(2 ** 31);
    for (const [, start = 0, count = 0] of delegated)
      expect(first < start + count && start < first + RANGE).toBe(false);
  }
});
