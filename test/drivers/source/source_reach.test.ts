import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import path from 'node:path';
import type { GitRemote, SourceDriver } from '../../../drivers/source';
import { startGitServer, type GitServer } from '../../support/git/git_server';
import { processesWith } from '../../support/processes/processes';
import { everythingBelow, openSourceBench, soon, type SourceBench } from '../../support/builds/source_bench';
import { publicAddresses } from '../../support/outbound';

let bench: SourceBench;
let server: GitServer;
let source: SourceDriver;

beforeAll(async () => {
  bench = await openSourceBench();
  ({ server, source } = bench);
});

afterEach(() => {
  server.intercept = null;
  server.requests.length = 0;
});

afterAll(() => bench.close());

describe('where it may go', () => {
  test('not into private networks, unless allowed', async () => {
    const strict = await bench.strict({ outbound: publicAddresses });
    const id = bench.fresh('app');
    server.makeRepository(id, { 'a.txt': 'a' });
    const { port } = new URL(server.url(id));
    for (const host of [
      '127.0.0.1',
      'localhost',
      '2130706433',
      '0x7f.1',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[::127.0.0.1]',
      '10.0.0.1',
      '169.254.169.254',
      '0.0.0.0',
    ]) {
      await bench.expectFailure(
        strict.resolveHead({ address: `http://${host}:${port}/${id}.git` }, {}, soon()),
        'forbidden_address',
        /private network/,
      );
    }
    for (const address of ['ssh://git@localhost/x.git', 'git@127.0.0.1:x.git'])
      await bench.expectFailure(strict.resolveHead({ address }, {}, soon()), 'forbidden_address', /private network/);
    expect(server.requests).toEqual([]);
  });

  test('not to folders of the host nor over http, unless allowed', async () => {
    const strict = await bench.strict({ allowLocalGit: false, allowHttpGit: false });
    const id = bench.fresh('app');
    const sha = server.makeRepository(id, { 'a.txt': 'a' });
    await bench.expectFailure(
      strict.resolveHead({ address: `file://${server.folder(id)}` }, {}, soon()),
      'forbidden_address',
      /on its own disk/,
    );
    await bench.expectFailure(strict.fetch(id, bench.remote(id), {}, soon()), 'forbidden_address', /http without TLS/);
    for (const address of ['ext::sh -c id', 'git://git.example.com/x', '/etc', '--upload-pack=id'])
      await bench.expectFailure(strict.resolveHead({ address }, {}, soon()), 'forbidden_address', /address/);
    expect(await source.fetch(id, { address: `file://${server.folder(id)}` }, {}, soon())).toMatchObject({ sha });
    expect(server.requests).toEqual([]);
  });

  test('the host that was checked is the one that is asked', async () => {
    const id = bench.fresh('app');
    const sha = server.makeRepository(id, { 'a.txt': 'a' });
    const { port } = new URL(server.url(id));
    expect(await source.resolveHead({ address: `http://localhost:${port}/${id}.git` }, {}, soon())).toMatchObject({
      sha,
    });
  });

  test('a host that is not there, a server that answers nothing, an error of the server', async () => {
    await bench.expectFailure(
      source.resolveHead({ address: 'https://no-such-host.invalid/x.git' }, {}, soon()),
      'unreachable',
      /could not be found/,
    );
    await bench.expectFailure(
      source.resolveHead({ address: 'http://127.0.0.1:1/x.git' }, {}, soon()),
      'unreachable',
      /did not answer/,
    );
    server.intercept = () => 'hang';
    await bench.expectFailure(source.resolveHead(bench.remote('x'), {}, soon(500)), 'unreachable', /in time/);
    server.intercept = () => ({ status: 503 });
    await bench.expectFailure(source.resolveHead(bench.remote('x'), {}, soon()), 'unreachable', /Try again/);
    // Those of tests that run beside this one are not meant.
    expect(processesWith(new URL(server.url('x')).host)).toEqual([]);
  });

  test('a redirect is checked like an address', async () => {
    const id = bench.fresh('app');
    const sha = server.makeRepository(id, { 'a.txt': 'a' });
    const renamed = (to: string) => (request: IncomingMessage) =>
      request.url!.startsWith('/old') ? { status: 301, headers: { location: to } } : null;
    server.intercept = renamed(`${server.url(id)}/info/refs?service=git-upload-pack`);
    expect(await source.fetch(id, bench.remote('old'), {}, soon())).toMatchObject({ sha });
    server.intercept = renamed('/login');
    await bench.expectFailure(
      source.resolveHead(bench.remote('old'), {}, soon()),
      'no_repository',
      /is not a Git repository/,
    );
    server.intercept = renamed('file:///etc/info/refs?service=git-upload-pack');
    await bench.expectFailure(
      (await bench.strict({ allowLocalGit: false })).resolveHead(bench.remote('old'), {}, soon()),
      'forbidden_address',
      /disk/,
    );
    server.intercept = renamed(`${server.url('old')}/info/refs?service=git-upload-pack`);
    await bench.expectFailure(source.resolveHead(bench.remote('old'), {}, soon()), 'unreachable', /./);
  });
});

