// Directories in which a driver tries the host.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { abandonedTrials, makeTrial } from '../../../drivers/trial';

const directory = mkdtempSync(path.join(os.tmpdir(), 'trials-'));
afterAll(() => rmSync(directory, { recursive: true }));

test('a trial is abandoned when its process is gone, and only then', () => {
  const { pid } = spawnSync('true');
  const left = path.join(directory, `.trial-${pid}-killed`);
  mkdirSync(left);
  mkdirSync(path.join(directory, 'ins_1'));
  expect(makeTrial(directory)).not.toBe(makeTrial(directory));
  expect(abandonedTrials(directory)).toEqual([left]);
});
