// Programs of tenants that mean harm: what they can make root do, and what they can keep from others.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { appendFileSync, chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { linkSync, lstatSync, readlinkSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { driverContext } from '../../../core/driver';
import { removeTree } from '../../../core/process/remove_tree';
import { SourceError } from '../../../drivers/source';
import { openSource } from '../../../drivers/source/git';
import { startGitServer } from '../../support/git/git_server';
import { openTrial, withinMs, type Trial, type Variant } from '../../support/builds/runtime';
import { anyAddress } from '../../support/outbound';

const isRoot = process.getuid?.() === 0;
const hasPython = spawnSync('python3', ['--version']).status === 0;
const hasBubblewrap = spawnSync('bwrap', ['--version']).status === 0;
const ctx = () => driverContext(withinMs);
// Swaps a directory and a link by renameat2(RENAME_EXCHANGE), as fast as it can: $1 and $2.
const swapper =
  'import ctypes,sys\nc=ctypes.CDLL(None)\na,b=[s.encode() for s in sys.argv[1:]]\n' +
  'while True: c.renameat2(-100,a,-100,b,2)';
const variants: [string, Variant][] = [
  ['bubblewrap', { sandbox: 'bubblewrap' }],
  ['no sandbox', { sandbox: 'none' }],
];
const possible = variants.filter(([, { sandbox }]) => sandbox === 'none' || hasBubblewrap || process.env.CI);
const racing = isRoot && (hasPython || process.env.CI) ? test : test.skip;

jest.setTimeout(90_000);

let room: string;
let swapping: ChildProcess | undefined;
beforeEach(() => {
  room = mkdtempSync('/tmp/platform-hostile-');
  chmodSync(room, 0o711);
});
afterEach(async () => {
  swapping?.kill('SIGKILL');
  swapping = undefined;
  await sleep(50);
  rmSync(room, { recursive: true, force: true });
});

/** A directory that only root may read. */
function secretDirectory(): string {
  const secret = path.join(room, 'secret');
  mkdirSync(secret, { mode: 0o700 });
  for (let i = 0; i < 20; i += 1) writeFileSync(path.join(secret, `key-${i}`), 'secret', { mode: 0o600 });
  return secret;
}

/** A program of the tenant that swaps `directory` for a link to the secret place. */
function swap(directory: string, secret: string, user: number): void {
  const link = `${directory}.link`;
  spawnSync('ln', ['-s', secret, link]);
  spawnSync('chown', ['-Rh', `${user}:${user}`, path.dirname(directory)]);
  swapping = spawn('python3', ['-c', swapper, directory, link], { uid: user, gid: user, stdio: 'ignore' });
}

racing('what is removed while its tenant swaps a directory for a link takes nothing else along', async () => {
  const secret = secretDirectory();
  for (let round = 0; round < 40; round += 1) {
    const cache = path.join(room, `cache-${round}`);
    const inside = path.join(cache, 'inside');
    mkdirSync(inside, { recursive: true });
    for (let i = 0; i < 30; i += 1) writeFileSync(path.join(inside, `key-${i}`), '');
    swap(inside, secret, 700_007);
    await sleep(5);
    await removeTree(cache).catch(() => undefined);
    swapping?.kill('SIGKILL');
    expect(readdirSync(secret)).toHaveLength(20);
  }
});

test('a tree deeper than a path can be long is removed', async () => {
  const deep = path.join(room, 'deep');
  mkdirSync(deep);
  spawnSync(
    'sh',
    [
      '-c',
      `i=0; while [ $i -lt 30 ]; do mkdir ${'d'.repeat(200)} && cd ${'d'.repeat(200)} || exit 1; i=$((i + 1)); done`,
    ],
    { cwd: deep },
  );
  await removeTree(deep);
  expect(existsSync(deep)).toBe(false);
});

