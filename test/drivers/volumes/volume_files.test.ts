/** @tier heavy @quarter 3 @covers drivers/volume drivers/volume_backup */
// Files of volumes read and replaced as a whole, on the bad days: cut off at each step, in use, full, away, hostile.
import { execFileSync, spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { driverContext } from '../../../core/driver';
import { ABANDONED_MS, sweepBackupStore } from '../../../drivers/backup_store/sweep';
import { s3BackupStore } from '../../../drivers/backup_store/s3';
import type { HostVolumeDriver } from '../../../drivers/volume';
import { VolumeInUse } from '../../../drivers/volume/ext4';
import { directoryVolumes } from '../../../drivers/volume/directory';
import { loopImageVolumes } from '../../../drivers/volume/loop_image';
import {
  makeVolumeBackup,
  removeVolumeBackup,
  restoreVolumeBackup,
} from '../../../drivers/volume_backup/volume_backup';
import type { BackupPlace } from '../../../drivers/volume_backup/parts';
import { openStoreTrial } from '../../support/databases/backup_store';
import { listing, makeOddFiles } from '../../support/volumes/odd_tree';

const sizeUnitBytes = 64 * 2 ** 20;
const top = mkdtempSync(path.join(os.tmpdir(), 'volume-files-'));
const ctx = () => driverContext(120_000);
const passphrase = 'a passphrase of a test';
let serial = 0;
/** Only root makes mounts and device files. */
const isRoot = process.getuid?.() === 0;

jest.setTimeout(240_000);

function canMount(): boolean {
  try {
    const file = path.join(top, 'probe');
    execFileSync('mkfs.xfs', ['-q', '-d', `name=${file},file=1,size=320m`]);
    mkdirSync(path.join(top, 'shared-blocks'));
    execFileSync('mount', ['-o', 'loop', file, path.join(top, 'shared-blocks')]);
    return true;
  } catch {
    return false;
  }
}

const isMounted = canMount();
const onImages = isMounted ? describe : describe.skip;
afterAll(async () => {
  for (const one of made) if (existsSync(one.home)) await remove(one);
  if (isMounted) execFileSync('umount', ['--lazy', path.join(top, 'shared-blocks')]);
  rmSync(top, { recursive: true, force: true });
});

interface Fixture {
  driver: HostVolumeDriver;
  place: BackupPlace;
  volume: { id: string; spec: { size_gb: number } };
  home: string;
  files: string;
  backup: { id: string; volume_id: string; passphrase: string };
}

async function make(open = directoryVolumes, below = top): Promise<Fixture> {
  const directory = path.join(below, `volumes-${(serial += 1)}`);
  const driver = open({ directory, sizeUnitBytes });
  const volume = { id: `vol_${serial}`, spec: { size_gb: 1 } };
  await driver.ensure(volume, { state: 'absent' }, ctx());
  const seen = await driver.observe(volume, ctx());
  if (seen.state !== 'present') throw new Error(seen.state);
  const place = { directory: path.join(top, `backups-${serial}`), store: null };
  const backup = { id: `vbk_${serial}`, volume_id: volume.id, passphrase };
  const one = { driver, volume, place, backup, home: path.join(directory, volume.id), files: seen.observed.path };
  made.push(one);
  return one;
}

const made: Fixture[] = [];

const backUp = ({ driver, volume, place, backup }: Fixture) =>
  makeVolumeBackup(place, { files: driver.files, volume }, backup, null, ctx());
/** The kernel may hold a disk for a moment. */
async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (let turn = 0; ; turn += 1) {
    try {
      return await work();
    } catch (error) {
      if (turn === 30 || !(error instanceof VolumeInUse)) throw error;
      await sleep(1_000);
    }
  }
}

const remove = ({ driver, volume }: Fixture) =>
  retried(async () => driver.remove(volume, await driver.observe(volume, ctx()), ctx()));
const restore = ({ driver, volume, place, backup }: Fixture, key = 'one', bytes = 0) =>
  restoreVolumeBackup(place, { files: driver.files, volume }, backup, { key, bytes }, ctx());

