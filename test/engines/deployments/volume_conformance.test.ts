/** @tier both @quarter 1 @covers drivers/volume */
import { randomBytes } from 'node:crypto';
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  rmdir,
  statfs,
  writeFile,
} from 'node:fs/promises';
import { mkdtempSync } from 'node:fs';
import { execFile } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { driverContext, type Ensured } from '../../../core/driver';
import { openVolumeDrivers } from '../../../drivers/volume/open';
import type { HostVolumeDriver, VolumeDriverName, HostVolumeObserved, HostVolumeSpec } from '../../../drivers/volume';
import { until } from '../../support/builds/runtime';
import { loopDevices, snapshot } from '../../support/deployments/volume_snapshot';
import { fingerprintOf } from '../../conformance/child';
import type { Recipe } from '../../conformance/child';
import { describeResourceDriver } from '../../conformance/resource_driver';
import type { ResourceFixture } from '../../conformance/resource_driver';

// A GB of these tests: images stay small.
const sizeUnitBytes = 2 ** 20;
const execute = promisify(execFile);

const probe = mkdtempSync(path.join(os.tmpdir(), 'volumes-probe-'));
const loop = fingerprintOf(recipeOf('loop_image', probe));
afterAll(() => rm(probe, { recursive: true }));

describeResourceDriver('directory volumes', () =>
  makeFixture('directory', { 'the directory of the files is gone': (data) => rm(data, { recursive: true }) }),
);

describe('directory volumes', () => {
  let fixture: VolumeFixture;
  beforeEach(async () => void (fixture = await makeFixture('directory', {})));
  afterEach(() => fixture.close());

  test('use is measured, links are not followed, above the size it is over quota', async () => {
    const r = { id: 'vol_used', spec: { size_gb: 1 } };
    const { path: data } = await ensured(fixture.driver, r);
    await writeFile(path.join(fixture.directory, 'elsewhere'), randomBytes(3 * sizeUnitBytes));
    await execute('ln', ['-s', path.join(fixture.directory, 'elsewhere'), path.join(data, 'link')]);
    await writeFile(path.join(data, 'half'), randomBytes(sizeUnitBytes / 2));
    await execute('ln', [path.join(data, 'half'), path.join(data, 'half again')]);
    const half = await observed(fixture.driver, r);
    expect(half).toMatchObject({ over_quota: false, enforcement: 'soft' });
    expect(half.used_bytes).toBeGreaterThanOrEqual(sizeUnitBytes / 2);
    expect(half.used_bytes).toBeLessThan(sizeUnitBytes * 0.6);
    await writeFile(path.join(data, 'more'), randomBytes(sizeUnitBytes));
    expect(await observed(fixture.driver, r)).toMatchObject({ over_quota: true });
    await remove(fixture.driver, r);
    expect((await lstat(path.join(fixture.directory, 'elsewhere'))).size).toBe(3 * sizeUnitBytes);
  });

  test('what tears down follows no link', async () => {
    const r = { id: 'vol_links', spec: { size_gb: 1 } };
    const { path: data } = await ensured(fixture.driver, r);
    const outside = path.join(fixture.directory, 'outside');
    await mkdir(outside);
    await writeFile(path.join(outside, 'precious'), 'x');
    await execute('ln', ['-s', outside, path.join(data, 'link')]);
    await remove(fixture.driver, r);
    expect(await readFile(path.join(outside, 'precious'), 'utf8')).toBe('x');
  });

  test('a tree deeper than a path may be long is measured and removed', async () => {
    const r = { id: 'vol_deep', spec: { size_gb: 1 } };
    const { path: data } = await ensured(fixture.driver, r);
    const dive =
      'd=$(printf "%0200d" 0); for i in $(seq 30); do mkdir $d && cd -P $d || exit 1; done; head -c 100000 ' +
      '/dev/zero > bottom';
    await execute('sh', ['-c', dive], { cwd: data });
    expect((await observed(fixture.driver, r)).used_bytes).toBeGreaterThan(100_000);
    await remove(fixture.driver, r);
  });

  commonRules(() => fixture);
});

