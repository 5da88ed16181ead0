/** @tier heavy @quarter 4 @covers server/backup server/operator/backup.ts */
// The bad days of a repository of backups: away, full, spoiled, with a clock that was wrong; and restic alone.
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isBackupDue, type BackupJournal } from '../../server/platform/backup_journal';
import { newestOf } from '../../server/backup/newest';
import { freePort } from '../support/processes/free_port';
import { wholeInstallation, type WholeInstallation } from '../support/processes/whole_installation';
import { fileNeeds, testOfRoot } from '../support/runner/programs';

fileNeeds('restic');
const asRoot = testOfRoot();
jest.setTimeout(600_000);

const HOUR_MS = 3_600_000;

let whole: WholeInstallation;
let repository: string;
let bucket: { s3: string; env: Record<string, string> };

beforeAll(async () => {
  whole = wholeInstallation();
  repository = whole.repository.RESTIC_REPOSITORY as string;
  const s3 = await freePort();
  const { call, waitFor } = await whole.start({
    VOLUME_DRIVER: 'directory',
    RESTIC_REPOSITORY: '',
    S3_PORT: String(s3),
  });
  const volume = await call('POST', '/v2/volumes', { name: 'files', size_gb: 1 });
  await waitFor(`/v2/volumes/${volume.id}`, ['available']);
  fs.writeFileSync(path.join(whole.data, 'volumes', volume.id, 'data/photo.jpg'), Buffer.alloc(3_000_000, 'photo'));
  const made = await call('POST', '/v2/buckets', { name: `backups-${process.pid}` });
  const { access_key_id, secret_access_key } = await call('POST', '/v2/bucket_access_keys', {
    name: 'restic',
    grants: [{ permission: 'full' }],
  });
  bucket = {
    s3: `s3:http://127.0.0.1:${s3}/${made.name}`,
    env: { AWS_ACCESS_KEY_ID: access_key_id, AWS_SECRET_ACCESS_KEY: secret_access_key },
  };
  expect(platform('backup')).toMatchObject({ code: 0, err: expect.stringContaining('comparing') });
});

afterAll(() => whole.remove());

function platform(...words: string[]) {
  return whole.platform(words);
}

const journal = (): BackupJournal => JSON.parse(fs.readFileSync(path.join(whole.data, 'backup/last.json'), 'utf8'));

function restic(...words: string[]): string {
  return execFileSync('restic', words, { env: { ...process.env, ...whole.repository }, encoding: 'utf8' });
}

/** Another repository, and what the command says with it. */
function withRepository(address: string, words: string[], env: Record<string, string> = {}) {
  return whole.platform(words, { RESTIC_REPOSITORY: address, ...env });
}

test('restic alone verifies all of it, restores it, and gets at one file', () => {
  expect(restic('check', '--read-data')).toContain('no errors were found');
  const target = path.join(path.dirname(whole.data), 'by-hand');
  restic('restore', 'latest', '--target', target);
  const root = path.join(target, whole.data);
  expect(fs.readdirSync(root).sort()).toEqual(expect.arrayContaining(['backup', 'secret-key', 'volumes']));
  expect(fs.readFileSync(path.join(root, 'secret-key'))).toEqual(fs.readFileSync(path.join(whole.data, 'secret-key')));
  expect(restic('dump', 'latest', path.join(whole.data, 'secret-key'))).toBe(
    fs.readFileSync(path.join(whole.data, 'secret-key'), 'utf8'),
  );
  fs.rmSync(target, { recursive: true });
});

test('a repository whose disk is not mounted is not made anew beneath', () => {
  fs.renameSync(repository, `${repository}.away`);
  try {
    const { code, err } = platform('backup', '--no-proof');
    expect([code, err]).toEqual([1, expect.stringMatching(/there is no repository of restic in \S+: mount its disk/)]);
    expect(fs.existsSync(repository)).toBe(false);
    expect(journal()).toMatchObject({ error: expect.stringMatching(/no repository/), last_whole_in: repository });
    expect(platform('backup', 'list').err).toMatch(/there is no repository of restic in/);
  } finally {
    fs.renameSync(`${repository}.away`, repository);
  }
  expect(platform('backup', '--no-proof').code).toBe(0);
});

