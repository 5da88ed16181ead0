/** @tier heavy @quarter 2 @covers drivers/runtime drivers/volume */
// The disk of an instance: hard where the host can mount images, measured elsewhere. With real processes.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { driverContext } from '../../../core/driver';
import { openTrial, until, withinMs, type Trial, type Variant } from '../../support/builds/runtime';

const MB = 2 ** 20;
const FILLING =
  'i=0; while i=$((i+1)); [ $i -le 25 ]; do head -c 4000000 /dev/zero > file$i || break; sleep 0.05; done';
const hasBubblewrap = spawnSync('bwrap', ['--version']).status === 0;
const ctx = () => driverContext(withinMs);
const sandboxes: Variant['sandbox'][] = hasBubblewrap || process.env.CI ? ['bubblewrap', 'none'] : ['none'];

/** Lines of /proc/mounts and attached images with the path in them. */
function mountedIn(directory: string): string[] {
  const loops = spawnSync('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE'], { encoding: 'utf8' }).stdout;
  return `${readFileSync('/proc/mounts', 'utf8')}${loops ?? ''}`.split('\n').filter((line) => line.includes(directory));
}

async function isHard({ runtime }: Trial): Promise<boolean> {
  return (await runtime.fingerprint(ctx())).facts.disk_limit === 'hard';
}

jest.setTimeout(60_000);

describe.each(sandboxes)('sandbox: %s', (sandbox) => {
  let trial: Trial;
  let hard: boolean;
  beforeAll(async () => {
    trial = await openTrial({ sandbox });
    hard = await isHard(trial);
    if (process.env.CI && process.getuid?.() === 0) expect(hard).toBe(sandbox === 'bubblewrap');
  });
  afterAll(async () => {
    await trial.close();
    expect(mountedIn(trial.root)).toEqual([]);
    expect(trial.errors).toEqual([]);
  });

  test('writes fail at the limit, in /tmp too, and succeed once files are gone', async () => {
    if (!hard) return;
    const tmp = '"${TMPDIR:-/tmp}"';
    const rest = `cp file1 ${tmp}/copy; rm file1 file2; cp file3 ${tmp}/copy && echo goes on; sleep 60`;
    const handle = await trial.start(trial.spec('ins_disk', `${FILLING}; ${rest}`, { limits: { disk_mb: 40 } }));
    await trial.printed('ins_disk', 'goes on');
    const lines = (await trial.lines('ins_disk')).join('\n');
    expect(lines.match(/No space left on device/g)?.length).toBeGreaterThan(1);
    expect(statSync(path.join(trial.options.directory, 'ins_disk/disk.ext4')).blocks * 512).toBeLessThan(41 * MB);
    expect(await trial.runtime.inspect(handle)).toEqual({ state: 'running' });
    await trial.runtime.destroy('ins_disk', ctx());
    expect(mountedIn(trial.root)).toEqual([]);
  });

  test('the log says that the disk is full', async () => {
    if (!hard) return;
    const spec = trial.spec('ins_full', `${FILLING}; sleep 60`, { limits: { disk_mb: 40 } });
    await trial.start(spec);
    await trial.printed('ins_full', 'The disk of 40 MB is full. Writes fail until files are deleted.');
    await trial.runtime.destroy('ins_full', ctx());
  });

  test('files that do not fit are refused, and nothing stays', async () => {
    if (!hard) return;
    const directory = path.join(trial.root, 'large');
    mkdirSync(directory);
    writeFileSync(path.join(directory, 'large'), Buffer.alloc(50 * MB));
    const spec = trial.spec('ins_large', 'sleep 60', { directory, limits: { disk_mb: 40 } });
    await expect(trial.start(spec)).rejects.toMatchObject({
      reason: 'invalid',
      message: expect.stringMatching(/^The files of the application do not fit on the disk of an instance/),
    });
    expect(await trial.runtime.list()).not.toContain('ins_large');
    expect(mountedIn(trial.root)).toEqual([]);
  });

  test('a full disk of empty files is told too', async () => {
    if (!hard) return;
    const making = 'i=0; while i=$((i+1)); touch file$i; do :; done; sleep 60';
    await trial.start(trial.spec('ins_many', making, { limits: { disk_mb: 8 } }));
    await trial.printed('ins_many', 'The disk of 8 MB is full. Writes fail until files are deleted.');
    await trial.runtime.destroy('ins_many', ctx());
  });

  test('a disk outlives the process that made it; one that a start of the host left is made anew', async () => {
    if (!hard) return;
    const spec = trial.spec('ins_kept', 'echo old > file; sleep 60', { limits: { disk_mb: 40 } });
    const handle = await trial.start(spec);
    await trial.reopen();
    expect(await trial.runtime.inspect(handle)).toEqual({ state: 'running' });
    await trial.runtime.stop(handle, { grace_ms: 100 }, ctx());
    const unit = path.join(trial.options.directory, 'ins_kept');
    expect(spawnSync('umount', [path.join(unit, 'disk')]).status).toBe(0);
    spawnSync('rm', ['-f', path.join(unit, 'handle'), path.join(unit, 'exit')]);
    await trial.start({ ...spec, command: 'cat hello.txt; cat file || echo new; sleep 60' });
    await trial.printed('ins_kept', 'new');
    expect(await trial.lines('ins_kept')).toContain('hello');
    await trial.runtime.destroy('ins_kept', ctx());
    expect(mountedIn(trial.root)).toEqual([]);
  });
});

test('where disks are measured, an instance that writes too much ends', async () => {
  const trial = await openTrial({ sandbox: sandboxes[0]!, disks: 'soft' });
  try {
    expect(await isHard(trial)).toBe(false);
    const handle = await trial.start(trial.spec('ins_soft', `${FILLING}; sleep 60`, { limits: { disk_mb: 40 } }));
    await until(async () => (await trial.runtime.inspect(handle)).state === 'exited');
    expect(await trial.runtime.inspect(handle)).toMatchObject({ killed: 'disk' });
    expect(mountedIn(trial.root)).toEqual([]);
  } finally {
    await trial.close();
  }
});
