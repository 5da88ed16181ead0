// A volume that is to grow while a sandbox uses it, on a host that cannot grow a mounted file system.
import '../../support/databases/no_online_growth';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { driverContext } from '../../../core/driver';
import { loopImageVolumes } from '../../../drivers/volume/loop_image';
import { fingerprintOf } from '../../conformance/child';
import { WITHOUT_DISKS } from '../../support/runner/repository';

const sizeUnitBytes = 2 ** 20;
const directory = mkdtempSync(path.join(os.tmpdir(), 'volumes-'));
const options = { directory, sizeUnitBytes };
const driver = loopImageVolumes(options);
const host = fingerprintOf({ module: 'drivers/volume/loop_image.ts', factory: 'loopImageVolumes', options });
const soon = () => driverContext(20_000);
const small = { id: 'vol_growing', spec: { size_gb: 8 } };
const large = { ...small, spec: { size_gb: 32 } };

jest.setTimeout(60_000);
afterAll(() => rmSync(directory, { recursive: true, force: true }));

(host.healthy ? describe : describe.skip)(`growth of a volume in use${host.healthy ? '' : `: ${host.reason}`}`, () => {
  let data: string;
  let sandbox: ChildProcess;

  beforeEach(async () => {
    data = (await ensure(small)).path;
    writeFileSync(path.join(data, 'kept'), 'precious');
    sandbox = await startSandbox(data);
  });
  afterEach(async () => {
    await stopSandbox(sandbox);
    await driver.remove(large, await driver.observe(large, soon()), soon());
  });

  test('waits for the restart of its application, and serves on meanwhile', async () => {
    for (let turn = 0; turn < 2; turn += 1) {
      const made = await driver.ensure(large, await driver.observe(large, soon()), soon());
      expect(made.waiting).toMatch(/grows to 32 GB at the next restart of its application\.$/);
      expect(await driver.observe(large, soon())).toMatchObject({
        state: 'present',
        upToDate: false,
        observed: { size_gb: 8, path: data },
      });
      expect(readFileSync(path.join(data, 'kept'), 'utf8')).toBe('precious');
    }
    await stopSandbox(sandbox);
    expect((await ensure(large)).size_gb).toBe(32);
    expect(statfsSync(data).blocks * statfsSync(data).bsize).toBeGreaterThan(20 * sizeUnitBytes);
    expect(readFileSync(path.join(data, 'kept'), 'utf8')).toBe('precious');
  });

  test('one that was unmounted under a sandbox is mounted again at its old size', async () => {
    expect(spawnSync('umount', [path.dirname(data)]).status).toBe(0);
    const made = await driver.ensure(large, await driver.observe(large, soon()), soon());
    expect(made.waiting).toBeDefined();
    expect(readFileSync(path.join(data, 'kept'), 'utf8')).toBe('precious');
    await stopSandbox(sandbox);
    expect((await ensure(large)).size_gb).toBe(32);
  });
});

async function ensure(r: typeof small) {
  await driver.ensure(r, await driver.observe(r, soon()), soon());
  const found = await driver.observe(r, soon());
  if (found.state !== 'present') throw new Error(`the volume is ${found.state}`);
  expect(found.upToDate).toBe(true);
  return found.observed;
}

/** A process with mounts of its own that works in the volume, as an instance does. */
async function startSandbox(data: string): Promise<ChildProcess> {
  const script = 'cd "$1" && echo ready && exec sleep 600';
  const args = ['--mount', '--propagation', 'private', 'sh', WITHOUT_DISKS, 'sh', '-c', script, 'sandbox', data];
  const env = { ...process.env, KEEP: path.dirname(data) };
  const child = spawn('unshare', args, { stdio: ['ignore', 'pipe', 'inherit'], env });
  await once(child.stdout, 'data');
  return child;
}

async function stopSandbox(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
