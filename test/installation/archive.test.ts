/** @tier heavy @quarter 4 @covers core/protocols/age.ts server/backup/archive.ts server/operator/backup.ts */
// A backup as one file, without restic: what is in it comes back, and what is wrong with it is said before anything is
// changed.
import { execFileSync, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { decryptAge, encryptAge } from '../../core/protocols/age';
import { version } from '../../package.json';
import { listingOf, makeOddFiles } from '../support/processes/odd_files';
import { wholeInstallation, type WholeInstallation } from '../support/processes/whole_installation';
import { isRoot, needs, testOfRoot } from '../support/runner/programs';

jest.setTimeout(600_000);

const asRoot = testOfRoot();
const withAge = needs('age', 'script').test;

/** By age 1.1.1 of Debian, with the passphrase `foo bar`. */
const OF_AGE =
  'YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNjcnlwdCBVeHltai9VSjdoZDVRNGNCRnhHZGF3IDE4CmovRGZOa0FEdjhrVElNdklN' +
  'UjYyeEtkeUgwTGlTRGhqWUNZVWlEa3ZIcEEKLS0tIDZVcmhyNVlCRCs3ZGZzVkZ3RytTU09JelFsWXFxQnJFRDQzTzhQQUFaa3MK' +
  'TxEd0Sc4e6dbEap/raTC0kLSogwyhmdPduIykhLWZyxrELLGKaOwI5mFAOQTefa/G/Xr';

let whole: WholeInstallation;
let files: string;
let listing: string;
let archive: string;
const CLAIMS = '/var/lib/platform-api/user-ids';
let otherClaim: string | null = null;
let mounted: string | null = null;

beforeAll(async () => {
  whole = wholeInstallation();
  const { call, waitFor } = await whole.start({ VOLUME_DRIVER: 'directory', RESTIC_REPOSITORY: '' });
  const volume = await call('POST', '/v2/volumes', { name: 'files', size_gb: 1 });
  await waitFor(`/v2/volumes/${volume.id}`, ['available']);
  await call('POST', '/v2/notifiers', { name: 'Of before', type: 'webhook', config: { url: 'https://example.com/' } });
  files = path.join(whole.data, 'volumes', volume.id, 'data');
  makeOddFiles(files);
  listing = listingOf(files);
  archive = path.join(path.dirname(whole.data), 'one.tar.gz.age');
});

afterAll(async () => {
  if (otherClaim !== null) fs.rmSync(otherClaim, { force: true });
  await whole.kill();
  if (mounted !== null) execFileSync('umount', ['-l', mounted]);
  await whole.remove();
});

/** Settings of the repository are those of the installation; no program of restic is found. */
const platform = (...words: string[]) => whole.platform(words, { RESTIC_REPOSITORY: '' });

test('it is written while the installation runs, and is proven', async () => {
  const { code, out, err } = platform('backup', '--to', archive, '--json');
  expect([code, err]).toEqual([0, expect.any(String)]);
  expect(JSON.parse(out).data[0]).toMatchObject({ proven: true, added_bytes: fs.statSync(archive).size });
  expect(fs.statSync(archive).mode & 0o777).toBe(0o600);
  // A sparse file of 5 GiB takes what is written in it.
  expect(fs.statSync(archive).size).toBeLessThan(100e6);
  expect(fs.readdirSync(path.join(whole.data, 'backup'))).not.toContain('last.json');
});

test('gzip and tar open what is in its encryption', async () => {
  const plain = `${archive}.gz`;
  await pipeline(Readable.from(decryptAge(fs.createReadStream(archive), 'of the test')), fs.createWriteStream(plain));
  const manifest = execFileSync('tar', ['-xzOf', plain, 'backup/point/manifest.json'], { encoding: 'utf8' });
  expect(JSON.parse(manifest)).toMatchObject({ format: 1, version, counts: { notifiers: 1 } });
  fs.rmSync(plain);
});

withAge('the program age opens it', () => {
  const command = `age --decrypt ${archive} 2>/dev/null | tar -tz | grep -c secret-key`;
  const { stdout } = spawnSync('script', ['-qec', command, '/dev/null'], { input: 'of the test\n', encoding: 'utf8' });
  expect(stdout.trim()).toMatch(/1$/);
});

test('a file that the program age has encrypted is opened', async () => {
  const theirs = Buffer.from(OF_AGE, 'base64');
  const chunks: Buffer[] = [];
  for await (const chunk of decryptAge(Readable.from([theirs]), 'foo bar')) chunks.push(chunk);
  expect(Buffer.concat(chunks).toString()).toBe('of another program\n');
});

test.each([
  ['a file of that name', () => archive, /one\.tar\.gz\.age exists: name another file/],
  ['no directory', () => '/nowhere/one.age', /no directory \/nowhere: is the disk of the backups mounted/],
  ['a place in the data directory', () => path.join(whole.data, 'volumes/one.age'), /is in the data directory/],
])('%s is refused, and nothing is written', (_, to, sentence) => {
  const { code, err } = platform('backup', '--to', to());
  expect([code, err]).toEqual([1, expect.stringMatching(sentence)]);
});

test.each([
  ['none', '', /name a file with a passphrase by --passphrase-file/],
  ['one that is not there', '/nowhere', /cannot be read: \/nowhere/],
  ['one that is empty', '/dev/null', /\/dev\/null has no passphrase/],
])('of passphrases, %s is refused', (_, file, sentence) => {
  const { code, err } = whole.platform(['backup', '--to', `${archive}.2`], { RESTIC_PASSWORD_FILE: file });
  expect([code, err]).toEqual([1, expect.stringMatching(sentence)]);
});

asRoot('a full disk is said, and gets its room back', () => {
  const disk = fs.mkdtempSync(path.join(os.tmpdir(), 'full-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk]);
  try {
    const { code, err } = platform('backup', '--to', path.join(disk, 'one.age'));
    expect([code, err]).toEqual([1, expect.stringMatching(/the disk of \S+ is full: make room there/)]);
    expect(fs.readdirSync(disk)).toEqual([]);
  } finally {
    execFileSync('umount', [disk]);
    fs.rmdirSync(disk);
  }
});

test('one that is killed leaves no archive, and the next goes through', async () => {
  const to = path.join(path.dirname(whole.data), 'killed.age');
  const child = whole.begin(['backup', '--no-proof', '--to', to], { RESTIC_REPOSITORY: '' });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  while (!fs.existsSync(`${to}.new`) && child.exitCode === null) await sleep(5);
  process.kill(-(child.pid as number), 'SIGKILL');
  await ended;
  expect(fs.existsSync(to)).toBe(false);
  expect(platform('backup', '--no-proof', '--to', to).code).toBe(0);
  expect(fs.existsSync(`${to}.new`)).toBe(false);
});

const flip =
  (at: (size: number) => number) =>
  (bytes: Buffer): Buffer => {
    const changed = Buffer.from(bytes);
    const offset = at(bytes.length);
    changed[offset] = (changed[offset] as number) ^ 1;
    return changed;
  };

/** A letter of base64 in the place of one. */
const another =
  (offset: number) =>
  (bytes: Buffer): Buffer => {
    const changed = Buffer.from(bytes);
    changed.write(changed.toString('latin1', offset, offset + 1) === 'A' ? 'B' : 'A', offset, 'latin1');
    return changed;
  };

test.each<[string, (bytes: Buffer) => Buffer, RegExp]>([
  ['a byte of its first line', flip(() => 3), /is not an archive of `platform backup --to`/],
  ['a byte of its key', another(80), /passphrase does not open \S+, or its first bytes have changed/],
  ['a byte of its seal', flip(() => 125), /is spoiled|is not an archive/],
  ['a byte in the middle', flip((size) => size >> 1), /is spoiled: its content has changed/],
  ['a byte at its end', flip((size) => size - 1), /is spoiled: its end has changed/],
  ['without its end', (bytes) => bytes.subarray(0, -70_000), /is spoiled: its end/],
  ['with more behind it', (bytes) => Buffer.concat([bytes, Buffer.alloc(100)]), /is spoiled/],
  ['empty', () => Buffer.alloc(0), /is not an archive/],
])('%s: a restore is refused, and changes nothing', (_, change, sentence) => {
  const spoiled = path.join(path.dirname(whole.data), 'spoiled.age');
  fs.writeFileSync(spoiled, change(fs.readFileSync(archive)));
  const elsewhere = path.join(path.dirname(whole.data), 'elsewhere');
  const { code, err } = whole.platform(['restore', '--from', spoiled], { PLATFORM_DATA_DIR: elsewhere });
  expect([code, err]).toEqual([1, expect.stringMatching(sentence)]);
  expect(fs.readdirSync(elsewhere)).toEqual(['backup']);
  fs.rmSync(elsewhere, { recursive: true });
});

test('the wrong passphrase, and an archive that is not there, are said', () => {
  const env = { PLATFORM_DATA_DIR: path.join(path.dirname(whole.data), 'other'), RESTIC_PASSWORD_FILE: __filename };
  expect(whole.platform(['restore', '--from', archive], env).err).toMatch(/the passphrase does not open/);
  expect(whole.platform(['restore', '--from', '/nowhere.age'], env).err).toMatch(/there is no archive \/nowhere\.age/);
});

test.each([
  ['a newer release', { version: '99.0.0' }, /the backup is of 99\.0\.0, and this is .*: install 99\.0\.0/],
  ['another architecture', { architecture: 'z80' }, /made on z80, and this machine is .* Restore to a machine of/],
  ['a database of another kind', { control: 'dump' }, /set DATABASE_URL to an empty database/],
])('one of %s is refused', async (_, other, sentence) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'foreign-'));
  fs.mkdirSync(path.join(folder, 'backup/point'), { recursive: true });
  const manifest = { format: 1, version, architecture: process.arch, at: '2026-11-28T18:00:00Z', control: 'embedded' };
  fs.writeFileSync(path.join(folder, 'backup/point/manifest.json'), JSON.stringify({ ...manifest, ...other }));
  const tar = execFileSync('tar', ['-czC', folder, 'backup'], { encoding: 'buffer' });
  const file = path.join(folder, 'foreign.age');
  await pipeline(Readable.from(encryptAge(Readable.from([tar]), 'of the test')), fs.createWriteStream(file));
  const env = { PLATFORM_DATA_DIR: path.join(folder, 'data') };
  const restored = () => whole.platform(['restore', '--from', file], env);
  expect(restored()).toMatchObject({ code: 1, err: expect.stringMatching(sentence) });
  // And so it is again, when the restore that has begun is called to go on.
  expect(restored()).toMatchObject({ code: 1, err: expect.stringMatching(sentence) });
  fs.rmSync(folder, { recursive: true });
});

