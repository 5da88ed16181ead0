/** @tier heavy @quarter 3 @covers drivers/volume drivers/runtime */
// The disk of the host is full: what is asked for fails and says so, what runs goes on, and with room all is well
// again.
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { nothingOrphaned } from '../support/processes/bad_days';
import { startDeployService, type DeployService } from '../support/deployments/deploy';
import { nodeApp } from '../support/git/repositories';
import { withConfig } from '../support/config';

const home = mkdtempSync(path.join(tmpdir(), 'platform-full-'));
const runtimeDir = path.join(home, 'runtime');
let service: DeployService;

// Only root may mount; elsewhere there is no small disk to fill.
const mounted = process.getuid?.() === 0 && mount();

function mount(): boolean {
  mkdirSync(runtimeDir, { mode: 0o711 });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=48m,mode=711', 'tmpfs', runtimeDir], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

beforeAll(async () => {
  if (mounted)
    service = await startDeployService({
      // Nothing is refused before it has failed.
      ...withConfig({ runtimeDir, alarmSeconds: 3600 }),
      ...{ LOG_LEVEL: 'silent', BUILD_TIMEOUT_SECONDS: '25' },
    });
}, 60_000);
afterAll(async () => {
  await service?.close();
  if (mounted) execFileSync('umount', ['-l', runtimeDir]);
  rmSync(home, { recursive: true, force: true });
}, 60_000);

const ballast = path.join(runtimeDir, 'ballast');

/** Leaves so many bytes. */
function fill(left: number): void {
  const file = openSync(ballast, 'w');
  try {
    for (const part = Buffer.alloc(1 << 16, 1); ;) writeSync(file, part);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(file);
  }
  if (left > 0) execFileSync('truncate', ['-s', `-${left}`, ballast]);
}

const big = (version: string, megabytes: number) => ({
  ...nodeApp(version),
  'big.bin': Buffer.alloc(megabytes << 20, version),
});
const FULL = 'The disk of the host is full. An operator has to free space.';

(mounted ? test : test.skip)(
  'no room to fetch, to write the files, to start',
  async () => {
    const application = await service.application(nodeApp('v1'));
    expect((await application.deploy()).status).toBe('active');
    const traffic = application.traffic('/', 1);
    const reasons: string[] = [];
    // Megabytes: none at all; enough for the mirror, which is packed; for the files too, but not for a copy of them.
    for (const [index, left] of [0, 1.5, 5].entries()) {
      application.push(big(`f${index}`, 4));
      fill(left * 2 ** 20);
      const failed = await application.deploy().finally(() => unlinkSync(ballast));
      expect(failed.status).toBe('failed');
      reasons.push(failed.status_reason);
      await nothingOrphaned(service);
    }
    expect(reasons).toEqual([
      `The host cannot fetch the source. ${FULL}`,
      `The host cannot fetch the source. ${FULL}`,
      expect.stringMatching(new RegExp(`web: ${FULL}$`, 'i')),
    ]);
    const { lost } = await traffic.stop();
    expect(lost).toEqual([]);
    application.push(big('after', 1));
    expect((await application.deploy()).status).toBe('active');
    expect((await application.visit()).body).toBe('after');
    await nothingOrphaned(service);
  },
  120_000,
);
