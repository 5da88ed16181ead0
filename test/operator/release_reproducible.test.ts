/** @tier heavy @quarter 4 @covers tools/release */
// A commit gives the same bytes, whoever makes the release, where and when.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { makeRelease, releaseOfToday } from '../support/releases/release';
import { needs } from '../support/runner/programs';
import { ROOT } from '../support/runner/repository';

jest.setTimeout(900_000);
const { test: it } = needs('git', 'tar', 'flock');

let home: string;
beforeAll(() => (home = mkdtempSync(path.join(tmpdir(), 'release-'))));
afterAll(() => rmSync(home, { recursive: true, force: true }));

it('has the same bytes with another umask, time zone, language, home and path', async () => {
  const first = await releaseOfToday();
  const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).trim();
  const place = path.join(home, 'ein anderer Ort, größer');
  mkdirSync(place);
  const env = { TZ: 'Asia/Kathmandu', LANG: 'tr_TR.UTF-8', LC_ALL: 'C.UTF-8', HOME: place, SOURCE_DATE_EPOCH: '1' };
  const options = { GZIP: '-9', TAR_OPTIONS: '--owner=5', NODE_ENV: 'development' };
  const umask = process.umask(0o077);
  try {
    await makeRelease(commit, path.join(place, 'second'), { ...env, ...options });
  } finally {
    process.umask(umask);
  }
  expect(readFileSync(path.join(place, 'second/SHA256SUMS'), 'utf8')).toBe(
    readFileSync(path.join(first, 'SHA256SUMS'), 'utf8'),
  );
});
