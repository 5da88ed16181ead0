/** @tier heavy @quarter 4 @covers drivers/hosted_server drivers/volume */
// SIGKILL while data take the place of others on a disk of their own: the same call goes on, or the old data come back,
// and nothing is left mounted or lying beside.
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
import { mountsUnder } from '../../../drivers/volume/mounts';
import { tryMount } from '../../../drivers/volume/trial';
import { killsAll } from '../../support/processes/kills';

/** Of each way; CONFORMANCE_KILLS=all kills at every continuation. */
const KILLS = 12;
const MEGABYTE = 2 ** 20;
const ctx = () => driverContext(30_000);
const program = path.join(__dirname, '../../support/databases/replacement_killed_child.js');

jest.setTimeout(killsAll ? 3_600_000 : 300_000);

interface Ended {
  continuations: number;
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
function replace(id: string, outcome: 'good' | 'bad' | 'undo', killAt = 0): Promise<Ended | null> {
  const given = JSON.stringify({ directory, id, outcome, killAt });
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

describe.each([
  { before: 'on a disk', hadDisk: true },
  { before: 'without a disk', hadDisk: false },
])('data $before are replaced', ({ hadDisk }) => {
  test.each(['good', 'bad'] as const)('killed with new data that are %s', async (outcome) => {
    if (!can) return console.warn('skipped: images cannot be mounted here');
    const ended = outcome === 'good' ? 'done' : 'invalid: no good';
    const content = outcome === 'good' ? 'new' : 'old';
    const whole = await makeServer(hadDisk);
    const first = await replace(whole, outcome);
    expect(first?.ended).toBe(ended);
    await requireWhole(whole, content, hadDisk);
    const all = first!.continuations;
    const kills = killsAll ? all : KILLS;
    for (let kill = 1; kill <= kills; kill += 1) {
      const id = await makeServer(hadDisk);
      const killed = (await replace(id, outcome, Math.ceil((kill * all) / (kills + 1)))) === null;
      const isUndone = killed && kill % 3 === 0;
      const last = await replace(id, isUndone ? 'undo' : outcome);
      expect(last?.ended).toBe(isUndone || outcome === 'good' ? 'done' : ended);
      const left = await openServerDirectory(engineOf(true), id);
      // Where it had come to its end before it was undone, the new data stay.
      const now = readFileSync(path.join((left as { data: string }).data, 'content'), 'utf8');
      if (isUndone) {
        expect((await replace(id, outcome))?.ended).toBe(ended);
        expect(['old', 'new']).toContain(now);
      } else expect(now).toBe(content);
      await requireWhole(id, content, hadDisk);
    }
  });
});