describe.each([
  ['a directory', directoryVolumes, true],
  ['an image', loopImageVolumes, isMounted],
] as const)('%s', (_, open, runs) => {
  const check = runs ? test : test.skip;
  const checkAsRoot = isRoot ? check : test.skip;

  check('gives back all that its files are', async () => {
    const one = await make(open);
    makeOddFiles(one.files);
    const before = listing(one.files);
    expect(await backUp(one)).toMatchObject({ how: 'unused', unread: 0 });
    execFileSync('find', [one.files, '-mindepth', '1', '-delete']);
    await retried(() => restore(one));
    expect(listing(one.files)).toEqual(before);
    await remove(one);
    expect(existsSync(one.home)).toBe(false);
  });

  check('a restore that is cut off anywhere leaves the old files, or the new ones', async () => {
    const one = await make(open);
    writeFileSync(path.join(one.files, 'new'), 'new');
    await backUp(one);
    renameSync(path.join(one.files, 'new'), path.join(one.files, 'old'));
    // Cut off while it is written.
    const cut = driverContext(120_000, AbortSignal.abort());
    await expect(
      restoreVolumeBackup(
        one.place,
        { files: one.driver.files, volume: one.volume },
        one.backup,
        { key: 'one', bytes: 0 },
        cut,
      ),
    ).rejects.toMatchObject({ reason: 'transient' });
    expect(readdirSync(one.files)).toEqual(['old']);
    // Another one, whose archive ends early.
    const part = path.join(one.place.directory, one.volume.id, one.backup.id, 'part-00001.age');
    const whole = readFileSync(part);
    writeFileSync(part, whole.subarray(0, -20));
    await expect(restore(one, 'two')).rejects.toMatchObject({ reason: 'conflict' });
    expect(readdirSync(one.files)).toEqual(['old']);
    writeFileSync(part, whole);
    await retried(() => restore(one, 'three'));
    expect(readdirSync(one.files)).toEqual(['new']);
    // What was written since stays, where the answer of the same restore was lost.
    writeFileSync(path.join(one.files, 'since'), '');
    await retried(() => restore(one, 'three'));
    expect(readdirSync(one.files).sort()).toEqual(['new', 'since']);
    await retried(() => restore(one, 'four'));
    expect(readdirSync(one.files)).toEqual(['new']);
  });

  checkAsRoot('a restore waits while a program has the files', async () => {
    const one = await make(open);
    writeFileSync(path.join(one.files, 'new'), 'new');
    await backUp(one);
    renameSync(path.join(one.files, 'new'), path.join(one.files, 'old'));
    const target = path.join(top, `mounted-${serial}`);
    mkdirSync(target);
    const script = `mount --bind "$0" "$1" && echo ready && exec sleep 60`;
    const program = spawn('unshare', ['--mount', 'sh', '-c', script, one.files, target]);
    await new Promise((resolve) => program.stdout.once('data', resolve));
    try {
      await expect(restore(one)).rejects.toThrow('The volume is in use.');
      expect(readdirSync(one.files)).toEqual(['old']);
      const second = { ...one, backup: { ...one.backup, id: 'vbk_live' } };
      expect(await backUp(second)).toMatchObject({ how: 'live' });
    } finally {
      program.kill('SIGKILL');
      await new Promise((resolve) => program.once('close', resolve));
    }
    await retried(() => restore(one));
    expect(readdirSync(one.files)).toEqual(['new']);
  });

  check('what is given up leaves nothing behind', async () => {
    const one = await make(open);
    await backUp(one);
    const before = readdirSync(one.home).sort();
    await expect(
      one.driver.files.replace(
        one.volume,
        { key: 'x', bytes: 0, owners: null, fill: () => Promise.reject(new Error('x')) },
        ctx(),
      ),
    ).rejects.toThrow();
    await one.driver.files.discardReplacement(one.volume, ctx());
    expect(readdirSync(one.home).sort()).toEqual(before);
  });

  check('a disk that has no room is told before anything is written', async () => {
    const one = await make(open);
    writeFileSync(path.join(one.files, 'old'), '');
    await backUp(one);
    const reason = open === directoryVolumes ? 'capacity' : 'invalid';
    await expect(restore(one, 'large', 2 ** 50)).rejects.toMatchObject({ reason });
    expect(readdirSync(one.files)).toEqual(['old']);
    await expect(
      makeVolumeBackup(
        { ...one.place, directory: path.join(top, 'never') },
        { files: one.driver.files, volume: one.volume },
        one.backup,
        2 ** 50,
        ctx(),
      ),
    ).rejects.toMatchObject({
      reason: 'capacity',
      message: expect.stringMatching(/needs 1048576\.0 GiB, and the disk/),
    });
  });
});