if (loop.healthy) {
  describeResourceDriver('loop image volumes', () =>
    makeFixture('loop_image', {
      'unmounted, as after a reboot': (data) => execute('umount', [path.dirname(data)]),
      'unmounted and the place of the mount gone': async (data) => {
        await execute('umount', [path.dirname(data)]);
        await rmdir(path.dirname(data));
      },
      'the directory of the files is gone': (data) => rm(data, { recursive: true }),
    }),
  );

  describe('loop image volumes', () => {
    let fixture: VolumeFixture;
    beforeEach(async () => void (fixture = await makeFixture('loop_image', {})));
    afterEach(() => fixture.close());

    test('the limit is hard', async () => {
      const r = { id: 'vol_hard', spec: { size_gb: 4 } };
      const { path: data } = await ensured(fixture.driver, r);
      await expect(writeFile(path.join(data, 'big'), randomBytes(5 * sizeUnitBytes))).rejects.toMatchObject({
        code: 'ENOSPC',
      });
      expect(await observed(fixture.driver, r)).toMatchObject({ size_gb: 4, enforcement: 'hard', over_quota: false });
      await grown(fixture.driver, { ...r, spec: { size_gb: 16 } });
      await writeFile(path.join(data, 'big'), randomBytes(5 * sizeUnitBytes));
      expect((await observed(fixture.driver, r)).used_bytes).toBeGreaterThan(5 * sizeUnitBytes);
      await remove(fixture.driver, r);
    });

    test('programs and devices in it have no power: nosuid, nodev', async () => {
      const r = { id: 'vol_flags', spec: { size_gb: 4 } };
      const { path: data } = await ensured(fixture.driver, r);
      const { stdout } = await execute('findmnt', ['-no', 'OPTIONS', path.dirname(data)]);
      expect(stdout.trim().split(',')).toEqual(expect.arrayContaining(['nosuid', 'nodev']));
      await remove(fixture.driver, r);
    });

    test('one that is in use is not pulled away; it goes once it is free', async () => {
      const r = { id: 'vol_busy', spec: { size_gb: 4 } };
      const { path: data } = await ensured(fixture.driver, r);
      const user = execFile('sleep', ['60'], { cwd: data });
      await expect(remove(fixture.driver, r)).rejects.toMatchObject({ reason: 'transient' });
      expect(await fixture.driver.observe(r, soon())).toMatchObject({ state: 'present', upToDate: true });
      const gone = new Promise((resolve) => user.on('exit', resolve));
      user.kill('SIGKILL');
      await gone;
      await remove(fixture.driver, r);
    });

    test('one whose image is damaged or gone is not made anew, but can be deleted', async () => {
      const r = { id: 'vol_damaged', spec: { size_gb: 4 } };
      const { path: data } = await ensured(fixture.driver, r);
      const image = path.join(fixture.directory, r.id, 'volume.ext4');
      await execute('umount', [path.dirname(data)]);
      // A sandbox that another test starts has a copy of all mounts for a moment, and the file system writes to its
      // image until then.
      await until(
        async () => (await execute('losetup', ['--list', '--noheadings', '--associated', image])).stdout === '',
      );
      await writeFile(image, Buffer.alloc(4 * sizeUnitBytes));
      await expect(ensured(fixture.driver, r)).rejects.toMatchObject({ reason: 'conflict' });
      await rm(image);
      expect(await fixture.driver.observe(r, soon())).toMatchObject({ state: 'present', upToDate: false });
      await expect(ensured(fixture.driver, r)).rejects.toMatchObject({ reason: 'conflict' });
      await remove(fixture.driver, r);
    });

    commonRules(() => fixture);
  });
} else {
  describe.skip(`loop image volumes, not run because ${loop.reason}`, () => test.todo('the conformance suite'));
}

test('auto takes the hard limit where mounting works; both stay known by name', async () => {
  const directory = await mkdtemp(path.join(os.tmpdir(), 'volumes-'));
  const drivers = await openVolumeDrivers({ directory, choice: 'auto', sizeUnitBytes });
  expect(drivers.default.name).toBe(loop.healthy ? 'loop_image' : 'directory');
  expect([...drivers.byName.keys()].sort()).toEqual(['directory', 'loop_image']);
  expect((await openVolumeDrivers({ directory, choice: 'directory' })).default.enforcement).toBe('soft');
  await rmdir(directory);
});

interface VolumeFixture extends ResourceFixture<HostVolumeSpec, HostVolumeObserved> {
  directory: string;
  driver: HostVolumeDriver;
}

