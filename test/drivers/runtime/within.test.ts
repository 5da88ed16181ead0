/** @tier heavy @quarter 4 @covers drivers/runtime */
// Commands that enter a running unit: they have what its program has, and no more.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { driverContext } from '../../../core/driver';
import { allProcesses, argumentsOf, descendants } from '../../../core/process/processes';
import type { UnitSpec } from '../../../drivers/runtime';
import { openAttachment } from '../../../drivers/runtime/attachment';
import { openTrial, until, withinMs, type Exited, type Trial } from '../../support/builds/runtime';
import { runtimeVariants } from '../../support/builds/runtime_variants';
import { fileNeeds } from '../../support/runner/programs';

jest.setTimeout(60_000);
fileNeeds('perl');

/** All by which the kernel knows the rights of a process. */
const SHOW = [
  "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp)' /proc/self/status",
  'for one in /proc/self/ns/*; do readlink "$one"; done',
  'cat /proc/self/limits /proc/self/oom_score_adj /proc/self/cgroup',
  'ls /proc/self/fd; pwd; umask; id',
  'readlink /proc/self/root || echo no root',
].join('; ');

describe.each(runtimeVariants)('a command within a unit in %s', (name, variant) => {
  const isIsolated = name === 'bubblewrap';
  let trial: Trial;
  beforeAll(async () => {
    trial = await openTrial(variant);
  });
  afterAll(() => trial?.close());

  let number = 0;
  const within = (id: string, command: string, more: Partial<UnitSpec> = {}): UnitSpec => ({
    ...trial.spec(`run_within${(number += 1)}`, command, { kind: 'task', within: id, ...more }),
  });
  const service = async (id: string, command: string, more: Partial<UnitSpec> = {}): Promise<void> => {
    await trial.start(trial.spec(id, `${command}; echo ready; exec sleep 600`, more as object));
    await trial.printed(id, 'ready');
  };
  const shown = async (id: string, command: string, more: Partial<UnitSpec> = {}): Promise<string[]> => {
    const spec = within(id, command, more);
    await trial.run(spec);
    return trial.lines(spec.id);
  };

  test('has the rights, limits and namespaces of its program', async () => {
    await service('ins_same', `{ ${SHOW}; } > /tmp/same-${name.length} 2>&1; cat /tmp/same-${name.length}`);
    const own = (await trial.lines('ins_same')).slice(0, -1);
    expect(own.length).toBeGreaterThan(30);
    const entered = await shown('ins_same', `{ ${SHOW}; } 2>&1`);
    expect(entered).toEqual(own);
  });
});