asRoot('a machine with less room is refused before anything is written', () => {
  const disk = fs.mkdtempSync(path.join(os.tmpdir(), 'small-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=10m,mode=755', 'tmpfs', disk]);
  try {
    const { err } = whole.platform(['restore', '--from', archive], { PLATFORM_DATA_DIR: disk });
    expect(err).toMatch(/the backup has 0\.\d GiB, and the disk of \S+ has 0\.0 GiB free: make room/);
  } finally {
    execFileSync('umount', [disk]);
    fs.rmdirSync(disk);
  }
});

test('killed while it fetches and called again, a restore brings all back, as other users where it must', async () => {
  // The ids of before belong to another installation by now.
  const base = isRoot ? claimsOf(path.join(whole.data, 'runtime'))[0] : undefined;
  await whole.destroy();
  if (base !== undefined) {
    otherClaim = path.join(CLAIMS, base);
    fs.writeFileSync(otherClaim, `${path.dirname(whole.data)}\n`);
  }
  if (isRoot) mountDisk(path.join(whole.data, 'volumes'));
  const child = whole.begin(['restore', '--from', archive]);
  let said = '';
  child.stderr?.on('data', (text) => (said += text));
  const ended = new Promise((resolve) => child.on('exit', resolve));
  while (!fs.existsSync(path.join(whole.data, 'restore/volumes')) && child.exitCode === null) await sleep(2);
  expect([child.exitCode, said]).toEqual([null, expect.any(String)]);
  process.kill(-(child.pid as number), 'SIGKILL');
  await ended;
  const { code, err } = platform('restore', '--from', archive);
  expect([code, err]).toEqual([0, expect.any(String)]);
  expect(listingOf(files)).toBe(listing);
  expect(fs.statSync(path.join(files, 'sparse')).blocks).toBeLessThan(10_000);
  if (otherClaim !== null) expect(fs.readFileSync(otherClaim, 'utf8')).not.toContain(whole.data);
  const { call } = await whole.start({ VOLUME_DRIVER: 'directory', RESTIC_REPOSITORY: '' });
  expect((await call('GET', '/v2/notifiers')).data).toMatchObject([{ name: 'Of before' }]);
  const claims = isRoot ? claimsOf(path.join(whole.data, 'runtime')) : ['one'];
  expect(claims).toHaveLength(1);
});

/** As a disk of its own, on which a file system was just made. */
function mountDisk(place: string): void {
  const disk = path.join(path.dirname(whole.data), 'disk');
  fs.mkdirSync(path.join(disk, 'lost+found'), { recursive: true });
  fs.mkdirSync(place);
  execFileSync('mount', ['--bind', disk, place]);
  mounted = place;
}

function claimsOf(directory: string): string[] {
  return fs.readdirSync(CLAIMS).filter((name) => fs.readFileSync(path.join(CLAIMS, name), 'utf8').trim() === directory);
}