describe('credentials', () => {
  const password = 'p4ss-w0rd-that-shows';
  const encoded = Buffer.from(`ada:${password}`).toString('base64');
  const withPassword = (address: string, word = password): GitRemote => ({
    address,
    credential: { kind: 'basic', username: 'ada', password: word },
  });
  let guarded: GitServer;

  beforeAll(async () => {
    guarded = await startGitServer({ auth: { username: 'ada', password } });
  });
  afterEach(() => void (guarded.intercept = null));
  afterAll(() => guarded.close());

  test('reach the repository and stay out of arguments, files and messages', async () => {
    const id = bench.fresh('app');
    const sha = guarded.makeRepository(id, { 'a.txt': 'a' });
    const first = withPassword(guarded.url(id));
    expect(await source.resolveHead(first, {}, soon())).toMatchObject({ sha });
    const seen: string[] = [];
    guarded.intercept = () => {
      seen.push(...processesWith('git').map(({ args }) => args));
      return null;
    };
    expect(await source.fetch(id, first, {}, soon())).toMatchObject({ sha });
    guarded.intercept = null;
    expect(seen.some((args) => args.includes('remote-http') || args.includes('fetch'))).toBe(true);
    const kept = everythingBelow(path.join(bench.folder, 'runtime'));
    for (const secret of [password, encoded]) {
      expect(seen.join('\n')).not.toContain(secret);
      expect(kept).not.toContain(secret);
    }
  });

  test('wrong or missing: refused, without a word of them', async () => {
    const id = bench.fresh('app');
    guarded.makeRepository(id, { 'a.txt': 'a' });
    for (const given of [withPassword(guarded.url(id), 'wr0ng-w0rd'), { address: guarded.url(id) }]) {
      const error = await bench.expectFailure(source.fetch(id, given, {}, soon()), 'refused', /refused access/);
      expect(JSON.stringify([error.message, error.stack, Object.entries(error)])).not.toMatch(/wr0ng|Basic/);
    }
  });

  test('are for the host of the address alone: not for a redirect, not for a submodule elsewhere', async () => {
    const [id, elsewhere] = [bench.fresh('app'), bench.fresh('elsewhere')];
    const other = server.makeRepository(elsewhere, { 'a.txt': 'a' });
    const sha = guarded.makeRepository(id, {
      m: { mode: '160000', content: other },
      '.gitmodules': `[submodule "m"]\n\tpath = m\n\turl = ${server.url(elsewhere)}\n`,
    });
    await bench.exported(id, withPassword(guarded.url(id)), sha);
    guarded.intercept = () => ({
      status: 302,
      headers: { location: `${server.url(elsewhere)}/info/refs?service=git-upload-pack` },
    });
    expect(await source.resolveHead(withPassword(guarded.url(id)), {}, soon())).toMatchObject({ sha: other });
    expect(server.requests.length).toBeGreaterThan(2);
    expect(server.requests.filter(({ authorization }) => authorization !== null)).toEqual([]);
  });

  test('a submodule of the same host gets them', async () => {
    const [id, part] = [bench.fresh('app'), bench.fresh('part')];
    const other = guarded.makeRepository(part, { 'a.txt': 'a' });
    const sha = guarded.makeRepository(id, {
      m: { mode: '160000', content: other },
      '.gitmodules': `[submodule "m"]\n\tpath = m\n\turl = ../${part}.git\n`,
    });
    expect(existsSync(path.join(await bench.exported(id, withPassword(guarded.url(id)), sha), 'm/a.txt'))).toBe(true);
  });
});