test('a service of S3 that is not there is said within a minute', () => {
  const began = performance.now();
  const { code, err } = withRepository('s3:http://127.0.0.1:1/backups', ['backup', '--no-proof'], bucket.env);
  expect([code, err]).toEqual([1, expect.stringMatching(/restic with s3:http:\/\/127\.0\.0\.1:1\/backups: .*refused/)]);
  expect(err).not.toContain(bucket.env.AWS_SECRET_ACCESS_KEY);
  expect(performance.now() - began).toBeLessThan(60_000);
});

test('a bucket of S3 is a repository', () => {
  expect(withRepository(bucket.s3, ['backup'], bucket.env)).toMatchObject({
    ...{ code: 0, out: expect.stringMatching(/true/) },
  });
  expect(withRepository(bucket.s3, ['backup', 'list'], bucket.env).out.trim().split('\n')).toHaveLength(2);
});

asRoot('a full disk of the repository is said, and the next backup after it goes through', () => {
  const disk = fs.mkdtempSync(path.join(os.tmpdir(), 'full-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', disk]);
  try {
    const { code, err } = withRepository(disk, ['backup', '--no-proof']);
    expect([code, err]).toEqual([1, expect.stringMatching(/the disk of the repository \S+ is full: make room there/)]);
    execFileSync('mount', ['-o', 'remount,size=200m', disk]);
    expect(withRepository(disk, ['backup'])).toMatchObject({ code: 0, out: expect.stringMatching(/true/) });
  } finally {
    execFileSync('umount', ['-l', disk]);
    fs.rmdirSync(disk);
  }
});

