// System calls that a unit must not reach, tried by perl, which every Debian has, in a sandbox and in an image.
import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { unitFilter } from '../../../drivers/runtime/sandbox/seccomp';
import { HOSTILE_CALLS, HOSTILE_CALLS_ANSWERED } from '../../support/contract/hostile_calls';
import { openTrial, type Trial } from '../../support/builds/runtime';

const command = `exec perl -e '${HOSTILE_CALLS}'`;

const hasBubblewrap = spawnSync('bwrap', ['--version']).status === 0;
const canRun = (hasBubblewrap || process.env.CI) && process.arch === 'x64';
(canRun ? describe : describe.skip)('a unit in a sandbox', () => {
  let trial: Trial;
  beforeAll(async () => void (trial = await openTrial({ sandbox: 'bubblewrap' })));
  afterAll(() => trial.close());

  test('reaches no system call that leads beyond it', async () => {
    expect((await trial.run(trial.spec('ins_calls', command))).code).toBe(0);
    expect(await trial.lines('ins_calls')).toEqual(HOSTILE_CALLS_ANSWERED);
  });

  test('nor does a program in an image', async () => {
    const directory = path.join(trial.root, 'image');
    mkdirSync(directory);
    for (const name of ['usr', 'app', 'proc', 'dev', 'tmp', 'etc']) mkdirSync(path.join(directory, name));
    for (const name of ['bin', 'lib', 'lib64']) symlinkSync(`usr/${name}`, path.join(directory, name));
    const image = { command: null, env: {}, working_directory: '/', user: { uid: 1000, gid: 1000, home: '/' } };
    const spec = trial.spec('ins_image', command, { kind: 'task', directory, image, readable: ['/usr'] });
    expect(await trial.run(spec)).toMatchObject({ code: 0 });
    expect(await trial.lines('ins_image')).toEqual(HOSTILE_CALLS_ANSWERED);
  });

  test('makes namespaces only where its task is a sandbox of its own', async () => {
    const nested = 'unshare --user --map-root-user --mount sh -c "mount -t tmpfs none /tmp && echo mounted"';
    await trial.run(trial.spec('ins_plain', nested));
    expect((await trial.lines('ins_plain')).join()).not.toContain('mounted');
    await trial.run(trial.spec('ins_nested', nested, { kind: 'task', nested: true }));
    expect(await trial.lines('ins_nested')).toEqual(['mounted']);
  });

  // Made by an ordinary user, the sandbox is kept by a process of the same user (docs/SECURITY.md).
  const asRoot = process.getuid?.() === 0 ? test : test.skip;
  asRoot('cannot write the memory of the process that keeps its sandbox (as root)', async () => {
    await trial.run(
      trial.spec('ins_memory', 'cat /proc/1/environ >/dev/null && echo read; : > /proc/1/mem && echo open'),
    );
    const lines = (await trial.lines('ins_memory')).filter((line) => line === 'read' || line === 'open');
    expect(lines).toEqual([]);
  });
});

test('a filter is made for the machines that are known', () => {
  for (const machine of ['x64', 'arm64']) {
    const filter = unitFilter({ machine }) as Buffer;
    expect(filter.length % 8).toBe(0);
    expect(filter.length).toBeLessThan(unitFilter({ machine: 'x64' })!.length + 1);
  }
  expect(unitFilter({ machine: 'mips' })).toBeNull();
});