test('a killed swap of directories is finished by whoever comes next', async () => {
  for (const step of ['filled', 'aside', 'in place'] as const) {
    const one = await make();
    writeFileSync(path.join(one.files, 'old'), '');
    const next = path.join(one.home, 'data.next');
    mkdirSync(next);
    writeFileSync(path.join(next, 'new'), '');
    writeFileSync(path.join(one.home, '.restore'), JSON.stringify({ key: 'k', state: 'filled', owners: '100000+5' }));
    if (step !== 'filled') renameSync(one.files, path.join(one.home, 'data.before'));
    if (step === 'in place') renameSync(next, one.files);
    // The job of the volume may be first.
    await one.driver.ensure(one.volume, await one.driver.observe(one.volume, ctx()), ctx());
    expect(readdirSync(one.files)).toEqual([step === 'filled' ? 'old' : 'new']);
    const fill = () => Promise.reject(new Error('It is filled.'));
    await one.driver.files.replace(one.volume, { key: 'k', bytes: 0, owners: null, fill }, ctx());
    expect([readdirSync(one.files), readdirSync(one.home).sort()]).toEqual([
      ['new'],
      ['.owners', '.restore', '.svc-owner', 'data'],
    ]);
    expect(readFileSync(path.join(one.home, '.owners'), 'utf8')).toBe('100000+5');
  }
});

test('a volume that is larger than a part, with very many files, comes back', async () => {
  const one = await make();
  const script = 'cd "$0" && head -c 280M /dev/urandom > large && seq 20000 | xargs touch';
  execFileSync('bash', ['-c', script, one.files], { stdio: 'ignore' });
  const sums = (): string =>
    execFileSync('bash', ['-c', 'cd "$0" && sha256sum large && ls | wc -l', one.files]).toString();
  const before = sums();
  const taken = await backUp(one);
  expect(taken.size_bytes).toBeGreaterThan(280 * 2 ** 20);
  expect(readdirSync(path.join(one.place.directory, one.volume.id, one.backup.id)).sort()).toEqual([
    ...['manifest.json', 'part-00001.age', 'part-00002.age'],
  ]);
  rmSync(path.join(one.files, 'large'));
  await restore(one, 'large');
  expect(sums()).toBe(before);
});

test('a volume whose files are lost gets them back', async () => {
  const one = await make();
  writeFileSync(path.join(one.files, 'kept'), '');
  await backUp(one);
  rmSync(one.home, { recursive: true });
  await retried(() => restore(one));
  expect(readdirSync(one.files)).toEqual(['kept']);
});

test('a tenant who moves links under the backup, and files that grow, lead it nowhere', async () => {
  const one = await make();
  const outside = path.join(top, 'outside');
  mkdirSync(outside, { recursive: true });
  for (let i = 0; i < 200; i += 1) writeFileSync(path.join(outside, `file-${i}`), 'TOP SECRET OF THE HOST');
  mkdirSync(path.join(one.files, 'real'));
  for (let i = 0; i < 200; i += 1) writeFileSync(path.join(one.files, 'real', `file-${i}`), 'x'.repeat(2_000));
  symlinkSync(outside, path.join(one.files, 'link'));
  // Swaps the directory and the link as fast as it can, and lets a file grow.
  const script = `cd "$0" && while :; do mv -T real r && mv -T link real && mv -T real link && mv -T r real
    head -c 65536 /dev/zero >> growing; sleep 0.01; done`;
  const tenant = spawn('sh', ['-c', script, one.files], { stdio: 'ignore' });
  try {
    for (let turn = 0; turn < 5; turn += 1) {
      const backup = { ...one.backup, id: `vbk_race${turn}` };
      const source = { files: one.driver.files, volume: one.volume };
      await makeVolumeBackup(one.place, source, backup, null, ctx());
      const other = await make();
      await restore({ ...other, place: one.place, backup });
      const found = execFileSync('sh', ['-c', 'grep -rl "TOP SECRET" "$0" || :', other.home]).toString();
      expect(found).toBe('');
    }
  } finally {
    tenant.kill('SIGKILL');
    await new Promise((resolve) => tenant.once('close', resolve));
  }
  expect(readdirSync(outside)).toHaveLength(200);
});