function commonRules(fixture: () => VolumeFixture): void {
  test('it never shrinks', async () => {
    const r = { id: 'vol_shrink', spec: { size_gb: 8 } };
    await ensured(fixture().driver, r);
    await expect(ensured(fixture().driver, { ...r, spec: { size_gb: 4 } })).rejects.toMatchObject({
      reason: 'invalid',
    });
    expect(await observed(fixture().driver, r)).toMatchObject({ size_gb: 8 });
    await remove(fixture().driver, r);
  });

  test('one that was made and is gone is not replaced by an empty one', async () => {
    const { driver, directory } = fixture();
    const r = { id: 'vol_lost', spec: { size_gb: 4 }, ref: { driver: driver.name, name: 'vol_lost' } };
    const before = await readdir(directory);
    await expect(driver.ensure(r, { state: 'absent' }, soon())).rejects.toMatchObject({ reason: 'conflict' });
    expect(await readdir(directory)).toEqual(before);
  });

  test('an id that is no plain name is refused', async () => {
    for (const id of ['../vol_1', 'vol/1', '', '.', 'vol_1\0']) {
      await expect(fixture().driver.observe({ id, spec: { size_gb: 4 } }, soon())).rejects.toMatchObject({
        reason: 'invalid',
      });
    }
  });

  test('errors name no path of the host', async () => {
    const { driver, directory } = fixture();
    await rename(directory, `${directory}-away`);
    await writeFile(directory, 'not a directory');
    const error: unknown = await driver
      .ensure({ id: 'vol_a', spec: { size_gb: 4 } }, { state: 'absent' }, soon())
      .catch((e: unknown) => e);
    expect(error).toMatchObject({ name: 'DriverError' });
    expect((error as Error).message).not.toContain(path.basename(directory));
    await rm(directory);
    await rename(`${directory}-away`, directory);
  });
}

async function makeFixture(
  name: VolumeDriverName,
  drifts: Record<string, (data: string) => Promise<unknown>>,
): Promise<VolumeFixture> {
  const directory = await mkdtemp(path.join(os.tmpdir(), 'volumes-'));
  const drivers = await openVolumeDrivers({ directory, choice: name, sizeUnitBytes });
  const driver = drivers.default as HostVolumeDriver;
  return {
    directory,
    driver,
    recipe: recipeOf(name, directory),
    spec: { size_gb: 4 },
    changed: { size_gb: 9 },
    snapshot: () => snapshot(directory),
    use: ({ path: data }) => writeFile(path.join(data, 'kept'), 'precious'),
    check: async ({ path: data, size_gb }) => {
      expect(await readFile(path.join(data, 'kept'), 'utf8')).toBe('precious');
      expect(size_gb).toBe(9);
      if (name === 'loop_image')
        expect((await statfs(data)).blocks * (await statfs(data)).bsize).toBeGreaterThan(6 * sizeUnitBytes);
    },
    drifts: Object.fromEntries(
      Object.entries(drifts).map(([kind, drift]) => [
        kind,
        async (id: string) => {
          await drift((await observed(driver, { id, spec: { size_gb: 4 } })).path);
        },
      ]),
    ),
    plantForeign: async (id) => {
      await mkdir(path.join(directory, id));
      await writeFile(path.join(directory, id, 'letter'), 'not yours');
      await chmod(path.join(directory, id), 0o700);
    },
    uprootForeign: (id) => rm(path.join(directory, id), { recursive: true }),
    close: async () => {
      expect((await readFile('/proc/self/mountinfo', 'utf8').catch(() => '')).includes(directory)).toBe(false);
      expect(await loopDevices(directory)).toEqual([]);
      await rm(directory, { recursive: true });
    },
  };
}

function recipeOf(name: VolumeDriverName, directory: string): Recipe {
  const factory = { directory: 'directoryVolumes', loop_image: 'loopImageVolumes' }[name];
  return { module: `drivers/volume/${name}.ts`, factory, options: { directory, sizeUnitBytes } };
}

async function ensured(driver: HostVolumeDriver, r: { id: string; spec: HostVolumeSpec }): Promise<HostVolumeObserved> {
  await driver.ensure(r, await driver.observe(r, soon()), soon());
  return observed(driver, r);
}

/** A mount namespace that another program makes meanwhile has a copy of the mount: until it ends, the volume waits. */
async function grown(driver: HostVolumeDriver, r: { id: string; spec: HostVolumeSpec }): Promise<void> {
  const grow = async (): Promise<Ensured> => driver.ensure(r, await driver.observe(r, soon()), soon());
  await until(async () => (await grow()).waiting === undefined);
}

async function observed(
  driver: HostVolumeDriver,
  r: { id: string; spec: HostVolumeSpec },
): Promise<HostVolumeObserved> {
  const seen = await driver.observe(r, soon());
  if (seen.state !== 'present') throw new Error(`the volume is ${seen.state}`);
  return seen.observed;
}

async function remove(driver: HostVolumeDriver, r: { id: string; spec: HostVolumeSpec }): Promise<void> {
  await driver.remove(r, await driver.observe(r, soon()), soon());
}

function soon() {
  return driverContext(20_000);
}