asRoot('a full disk of the data is said, and leaves nothing', () => {
  const folder = path.join(whole.data, 'backup');
  const owner = fs.readFileSync(path.join(folder, 'owner.json'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=5m,mode=755', 'tmpfs', folder]);
  fs.writeFileSync(path.join(folder, 'owner.json'), owner);
  try {
    const { code, err } = platform('backup', '--no-proof');
    expect([code, err]).toEqual([1, expect.stringMatching(/^platform: the disk of \S+ is full: .* Make room$/m)]);
    expect(fs.readdirSync(folder)).not.toContain('point');
  } finally {
    execFileSync('umount', ['-l', folder]);
  }
});

test.each(['data', 'index', 'snapshots', 'keys', 'config'])(
  'a byte that changes in %s is found, and said with what to do',
  (kind) => {
    const copy = `${repository}.${kind}`;
    fs.cpSync(repository, copy, { recursive: true });
    for (const file of filesBelow(path.join(copy, kind))) flipOne(file);
    const proof = withRepository(copy, ['backup', 'prove']);
    expect(proof.code).toBe(1);
    const elsewhere = path.join(path.dirname(whole.data), 'elsewhere');
    const restored = withRepository(copy, ['restore'], { PLATFORM_DATA_DIR: elsewhere });
    expect(restored.code).toBe(1);
    const sentence = /is spoiled \(.+\): keep it, name another RESTIC_REPOSITORY/;
    expect(proof.err).toMatch(sentence);
    expect(restored.err).toMatch(sentence);
    for (const place of ['postgres', 'volumes', 'secret-key'])
      expect(fs.existsSync(path.join(elsewhere, place))).toBe(false);
    for (const one of [copy, elsewhere]) fs.rmSync(one, { recursive: true, force: true });
  },
);

function filesBelow(root: string): string[] {
  if (fs.statSync(root).isFile()) return [root];
  return fs
    .readdirSync(root, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
}

function flipOne(file: string): void {
  const bytes = fs.readFileSync(file);
  const at = bytes.length >> 1;
  bytes[at] = (bytes[at] as number) ^ 1;
  fs.chmodSync(file, 0o600);
  fs.writeFileSync(file, bytes);
}

test('a clock that was ahead removes no backup, and what it made is not taken for the newest', () => {
  const ids = (): string[] =>
    JSON.parse(platform('backup', 'list', '--json').out).data.map(({ id }: { id: string }) => id);
  const before = ids();
  for (const hours of [2, 400 * 24, -2]) {
    const time = new Date(Date.now() + hours * HOUR_MS).toISOString().slice(0, 19).replace('T', ' ');
    restic('backup', '--time', time, '--tag', 'platform', path.join(whole.data, 'secret-key'));
  }
  expect(platform('backup')).toMatchObject({ code: 0, out: expect.stringMatching(/true/) });
  expect(ids()).toEqual(expect.arrayContaining(before));
  // The one of 400 days ahead has no database in it.
  expect(platform('backup', 'prove')).toMatchObject({ code: 0, err: '' });
});

const at = (hours: number): string => new Date(Date.now() + hours * HOUR_MS).toISOString();

test.each([
  ['an hour ago', -1, false],
  ['25 hours ago', -25, true],
  ['in two hours', 2, true],
  ['in a year', 8760, true],
])('with the last backup made %s, one is due: %s', (_, hours, isDue) => {
  const last = { started_at: at(hours), ended_at: at(hours), error: null, last_whole_at: at(hours) } as BackupJournal;
  expect(isBackupDue(last, 24, Date.now())).toBe(isDue);
  const failed = { ...last, error: 'full', last_whole_at: null };
  expect(isBackupDue(failed, 24, Date.now())).toBe(true);
});

test('the newest backup is one of the past, and of the future where there is no other', () => {
  const points = [-2, -1, 2].map((hours) => ({ id: String(hours), at: at(hours), hostname: '' }));
  expect(newestOf(points, Date.now())?.id).toBe('-1');
  expect(newestOf(points.slice(2), Date.now())?.id).toBe('2');
  expect(newestOf([], Date.now())).toBeUndefined();
});

test.each(['databases of projects', 'control database', 'copying files', 'restoring it aside'])(
  'killed while it is at “%s”, a backup leaves a repository without errors, and the next one goes through',
  async (step) => {
    const child = whole.begin(['backup']);
    const ended = new Promise((resolve) => child.on('exit', resolve));
    let said = '';
    child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
    while (!said.includes(step) && child.exitCode === null) await sleep(5);
    await sleep(200);
    if (child.exitCode === null) process.kill(-(child.pid as number), 'SIGKILL');
    await ended;
    const { code, err } = platform('backup');
    expect([code, err]).toEqual([0, expect.stringContaining('comparing')]);
    expect(fs.readdirSync(path.join(whole.data, 'backup')).sort()).toEqual(['cache', 'last.json', 'owner.json']);
    expect(restic('check')).toContain('no errors were found');
  },
);

test('files that change, grow, shrink and go while they are read do not stop a backup', async () => {
  const busy = path.join(whole.data, 'volumes', fs.readdirSync(path.join(whole.data, 'volumes'))[0] as string, 'data');
  let round = 0;
  const writer = setInterval(() => {
    for (let each = 0; each < 50; each += 1) {
      const file = path.join(busy, `busy-${(round += 1) % 500}`);
      if (round % 3 === 0) fs.rmSync(file, { force: true });
      else fs.writeFileSync(file, Buffer.alloc((round % 7) * 20_000, round));
    }
  }, 5);
  try {
    for (const to of [[], ['--to', path.join(path.dirname(whole.data), 'busy.age')]]) {
      const child = whole.begin(['backup', '--no-proof', ...to]);
      while (child.exitCode === null && child.signalCode === null) await sleep(50);
      expect(child.exitCode).toBe(0);
    }
  } finally {
    clearInterval(writer);
  }
});
