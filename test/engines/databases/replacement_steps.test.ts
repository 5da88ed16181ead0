/** @tier heavy @quarter 4 @covers drivers/hosted_server drivers/volume */
// Each step of a replacement of data on a disk of their own in turn: killed with -9 in it and at its end, and a failure
// of it. The same call goes on, or the old data come back, and nothing is left mounted or lying beside. The list itself
// is looped over, so a new step is tested here.
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { driverContext } from '../../../core/driver';
import {
  makeServerDirectory,
  openServerDirectory,
  removeServerDirectory,
  type EngineContext,
} from '../../../drivers/hosted_server/server_directory';
import { replacementSteps } from '../../../drivers/hosted_server/replacement';
import { mountsUnder } from '../../../drivers/volume/mounts';
import { tryMount } from '../../../drivers/volume/trial';
import { killsAll } from '../../support/processes/kills';

const NAMES = replacementSteps.map(({ name }) => name);
/** Within a step; CONFORMANCE_KILLS=all kills at every continuation. */
const KILLS = 2;
const MEGABYTE = 2 ** 20;
const ctx = () => driverContext(30_000);
const program = path.join(__dirname, '../../support/databases/replacement_steps_child.js');

jest.setTimeout(killsAll ? 3_600_000 : 300_000);

interface Order {
  step: string;
  act: 'kill_within' | 'kill_after' | 'fail';
  continuation?: number;
}

interface Ended {
  /** By step. */
  continuations: Record<string, number>;
  ended: string;
}

let directory: string;
let can = false;
let servers = 0;
beforeAll(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'replacements-'));
  can =
    process.getuid?.() === 0 &&
    (await tryMount(directory, ctx()).then(
      () => true,
      () => false,
    ));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const engineOf = (disks: boolean) => ({ name: 'trial', directory, disks }) as EngineContext;

/** The directory of a server with old data, with a disk or from before there were any. */
async function makeServer(hadDisk: boolean): Promise<string> {
  const id = `db_${(servers += 1)}`;
  const fill = ({ data }: { data: string }): Promise<void> =>
    Promise.resolve(writeFileSync(path.join(data, 'content'), 'old'));
  await makeServerDirectory(engineOf(hadDisk), id, fill, ctx(), 8 * MEGABYTE);
  return id;
}

/** null where it was killed. */
function replace(id: string, outcome: 'good' | 'bad' | 'undo', at?: Order): Promise<Ended | null> {
  const given = JSON.stringify({ directory, id, outcome, at });
  return new Promise((resolve) =>
    execFile(process.execPath, [program, given], (_, stdout) => resolve(stdout === '' ? null : JSON.parse(stdout))),
  );
}

const mountsHere = async (): Promise<string[]> => (await mountsUnder(directory)).map(({ point }) => point);
const loopsHere = (): string[] =>
  spawnSync('losetup', ['-l', '-n', '-O', 'BACK-FILE'], { encoding: 'utf8' })
    .stdout.split('\n')
    .filter((line) => line.includes(directory));

/** Just one disk of the size of these data, mounted once, and nothing beside. */
async function requireWhole(id: string, content: 'old' | 'new', hadDisk: boolean): Promise<void> {
  const home = path.join(directory, id);
  const found = await openServerDirectory(engineOf(true), id);
  if (typeof found === 'string') throw new Error(found);
  expect(readFileSync(path.join(found.data, 'content'), 'utf8')).toBe(content);
  const isOnDisk = hadDisk || content === 'new';
  expect(
    readdirSync(home)
      .filter((name) => !name.startsWith('.') && !name.endsWith('.json'))
      .sort(),
  ).toEqual(isOnDisk ? ['conf', 'disk', 'disk.ext4', 'run'] : ['conf', 'data', 'run']);
  if (isOnDisk) {
    expect(statSync(path.join(home, 'disk.ext4')).size).toBe((content === 'new' ? 12 : 8) * MEGABYTE);
    expect(readdirSync(path.join(home, 'disk')).sort()).toEqual(['data', 'lost+found']);
  }
  expect(await mountsHere()).toEqual(isOnDisk ? [path.join(home, 'disk')] : []);
  expect(loopsHere()).toHaveLength(isOnDisk ? 1 : 0);
  await removeServerDirectory(engineOf(true), id, ctx());
  expect([...(await mountsHere()), ...readdirSync(directory)]).toEqual([]);
}

const contentOf = async (id: string): Promise<string> => {
  const found = await openServerDirectory(engineOf(true), id);
  return readFileSync(path.join((found as { data: string }).data, 'content'), 'utf8');
};

describe.each([
  { before: 'on a disk', hadDisk: true },
  { before: 'without a disk', hadDisk: false },
])('data $before are replaced', ({ hadDisk }) => {
  const ENDS = { good: 'done', bad: 'invalid: no good' };
  const CONTENTS = { good: 'new', bad: 'old' } as const;
  const counted: Record<string, Record<string, number>> = {};

  async function killsWithin(step: string, outcome: 'good' | 'bad'): Promise<Order[]> {
    if (!counted[outcome]) {
      const id = await makeServer(hadDisk);
      const ended = await replace(id, outcome);
      expect(ended?.ended).toBe(ENDS[outcome]);
      await requireWhole(id, CONTENTS[outcome], hadDisk);
      counted[outcome] = ended!.continuations;
    }
    const all = counted[outcome]?.[step] ?? 0;
    const kills = killsAll ? all : KILLS;
    return Array.from({ length: kills }, (_, index) => {
      const continuation = Math.ceil(((index + 1) * all) / (kills + 1));
      return { step, act: 'kill_within', continuation };
    });
  }

  /** Killed at the step, it goes on; or, in between, the old data were put back. */
  async function requireGoesOn(outcome: 'good' | 'bad', order: Order, between: 'nothing' | 'undo'): Promise<void> {
    const id = await makeServer(hadDisk);
    expect([order, await replace(id, outcome, order)]).toEqual([order, null]);
    if (between === 'undo') {
      expect((await replace(id, 'undo'))?.ended).toBe('done');
      // Where it had come to its end before it was undone, the new data stay.
      expect(['old', 'new']).toContain(await contentOf(id));
    }
    expect((await replace(id, outcome))?.ended).toBe(ENDS[outcome]);
    expect(await contentOf(id)).toBe(CONTENTS[outcome]);
    await requireWhole(id, CONTENTS[outcome], hadDisk);
  }

  test.each(NAMES)('killed in the step %s and after it', async (step) => {
    if (!can) return console.warn('skipped: images cannot be mounted here');
    const orders: Order[] = [...(await killsWithin(step, 'good')), { step, act: 'kill_after' }];
    for (const [index, order] of orders.entries())
      await requireGoesOn('good', order, index % 2 === 0 ? 'nothing' : 'undo');
  });

  test.each(NAMES)('a failure of the step %s', async (step) => {
    if (!can) return console.warn('skipped: images cannot be mounted here');
    const id = await makeServer(hadDisk);
    expect((await replace(id, 'good', { step, act: 'fail' }))?.ended).toBe('transient: The test broke it.');
    expect((await replace(id, 'good'))?.ended).toBe('done');
    await requireWhole(id, 'new', hadDisk);
  });

  // All steps before it are as above.
  test('killed in the step verify while it puts the old data back', async () => {
    if (!can) return console.warn('skipped: images cannot be mounted here');
    const orders = [...(await killsWithin('verify', 'bad')), ...(await killsWithin('verify', 'bad'))];
    for (const [index, order] of orders.entries())
      await requireGoesOn('bad', order, index < orders.length / 2 ? 'nothing' : 'undo');
  });
});