const hasSsh = spawnSync('ssh', ['-V']).error === undefined;

// There need not be a server for ssh: what git calls is the question. This program writes down how it was called, lets
// the real ssh read its options, and then does what the far end would do.
(hasSsh || process.env.CI ? test : test.skip)(
  'over ssh (needs the program ssh): the checked address, our own known hosts, the key in a file of its own that ' +
    'is gone afterwards',
  async () => {
    const id = bench.fresh('app');
    const sha = server.makeRepository(id, { 'a.txt': 'a' });
    const programs = path.join(bench.folder, bench.fresh('programs'));
    mkdirSync(programs);
    const real = execFileSync('sh', ['-c', 'command -v ssh']).toString().trim();
    writeFileSync(
      path.join(programs, 'ssh'),
      `#!/bin/sh
key=$(printf '%s\\n' "$@" | sed -n 's/^IdentityFile="\\(.*\\)"$/\\1/p')
{ printf '%s\\n' "$@"; stat -c 'mode %a' "$key"; cat "$key"; ${real} -G "$@"; } >>${programs}/seen
exec git-upload-pack ${server.folder(id)}
`,
      { mode: 0o755 },
    );
    const before = process.env.PATH;
    process.env.PATH = `${programs}:${execFileSync('git', ['--exec-path']).toString().trim()}:${before}`;
    try {
      const remote: GitRemote = {
        address: 'ssh://git@localhost:2222/x.git',
        credential: { kind: 'ssh_key', private_key: 'THE KEY' },
      };
      expect(await source.resolveHead(remote, {}, soon())).toMatchObject({ sha });
      expect(await source.fetch(id, { ...remote, address: 'git@localhost:x.git' }, {}, soon())).toMatchObject({ sha });
    } finally {
      process.env.PATH = before;
    }
    const seen = readFileSync(path.join(programs, 'seen'), 'utf8');
    expect(seen).toMatch(/HostName=(127\.0\.0\.1|::1)\n/);
    for (const line of [
      'mode 600',
      'THE KEY',
      'hostkeyalias [localhost]:2222',
      'hostkeyalias localhost',
      'identitiesonly yes',
      'batchmode yes',
      'stricthostkeychecking accept-new',
      'identityagent none',
    ]) {
      expect(seen.split('\n')).toContain(line);
    }
    expect(seen).toContain(`userknownhostsfile ${path.join(bench.folder, 'runtime/git/known_hosts')}`);
    expect(everythingBelow(path.join(bench.folder, 'runtime'))).not.toContain('THE KEY');
  },
);

test('hooks, filters and settings of whoever runs the platform have no say', async () => {
  const id = bench.fresh('app');
  const sha = server.makeRepository(id, { 'a.txt': 'a', '.gitattributes': '* filter=evil\n' });
  const home = path.join(bench.folder, 'home');
  execFileSync('mkdir', ['-p', path.join(home, 'template/hooks')]);
  writeFileSync(
    path.join(home, '.gitconfig'),
    `[filter "evil"]\n\tsmudge = touch ${home}/was-here\n[init]\n\ttemplateDir = ${home}/template\n` +
      `[url "http://127.0.0.1:1/"]\n\tinsteadOf = ${server.url(id).slice(0, -5 - id.length)}\n`,
  );
  const before = { ...process.env };
  Object.assign(process.env, {
    HOME: home,
    GIT_CONFIG_PARAMETERS: `'core.fsmonitor'='touch ${home}/was-here'`,
    GIT_SSH_COMMAND: 'false',
    GIT_DIR: home,
    GIT_ASKPASS: 'false',
  });
  try {
    await bench.exported(id, bench.remote(id), sha);
  } finally {
    for (const name of ['GIT_CONFIG_PARAMETERS', 'GIT_SSH_COMMAND', 'GIT_DIR', 'GIT_ASKPASS']) delete process.env[name];
    Object.assign(process.env, before);
  }
  expect(existsSync(path.join(home, 'was-here'))).toBe(false);
});
