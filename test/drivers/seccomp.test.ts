// System calls that a unit must not reach, tried by perl, which every Debian has, in a sandbox and in an image.
import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { unitFilter } from '../../drivers/runtime/seccomp';
import { openTrial, type Trial } from '../support/runtime';

const hasBubblewrap = spawnSync('bwrap', ['--version']).status === 0;
const canRun = (hasBubblewrap || process.env.CI) && process.arch === 'x64';
const [EPERM, EINVAL, ESRCH, ENOSYS, EAFNOSUPPORT, EPROTONOSUPPORT] = [1, 22, 3, 38, 97, 93];

/** Name, number and arguments of a call, and the error that it ends with; 0: it succeeds. */
const calls: [name: string, args: string, errno: number][] = [
  ['io_uring_setup', '425, 1, 0', ENOSYS],
  ['clone3', '435, 0, 0', ENOSYS],
  ['keyctl', '250, 0, -3, 0', EPERM],
  ['add_key', '248, 0, 0, 0, 0, 0', EPERM],
  ['bpf', '321, 0, 0, 0', EPERM],
  ['perf_event_open', '298, 0, 0, -1, -1, 0', EPERM],
  ['userfaultfd', '323, 0', EPERM],
  ['process_vm_readv', '310, $$, 0, 0, 0, 0, 0', EPERM],
  ['ptrace: attach', '101, 16, 1, 0, 0', EPERM],
  ['ptrace: seize', '101, 0x4206, 1, 0, 0', EPERM],
  ['ptrace: continue, of no child', '101, 7, 999999, 0, 0', ESRCH],
  ['unshare: user', '272, 0x10000000', EPERM],
  ['unshare: files', '272, 0x400', 0],
  ['clone: user', '56, 0x10000011, 0, 0, 0, 0', EPERM],
  ['setns', '308, 0, 0', EPERM],
  ['mount', '165, 0, 0, 0, 0, 0', EPERM],
  ['socket: vsock', '41, 40, 1, 0', EAFNOSUPPORT],
  ['socket: kernel crypto', '41, 38, 5, 0', EAFNOSUPPORT],
  ['socket: inet, unknown protocol', '41, 2, 1, 250', EPROTONOSUPPORT],
  ['ioctl: TIOCSTI', '16, 0, 0x5412, 0', EPERM],
  ['a call of x32', '0x40000000 + 39', ENOSYS],
  ['sched_yield', '24', 0],
  ['kill, of no signal', '62, $$, 999', EINVAL],
];

const attempt =
  'sub attempt { my ($name, @args) = @_; $! = 0; my $result = syscall(shift @args, @args); ' +
  'print "$name=", $result < 0 ? $! + 0 : 0, "\\n" }';
const script = [attempt, ...calls.map(([name, args]) => `attempt("${name}", ${args});`)].join(' ');
const command = `exec perl -e '${script}'`;
const expected = calls.map(([name, , errno]) => `${name}=${errno}`);

(canRun ? describe : describe.skip)('a unit in a sandbox', () => {
  let trial: Trial;
  beforeAll(async () => void (trial = await openTrial({ sandbox: 'bubblewrap' })));
  afterAll(() => trial.close());

  test('reaches no system call that leads beyond it', async () => {
    expect((await trial.run(trial.spec('ins_calls', command))).code).toBe(0);
    expect(await trial.lines('ins_calls')).toEqual(expected);
  });

  test('nor does a program in an image', async () => {
    const directory = path.join(trial.root, 'image');
    mkdirSync(directory);
    for (const name of ['usr', 'app', 'proc', 'dev', 'tmp', 'etc']) mkdirSync(path.join(directory, name));
    for (const name of ['bin', 'lib', 'lib64']) symlinkSync(`usr/${name}`, path.join(directory, name));
    const image = { command: null, env: {}, working_directory: '/', user: { uid: 1000, gid: 1000, home: '/' } };
    const spec = trial.spec('ins_image', command, { kind: 'task', directory, image, readable: ['/usr'] });
    expect(await trial.run(spec)).toMatchObject({ code: 0 });
    expect(await trial.lines('ins_image')).toEqual(expected);
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