describe.each(possible)('in %s', (_name, variant) => {
  let trial: Trial;
  beforeAll(async () => void (trial = await openTrial(variant)));
  afterAll(async () => {
    await trial.close();
    expect(trial.errors).toEqual([]);
  });

  racing('files that are swapped for links while they are copied lead to nothing of the host', async () => {
    const secret = secretDirectory();
    const release = path.join(room, 'release');
    const inside = path.join(release, 'inside');
    mkdirSync(inside, { recursive: true });
    for (let i = 0; i < 20; i += 1) writeFileSync(path.join(inside, `mine-${i}`), '');
    swap(inside, secret, 700_007);
    for (let round = 0; round < 25; round += 1) {
      const id = `ins_swapped${round}`;
      const spec = trial.spec(id, 'cat inside/key-* inside.link/key-* 2>/dev/null; echo done', { directory: release });
      // The copy may fail, as it does where files go away meanwhile.
      if (
        await trial.start(spec).then(
          (handle) => trial.ended(handle),
          () => null,
        )
      )
        expect(await trial.lines(id)).toEqual(['done']);
      await trial.runtime.destroy(id, ctx());
    }
  });

  test('a copy for another application is closed to everybody else, and links in it stay links', async () => {
    const secret = secretDirectory();
    const from = path.join(room, 'from');
    const to = path.join(room, 'to');
    mkdirSync(path.join(from, 'folder'), { recursive: true });
    writeFileSync(path.join(from, 'tool'), 'tool');
    linkSync(path.join(from, 'tool'), path.join(from, 'folder/same'));
    symlinkSync(secret, path.join(from, 'folder/link'));
    spawnSync('chmod', ['4777', path.join(from, 'tool')]);
    spawnSync('chmod', ['777', from]);
    await trial.runtime.copyFiles({ id: 'dep_taking.copy', from, to, tenant: 7, owners: null }, ctx());
    const found = lstatSync(to);
    expect([found.mode & 0o777, found.uid]).toEqual([0o700, process.getuid?.()]);
    expect(readlinkSync(path.join(to, 'folder/link'))).toBe(secret);
    const [tool, same] = ['tool', 'folder/same'].map((name) => lstatSync(path.join(to, name)));
    expect(same?.ino).toBe(tool?.ino);
    const own = await trial.run(trial.spec('ins_taking', 'cat tool; ls folder', { directory: to, tenant: 8 }));
    expect([own.code, await trial.lines('ins_taking')]).toEqual([0, ['toollink', 'same']]);
    expect(lstatSync(path.join(to, 'tool')).uid).toBe(isRoot ? 700_008 : process.getuid?.());
    if (isRoot) expect(lstatSync(path.join(to, 'tool')).mode & 0o6000).toBe(0);
    expect(readdirSync(path.join(room, 'from', 'folder')).sort()).toEqual(['link', 'same']);
  });

  (isRoot ? test : test.skip)('who knows where the files of another application lie cannot read them', async () => {
    const release = path.join(room, 'release');
    mkdirSync(release);
    writeFileSync(path.join(release, 'source.js'), 'private');
    await trial.run(trial.spec('dep_private.build', 'true', { kind: 'task', directory: release }));
    await trial.run(trial.spec('ins_curious', `cat ${release}/source.js; echo done`, { tenant: 8 }));
    expect(await trial.lines('ins_curious')).not.toContain('private');
  });

  test('a log that says it is terabytes long is read to its end at once', async () => {
    await trial.run(trial.spec('ins_sparse', 'echo before', { kind: 'service' }));
    // As units do that were started before there were pipes.
    const out = path.join(trial.options.directory, 'ins_sparse/out');
    truncateSync(out, 2 ** 41);
    appendFileSync(out, 'behind\n');
    const began = Date.now();
    let position: string | null = null;
    let last = '';
    for (let chunks = 0; ; chunks += 1) {
      const chunk = await trial.runtime.readLog('ins_sparse', position);
      position = chunk.position;
      last = chunk.lines.at(-1)?.text ?? last;
      if (!chunk.more) break;
      expect(chunks).toBeLessThan(200);
    }
    expect(last).toBe('behind');
    expect(Date.now() - began).toBeLessThan(10_000);
  });

  test('what a build leaves in its cache counts as its files', async () => {
    const cache = path.join(trial.root, 'cache');
    mkdirSync(cache, { recursive: true });
    const fill = trial.spec('dep_cache.build', `head -c 40000000 /dev/zero > ${cache}/large; sleep 30`, {
      kind: 'task',
      mounts: [{ source: cache, target: cache }],
      limits: { disk_mb: 20, time_ms: 60_000 },
    });
    expect(await trial.run(fill)).toMatchObject({ killed: 'disk' });
  });

  test('a port that somebody else listens on is not one of the unit', async () => {
    const other = net.createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const handle = await trial.start(trial.spec('ins_silent', 'sleep 60'));
    await sleep(300);
    const ports = await trial.runtime.listening(handle);
    expect(ports).not.toContain((other.address() as AddressInfo).port);
    if (process.platform === 'linux') expect(ports).toEqual([]);
    await trial.runtime.destroy('ins_silent', ctx());
    other.close();
  });
});

test('folders without files cannot keep git busy for ever', async () => {
  const git = await startGitServer();
  const source = await openSource({
    directory: path.join(room, 'runtime'),
    sizeMb: 64,
    allowHttpGit: true,
    allowLocalGit: false,
    outbound: anyAddress,
  });
  try {
    git.makeRepository('bomb', { a: 'a' });
    const commit = bomb(git.folder('bomb'));
    const { sha } = await source.fetch('app_bomb', { address: git.url('bomb') }, {}, ctx());
    expect(sha).toBe(commit);
    const exporting = source.export('app_bomb', { address: git.url('bomb') }, sha, path.join(room, 'files'), ctx());
    await expect(exporting).rejects.toBeInstanceOf(SourceError);
    await expect(exporting).rejects.toMatchObject({ failure: 'too_large' });
  } finally {
    await git.close();
  }
});

/** Ten folders of ten folders, eight levels deep, and not one file. */
function bomb(repository: string): string {
  const run = (args: string[], input = '') =>
    spawnSync('git', ['-C', repository, ...args], { input, encoding: 'utf8' }).stdout.trim();
  let tree = run(['mktree']);
  for (let level = 0; level < 8; level += 1)
    tree = run(['mktree'], Array.from({ length: 10 }, (_, i) => `040000 tree ${tree}\td${i}\n`).join(''));
  const commit = run(['-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit-tree', '-m', 'bomb', tree]);
  run(['update-ref', 'refs/heads/main', commit]);
  return commit;
}
