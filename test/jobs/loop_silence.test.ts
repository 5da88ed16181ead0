// A loop that no longer turns is told by its age, and a probe by that of a file.
import { existsSync, mkdtempSync, rmSync, statSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startLoop } from '../../jobs/loop';
import { job } from '../../jobs/volumes/volume';
import { forgetLiveness, startLiveness } from '../../server/platform/liveness';
import { openWorkshop, until, type Workshop } from '../support/runner/workshop';

let workshop: Workshop;
let dataDir: string;
beforeAll(async () => {
  workshop = await openWorkshop();
  dataDir = mkdtempSync(path.join(tmpdir(), 'liveness-'));
});
afterAll(async () => {
  await workshop.close();
  rmSync(dataDir, { recursive: true });
});

test('a loop is silent while something that it waits for never ends, and not while it finds no work', async () => {
  let goOn = (): void => {};
  const stuck = { ...job, prepare: () => new Promise<void>((resolve) => (goOn = resolve)) };
  const loops = [
    startLoop(workshop.parts, { pollMs: 20, jobs: [job] }),
    startLoop(workshop.parts, { pollMs: 20, jobs: [stuck] }),
  ] as const;
  await until('silence', () => Promise.resolve(loops[1].silentMs() > 1_500));
  expect(loops[0].silentMs()).toBeLessThan(1_000);
  goOn();
  await until('a turn', () => Promise.resolve(loops[1].silentMs() < 500));
  await Promise.all(loops.map((loop) => loop.stop()));
  expect(loops.map((loop) => loop.silentMs())).toEqual([0, 0]);
});

test('the file of a probe is touched while no loop is silent for a minute', async () => {
  const file = path.join(dataDir, 'alive');
  const age = (): number => Date.now() - statSync(file).mtimeMs;
  await startLiveness({ dataDir }, () => 60_001)();
  expect(existsSync(file)).toBe(false);
  for (const old of [false, true]) {
    if (old) utimesSync(file, 1, 1);
    await startLiveness({ dataDir }, () => 59_000)();
    expect(age()).toBeLessThan(5_000);
  }
  utimesSync(file, 1, 1);
  await startLiveness({ dataDir }, () => 60_001)();
  expect(age()).toBeGreaterThan(1_000_000);
  await forgetLiveness({ dataDir });
  expect(existsSync(file)).toBe(false);
});