(isRoot ? test : test.skip)('device files do not come back', async () => {
  const one = await make();
  execFileSync('mknod', [path.join(one.files, 'disk'), 'b', '7', '0']);
  writeFileSync(path.join(one.files, 'file'), '');
  await backUp(one);
  await retried(() => restore(one));
  expect(readdirSync(one.files)).toEqual(['file']);
});

onImages('an image on a disk that shares blocks', () => {
  const shared = path.join(top, 'shared-blocks');

  test('is backed up as it was at one moment, while a program writes', async () => {
    const one = await make(loopImageVolumes, shared);
    const script = 'cd "$0" && i=0; while :; do i=$((i+1)); echo $i > first; sync; echo $i > second; sync; done';
    const writer = spawn('sh', ['-c', script, one.files], { stdio: 'ignore' });
    try {
      execFileSync('sleep', ['1']);
      for (let turn = 0; turn < 3; turn += 1) {
        const backup = { ...one.backup, id: `vbk_moment${turn}` };
        const source = { files: one.driver.files, volume: one.volume };
        const made = await makeVolumeBackup(one.place, source, backup, null, ctx());
        expect(made.how).toBe('snapshot');
        const other = await make();
        await restore({ ...other, place: one.place, backup });
        const [first, second] = ['first', 'second'].map((name) => readFileSync(path.join(other.files, name), 'utf8'));
        expect([0, 1]).toContain(Number(first) - Number(second));
      }
    } finally {
      writer.kill('SIGKILL');
      await new Promise((resolve) => writer.once('close', resolve));
    }
    expect(readdirSync(one.home).filter((name) => name.includes('snapshot'))).toEqual([]);
    await remove(one);
    expect(existsSync(one.home)).toBe(false);
  });
});

onImages('an image that is too small', () => {
  test('keeps its files', async () => {
    const large = await make();
    execFileSync('sh', ['-c', 'head -c 100M /dev/urandom > "$0"/large', large.files]);
    await backUp(large);
    const small = await make(loopImageVolumes);
    writeFileSync(path.join(small.files, 'old'), '');
    await expect(restore({ ...small, place: large.place, backup: large.backup })).rejects.toMatchObject({
      reason: 'invalid',
      message: expect.stringContaining('do not fit'),
    });
    expect(readdirSync(small.files)).toEqual(['old']);
    await small.driver.files.discardReplacement(small.volume, ctx());
    await remove(small);
    expect(existsSync(small.home)).toBe(false);
  });
});

test('the store of the operator has the parts and the manifest last, and nothing is left on this host', async () => {
  const trial = await openStoreTrial();
  try {
    const one = await make();
    makeOddFiles(one.files);
    const before = listing(one.files);
    one.place = { ...one.place, store: trial.store };
    // Away, or with a key that has expired: it is tried again, and nothing is a backup by half.
    for (const [options, reason] of [
      [{ url: 'http://127.0.0.1:9' }, 'transient'],
      [{ secretAccessKey: 'expired' }, 'unauthorized'],
    ] as const) {
      const store = s3BackupStore({ ...trial.options, ...options });
      await expect(backUp({ ...one, place: { ...one.place, store } })).rejects.toMatchObject({ reason });
    }
    const folder = `${one.volume.id}/backups/${one.backup.id}/`;
    await trial.store.write(`${folder}part-00009.age`, 'of a killed attempt', ctx());
    await backUp(one);
    expect((await trial.keys()).sort()).toEqual([`${folder}manifest.json`, `${folder}part-00001.age`]);
    const left = execFileSync('find', [one.place.directory, '-type', 'f']).toString();
    expect(left).toBe('');
    execFileSync('find', [one.files, '-mindepth', '1', '-delete']);
    await retried(() => restore(one));
    expect(listing(one.files)).toEqual(before);
    expect(await sweepBackupStore(trial.store, 0, ctx())).toBe(0);
    await removeVolumeBackup(one.place, one.backup, ctx());
    expect(await trial.keys()).toEqual([]);
    await trial.store.write(`${folder}part-00001.age`, 'of a killed attempt', ctx());
    expect(await sweepBackupStore(trial.store, ABANDONED_MS, ctx())).toBe(0);
    expect(await sweepBackupStore(trial.store, -60_000, ctx())).toBe(1);
    await expect(restore(one, 'again')).rejects.toThrow('neither on this host nor in its backup store');
  } finally {
    await trial.close();
  }
});
