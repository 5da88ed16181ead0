import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { driverContext, type DriverContext } from '../../drivers/driver';
import { SourceError, type GitRemote, type SourceDriver, type SourceFailure } from '../../drivers/source';
import { openSource, type SourceOptions } from '../../drivers/source/git';
import { startGitServer, type GitServer } from '../support/git_server';
import { firstOutput, kill, processesWith, spawnProgram } from '../support/processes';

const folder = mkdtempSync(path.join(os.tmpdir(), 'source-'));
const open = { allowHttpGit: true, allowLocalGit: true, allowPrivateAddresses: true, sizeMb: 64 };
let server: GitServer;
let source: SourceDriver;
let next = 0;

beforeAll(async () => {
  server = await startGitServer();
  source = await driver();
});

afterEach(() => {
  server.intercept = null;
  server.requests.length = 0;
});

afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

function driver(options: Partial<SourceOptions> = {}): Promise<SourceDriver> {
  return openSource({ ...open, directory: path.join(folder, 'runtime'), ...options });
}

function soon(ms = 20_000): DriverContext {
  return driverContext(ms);
}

function remote(name: string): GitRemote {
  return { address: server.url(name) };
}

function fresh(word: string): string {
  next += 1;
  return `${word}-${next}`;
}

async function failure(work: Promise<unknown>): Promise<SourceError> {
  const error: unknown = await work.then(() => null, (reason: unknown) => reason);
  if (!(error instanceof SourceError)) throw new Error(`no SourceError but ${String(error)}`);
  expect(error.message).not.toContain(folder);
  return error;
}

async function expectFailure(work: Promise<unknown>, reason: SourceFailure, words: RegExp): Promise<void> {
  expect(await failure(work)).toMatchObject({ failure: reason, message: expect.stringMatching(words) });
}

async function exported(id: string, from: GitRemote, sha: string, by = source): Promise<string> {
  const target = path.join(folder, fresh('files'));
  await by.export(id, from, sha, target, soon());
  return target;
}

function everythingBelow(directory: string): string {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map((entry) => readFileSync(path.join(entry.parentPath, entry.name), 'latin1')).join('\n');
}

describe('what is wanted', () => {
  test('the head of the default branch, of a branch, and of a ref', async () => {
    const id = fresh('app');
    const first = server.makeRepository(id, { 'a.txt': 'one' }, { branch: 'trunk' });
    const side = server.commit(id, { 'a.txt': 'two' }, { branch: 'feature/side', message: 'Second line of work\n\nWith a body' });
    const pull = server.commit(id, { 'a.txt': 'three' }, { branch: 'gone' });
    server.setRef(id, 'refs/pull/7/head', pull);
    server.setRef(id, 'refs/heads/gone', null);
    expect(await source.look(remote(id), {}, soon())).toEqual({ branch: 'trunk', sha: first });
    expect(await source.look(remote(id), { branch: 'feature/side' }, soon())).toEqual({ branch: 'feature/side', sha: side });
    expect(await source.look(remote(id), { ref: 'refs/pull/7/head' }, soon())).toEqual({ branch: null, sha: pull });
    expect(await source.fetch(id, remote(id), { branch: 'feature/side' }, soon())).toEqual({ branch: 'feature/side', sha: side, message: 'Second line of work', author: 'Ada Example <ada@example.com>' });
    expect(await source.fetch(id, remote(id), {}, soon())).toMatchObject({ branch: 'trunk', sha: first, message: 'First commit' });
    expect(await source.fetch(id, remote(id), { ref: 'refs/pull/7/head' }, soon())).toMatchObject({ branch: null, sha: pull });
  });

  test('a commit by its first digits, only on its branch', async () => {
    const id = fresh('app');
    const first = server.makeRepository(id, { 'a.txt': 'one' });
    const head = server.commit(id, { 'a.txt': 'two' });
    const other = server.commit(id, { 'b.txt': 'x' }, { branch: 'other' });
    for (const way of ['look', 'fetch'] as const) {
      const ask = (wanted: object) => (way === 'look' ? source.look(remote(id), wanted, soon()) : source.fetch(id, remote(id), wanted, soon()));
      expect(await ask({ branch: 'main', commit: first.slice(0, 7) })).toMatchObject({ branch: 'main', sha: first });
      expect(await ask({ branch: 'main', commit: head.toUpperCase() })).toMatchObject({ sha: head });
      expect(await ask({ commit: first })).toMatchObject({ branch: 'main', sha: first });
      await expectFailure(ask({ branch: 'main', commit: other }), 'unknown_commit', /no commit .* on the branch main/);
      await expectFailure(ask({ branch: 'main', commit: '0123456' }), 'unknown_commit', /0123456/);
    }
    const scratch = readdirSync(path.join(folder, 'runtime/git'));
    expect(scratch.filter((name) => name.startsWith('scratch'))).toEqual([]);
  });

  test('unknown branches, empty repositories, no repository', async () => {
    const id = fresh('app');
    server.makeRepository(id, { 'a.txt': 'one' });
    const empty = fresh('empty');
    server.makeRepository(empty, {});
    for (const branch of ['nope', 'main/', '--upload-pack=touch /tmp/x', 'a..b', 'ma*']) {
      await expectFailure(source.look(remote(id), { branch }, soon()), 'unknown_branch', /no branch/);
      await expectFailure(source.fetch(id, remote(id), { branch }, soon()), 'unknown_branch', /no branch/);
    }
    await expectFailure(source.look(remote(id), { ref: 'refs/pull/1/head' }, soon()), 'unknown_branch', /no refs\/pull\/1\/head/);
    await expectFailure(source.look(remote(empty), {}, soon()), 'empty', /empty/);
    await expectFailure(source.fetch(empty, remote(empty), { branch: 'main' }, soon()), 'empty', /empty/);
    await expectFailure(source.look(remote('nothing-here'), {}, soon()), 'no_repository', /no Git repository/);
  });

  test('a force push is followed, and the commit before it is not on the branch any more', async () => {
    const id = fresh('app');
    const first = server.makeRepository(id, { 'a.txt': 'one' });
    const second = server.commit(id, { 'a.txt': 'two' });
    await source.fetch(id, remote(id), {}, soon());
    const forced = server.commit(id, { 'a.txt': 'other' }, { parent: first });
    const unrelated = server.commit(id, { 'b.txt': 'b' }, { parent: null, branch: 'unrelated' });
    expect(await source.fetch(id, remote(id), {}, soon())).toMatchObject({ sha: forced });
    expect(await source.fetch(id, remote(id), { branch: 'unrelated' }, soon())).toMatchObject({ sha: unrelated });
    await expectFailure(source.fetch(id, remote(id), { commit: second }, soon()), 'unknown_commit', /no commit/);
    expect(await source.changedPaths(id, second, forced, soon())).toEqual(['a.txt']);
    expect(await source.changedPaths(id, second, '0'.repeat(40), soon())).toBeNull();
    server.setRef(id, 'refs/heads/main', unrelated);
    expect(await source.fetch(id, remote(id), { branch: 'main' }, soon())).toMatchObject({ sha: unrelated });
  });

  test('a branch whose name was a folder of another one before', async () => {
    const id = fresh('app');
    server.makeRepository(id, { 'a.txt': 'one' });
    server.commit(id, { 'a.txt': 'two' }, { branch: 'topic' });
    await source.fetch(id, remote(id), { branch: 'topic' }, soon());
    server.setRef(id, 'refs/heads/topic', null);
    const below = server.commit(id, { 'a.txt': 'three' }, { branch: 'topic/next' });
    expect(await source.fetch(id, remote(id), { branch: 'topic/next' }, soon())).toMatchObject({ sha: below });
  });
});

describe('files', () => {
  test('are those of the commit: modes, links as they are, attributes that hide nothing; again after half an export', async () => {
    const id = fresh('app');
    const sha = server.makeRepository(id, {
      'run.sh': { mode: '100755', content: '#!/bin/sh\n' }, 'link': { mode: '120000', content: '/etc' }, 'ö/space name.txt': 'x', 'hidden.txt': 'y',
      '.gitattributes': 'hidden.txt export-ignore\n*.bin filter=lfs\n', 'big.bin': 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n',
    });
    await source.fetch(id, remote(id), {}, soon());
    const files = await exported(id, remote(id), sha);
    expect(lstatSync(path.join(files, 'run.sh')).mode & 0o111).toBe(0o111);
    expect(readlinkSync(path.join(files, 'link'))).toBe('/etc');
    expect(readFileSync(path.join(files, 'big.bin'), 'utf8')).toMatch(/^version https/);
    expect(readdirSync(files).sort()).toEqual(['.gitattributes', 'big.bin', 'hidden.txt', 'link', 'run.sh', 'ö'].sort());
    expect(readdirSync(path.join(files, 'ö'))).toEqual(['space name.txt']);
    writeFileSync(path.join(files, 'of-before'), '');
    rmSync(path.join(files, 'run.sh'));
    await source.export(id, remote(id), sha, files, soon());
    expect(readdirSync(files).sort()).toEqual(['.gitattributes', 'big.bin', 'hidden.txt', 'link', 'run.sh', 'ö'].sort());
  });

  test('of a commit that is not in the mirror are fetched', async () => {
    const id = fresh('app');
    const sha = server.makeRepository(id, { 'a.txt': 'one' });
    server.commit(id, { 'a.txt': 'two' });
    expect(readFileSync(path.join(await exported(id, remote(id), sha), 'a.txt'), 'utf8')).toBe('one');
    await expectFailure(exported(id, remote(id), 'f'.repeat(40)), 'unknown_commit', /not have/);
  });

  test('of submodules, relative addresses and submodules of submodules included', async () => {
    const [inner, outer, id] = [fresh('inner'), fresh('outer'), fresh('app')];
    const innerSha = server.makeRepository(inner, { 'in.txt': 'in' });
    server.commit(inner, { 'in.txt': 'later' });
    const outerSha = server.makeRepository(outer, { 'out.txt': 'out', 'deep/inner': { mode: '160000', content: innerSha }, '.gitmodules': `[submodule "i"]\n\tpath = deep/inner\n\turl = ../${inner}.git\n` });
    const sha = server.makeRepository(id, {
      'parts/outer': { mode: '160000', content: outerSha }, 'stray': { mode: '160000', content: outerSha },
      '.gitmodules': `[submodule "o"]\n\tpath = parts/outer\n\turl = ${server.url(outer)}\n`,
    });
    const files = await exported(id, remote(id), sha);
    expect(readFileSync(path.join(files, 'parts/outer/deep/inner/in.txt'), 'utf8')).toBe('in');
    expect(readFileSync(path.join(files, 'parts/outer/out.txt'), 'utf8')).toBe('out');
    expect(readdirSync(path.join(files, 'stray'))).toEqual([]);
  });

  test('of a submodule that contains itself end with a word', async () => {
    const id = fresh('app');
    const base = server.makeRepository(id, { 'a.txt': 'a' });
    const address = `[submodule "s"]\n\tpath = s\n\turl = ./../${id}.git\n`;
    const shas = [base];
    for (let i = 0; i < 5; i += 1) shas.push(server.commit(id, { '.gitmodules': address, s: { mode: '160000', content: shas.at(-1)! } }));
    await expectFailure(exported(id, remote(id), shas[5]!), 'refused', /deeper than 3/);
    expect(readFileSync(path.join(await exported(id, remote(id), shas[3]!), 's/s/s/a.txt'), 'utf8')).toBe('a');
  });

  test('a .gitmodules that wants to run something is refused', async () => {
    const id = fresh('app');
    const target = server.makeRepository(fresh('part'), { 'a.txt': 'a' });
    for (const line of ['url = --upload-pack=x', `url = ${server.url(`part-${next}`)}\n\tupdate = !touch /tmp/x`]) {
      const sha = server.makeRepository(fresh(id), { m: { mode: '160000', content: target }, '.gitmodules': `[submodule "m"]\n\tpath = m\n\t${line}\n` });
      await expectFailure(exported(id, remote(`${id}-${next}`), sha), 'refused', /malicious/);
    }
  });

  test('a submodule obeys the same rules of addresses', async () => {
    const id = fresh('app');
    const target = server.makeRepository(fresh('local'), { 'a.txt': 'secret' });
    const strict = await driver({ allowLocalGit: false, directory: path.join(folder, fresh('runtime')) });
    for (const url of [`file://${server.folder(`local-${next}`)}`, 'ext::sh -c touch% /tmp/x', 'https://user:word@git.example.com/x.git', '/etc']) {
      const sha = server.makeRepository(fresh(id), { m: { mode: '160000', content: target }, '.gitmodules': `[submodule "m"]\n\tpath = m\n\turl = ${url}\n` });
      await expectFailure(exported(id, remote(`${id}-${next}`), sha, strict), 'forbidden_address', /address/);
    }
  });
});

describe('where it may go', () => {
  test('not into private networks, unless allowed', async () => {
    const strict = await driver({ allowPrivateAddresses: false, directory: path.join(folder, fresh('runtime')) });
    const id = fresh('app');
    server.makeRepository(id, { 'a.txt': 'a' });
    const { port } = new URL(server.url(id));
    for (const host of ['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '[::1]', '[::ffff:127.0.0.1]', '10.0.0.1', '169.254.169.254', '0.0.0.0']) {
      await expectFailure(strict.look({ address: `http://${host}:${port}/${id}.git` }, {}, soon()), 'forbidden_address', /private network/);
    }
    for (const address of ['ssh://git@localhost/x.git', 'git@127.0.0.1:x.git']) await expectFailure(strict.look({ address }, {}, soon()), 'forbidden_address', /private network/);
    expect(server.requests).toEqual([]);
  });

  test('not to folders of the host nor over http, unless allowed', async () => {
    const strict = await driver({ allowLocalGit: false, allowHttpGit: false, directory: path.join(folder, fresh('runtime')) });
    const id = fresh('app');
    const sha = server.makeRepository(id, { 'a.txt': 'a' });
    await expectFailure(strict.look({ address: `file://${server.folder(id)}` }, {}, soon()), 'forbidden_address', /disk of this server/);
    await expectFailure(strict.fetch(id, remote(id), {}, soon()), 'forbidden_address', /http without TLS/);
    for (const address of ['ext::sh -c id', 'git://git.example.com/x', '/etc', '--upload-pack=id']) await expectFailure(strict.look({ address }, {}, soon()), 'forbidden_address', /address/);
    expect(await source.fetch(id, { address: `file://${server.folder(id)}` }, {}, soon())).toMatchObject({ sha });
    expect(server.requests).toEqual([]);
  });

  test('the host that was checked is the one that is asked', async () => {
    const id = fresh('app');
    const sha = server.makeRepository(id, { 'a.txt': 'a' });
    const { port } = new URL(server.url(id));
    expect(await source.look({ address: `http://localhost:${port}/${id}.git` }, {}, soon())).toMatchObject({ sha });
  });

  test('a host that is not there, a server that answers nothing, an error of the server', async () => {
    await expectFailure(source.look({ address: 'https://no-such-host.invalid/x.git' }, {}, soon()), 'unreachable', /could not be found/);
    await expectFailure(source.look({ address: 'http://127.0.0.1:1/x.git' }, {}, soon()), 'unreachable', /did not answer/);
    server.intercept = () => 'hang';
    await expectFailure(source.look(remote('x'), {}, soon(500)), 'unreachable', /in time/);
    server.intercept = () => ({ status: 503 });
    await expectFailure(source.look(remote('x'), {}, soon()), 'unreachable', /Try again/);
    expect(processesWith('ls-remote')).toEqual([]);
  });

  test('a redirect is checked like an address', async () => {
    const id = fresh('app');
    const sha = server.makeRepository(id, { 'a.txt': 'a' });
    const renamed = (to: string) => (request: IncomingMessage) => (request.url!.startsWith('/old') ? { status: 301, headers: { location: to } } : null);
    server.intercept = renamed(`${server.url(id)}/info/refs?service=git-upload-pack`);
    expect(await source.fetch(id, remote('old'), {}, soon())).toMatchObject({ sha });
    server.intercept = renamed('/login');
    await expectFailure(source.look(remote('old'), {}, soon()), 'no_repository', /not to a Git repository/);
    server.intercept = renamed('file:///etc/info/refs?service=git-upload-pack');
    await expectFailure((await driver({ allowLocalGit: false })).look(remote('old'), {}, soon()), 'forbidden_address', /disk/);
    server.intercept = renamed(`${server.url('old')}/info/refs?service=git-upload-pack`);
    await expectFailure(source.look(remote('old'), {}, soon()), 'unreachable', /./);
  });
});

describe('credentials', () => {
  const password = 'p4ss-w0rd-that-shows';
  const encoded = Buffer.from(`ada:${password}`).toString('base64');
  const withPassword = (address: string, word = password): GitRemote => ({ address, credential: { kind: 'basic', username: 'ada', password: word } });
  let guarded: GitServer;

  beforeAll(async () => {
    guarded = await startGitServer({ auth: { username: 'ada', password } });
  });
  afterEach(() => void (guarded.intercept = null));
  afterAll(() => guarded.close());

  test('reach the repository and stay out of arguments, files and messages', async () => {
    const id = fresh('app');
    const sha = guarded.makeRepository(id, { 'a.txt': 'a' });
    const first = withPassword(guarded.url(id));
    expect(await source.look(first, {}, soon())).toMatchObject({ sha });
    const seen: string[] = [];
    guarded.intercept = () => {
      seen.push(...processesWith('git').map(({ args }) => args));
      return null;
    };
    expect(await source.fetch(id, first, {}, soon())).toMatchObject({ sha });
    guarded.intercept = null;
    expect(seen.some((args) => args.includes('remote-http') || args.includes('fetch'))).toBe(true);
    const kept = everythingBelow(path.join(folder, 'runtime'));
    for (const secret of [password, encoded]) {
      expect(seen.join('\n')).not.toContain(secret);
      expect(kept).not.toContain(secret);
    }
  });

  test('wrong or missing: refused, without a word of them', async () => {
    const id = fresh('app');
    guarded.makeRepository(id, { 'a.txt': 'a' });
    for (const given of [withPassword(guarded.url(id), 'wr0ng-w0rd'), { address: guarded.url(id) }]) {
      const error = await failure(source.fetch(id, given, {}, soon()));
      expect(error).toMatchObject({ failure: 'refused', message: expect.stringMatching(/refused access/) });
      expect(JSON.stringify([error.message, error.stack, Object.entries(error)])).not.toMatch(/wr0ng|Basic/);
    }
  });

  test('are for the host of the address alone: not for a redirect, not for a submodule elsewhere', async () => {
    const [id, elsewhere] = [fresh('app'), fresh('elsewhere')];
    const other = server.makeRepository(elsewhere, { 'a.txt': 'a' });
    const sha = guarded.makeRepository(id, { m: { mode: '160000', content: other }, '.gitmodules': `[submodule "m"]\n\tpath = m\n\turl = ${server.url(elsewhere)}\n` });
    await exported(id, withPassword(guarded.url(id)), sha);
    guarded.intercept = () => ({ status: 302, headers: { location: `${server.url(elsewhere)}/info/refs?service=git-upload-pack` } });
    expect(await source.look(withPassword(guarded.url(id)), {}, soon())).toMatchObject({ sha: other });
    expect(server.requests.length).toBeGreaterThan(2);
    expect(server.requests.filter(({ authorization }) => authorization !== null)).toEqual([]);
  });

  test('a submodule of the same host gets them', async () => {
    const [id, part] = [fresh('app'), fresh('part')];
    const other = guarded.makeRepository(part, { 'a.txt': 'a' });
    const sha = guarded.makeRepository(id, { m: { mode: '160000', content: other }, '.gitmodules': `[submodule "m"]\n\tpath = m\n\turl = ../${part}.git\n` });
    expect(existsSync(path.join(await exported(id, withPassword(guarded.url(id)), sha), 'm/a.txt'))).toBe(true);
  });
});

describe('bad days', () => {
  const noise = () => Buffer.from(Array.from({ length: 3 << 20 }, () => Math.floor(Math.random() * 256)));

  test('a repository that is too large leaves nothing behind', async () => {
    const id = fresh('app');
    const small = await driver({ sizeMb: 2, directory: path.join(folder, fresh('runtime')) });
    server.makeRepository(id, { 'a.bin': noise() });
    await expectFailure(small.fetch(id, remote(id), {}, soon()), 'too_large', /\(2 MB\)/);
    expect(await small.list(soon())).toEqual([]);
  });

  test('files that are small in the pack and large when written are not written', async () => {
    const id = fresh('app');
    const small = await driver({ sizeMb: 2, directory: path.join(folder, fresh('runtime')) });
    const sha = server.makeRepository(id, { 'a.bin': Buffer.alloc(3 << 20) });
    await small.fetch(id, remote(id), {}, soon());
    await expectFailure(exported(id, remote(id), sha, small), 'too_large', /\(2 MB\)/);
  });

  test('a mirror full of what was pushed away begins anew', async () => {
    const id = fresh('app');
    const small = await driver({ sizeMb: 5, directory: path.join(folder, fresh('runtime')) });
    server.makeRepository(id, { 'a.bin': noise() });
    await small.fetch(id, remote(id), {}, soon());
    const head = server.commit(id, { 'a.bin': noise() }, { parent: null });
    expect(await small.fetch(id, remote(id), {}, soon())).toMatchObject({ sha: head });
  });

  test('cut off in the middle, by the end of the context and by the end of the process: the next call mends it', async () => {
    const id = fresh('app');
    const sha = server.makeRepository(id, { 'a.bin': noise(), 'b.txt': 'b' });
    const cut = new AbortController();
    const isPack = (request: IncomingMessage) => request.method === 'POST' && request.headers['content-length'] !== undefined;
    let posts = 0;
    server.intercept = (request) => (isPack(request) && (posts += 1) >= 3 ? (setTimeout(() => cut.abort(), 50), 'hang') : null);
    await expectFailure(source.fetch(id, remote(id), {}, { signal: cut.signal, deadline: Date.now() + 20_000 }), 'unreachable', /in time/);
    expect(processesWith(server.url(id))).toEqual([]);
    const directory = path.join(folder, 'runtime');
    const child = spawnProgram(`
      require('./drivers/source/git').openSource(${JSON.stringify({ ...open, directory })}).then((source) => {
        process.stdout.write('ready');
        return source.fetch(${JSON.stringify(id)}, ${JSON.stringify(remote(id))}, {}, { signal: new AbortController().signal, deadline: Infinity });
      })`, []);
    posts = 0;
    const hanging = new Promise<void>((resolve) => (server.intercept = (request) => (isPack(request) && (posts += 1) >= 3 ? (resolve(), 'hang') : null)));
    await firstOutput(child);
    await hanging;
    await kill(child);
    expect(processesWith(server.url(id)).length).toBeGreaterThan(0);
    const repository = path.join(directory, 'mirrors', id, 'repository');
    for (const lock of ['HEAD.lock', 'packed-refs.lock', 'refs/heads.lock', 'config.lock', 'shallow.lock']) writeFileSync(path.join(repository, lock), '');
    writeFileSync(path.join(repository, 'objects/pack/tmp_pack_abcdef'), 'half');
    server.intercept = null;
    expect(await source.fetch(id, remote(id), {}, soon())).toMatchObject({ sha });
    expect(processesWith(server.url(id))).toEqual([]);
    expect(existsSync(path.join(repository, 'objects/pack/tmp_pack_abcdef'))).toBe(false);
    expect(existsSync(path.join(await exported(id, remote(id), sha), 'a.bin'))).toBe(true);
  });

  test('a mirror without its inner parts, and one with broken packs, are made anew', async () => {
    const id = fresh('app');
    server.makeRepository(id, { 'a.txt': 'a' });
    await source.fetch(id, remote(id), {}, soon());
    const repository = path.join(folder, 'runtime/mirrors', id, 'repository');
    rmSync(path.join(repository, 'HEAD'));
    const sha = server.commit(id, { 'a.txt': 'b' });
    expect(await source.fetch(id, remote(id), {}, soon())).toMatchObject({ sha });
    for (const name of readdirSync(path.join(repository, 'objects/pack'))) {
      rmSync(path.join(repository, 'objects/pack', name));
      writeFileSync(path.join(repository, 'objects/pack', name), 'no pack');
    }
    expect(await source.fetch(id, remote(id), {}, soon())).toMatchObject({ sha });
    const later = server.commit(id, { 'a.txt': 'c' });
    expect(await source.fetch(id, remote(id), {}, soon())).toMatchObject({ sha: later });
  });

  test('many fetches at once of one mirror, and of many', async () => {
    const id = fresh('app');
    const sha = server.makeRepository(id, { 'a.txt': 'a' });
    const all = await Promise.all(Array.from({ length: 6 }, (_, i) => source.fetch(i % 2 ? id : `${id}-${i}`, remote(id), {}, soon())));
    expect(new Set(all.map((one) => one.sha))).toEqual(new Set([sha]));
    expect(await source.list(soon())).toEqual(expect.arrayContaining([id, `${id}-0`]));
    await source.forget(id, soon());
    await source.forget(id, soon());
    expect(await source.list(soon())).not.toContain(id);
  });

  test('an id that leads elsewhere is none', async () => {
    await expect(source.fetch('../x', remote('x'), {}, soon())).rejects.toThrow(/not valid/);
  });
});

test('hooks, filters and settings of whoever runs the platform have no say', async () => {
  const id = fresh('app');
  const sha = server.makeRepository(id, { 'a.txt': 'a', '.gitattributes': '* filter=evil\n' });
  const home = path.join(folder, 'home');
  execFileSync('mkdir', ['-p', path.join(home, 'template/hooks')]);
  writeFileSync(path.join(home, '.gitconfig'), `[filter "evil"]\n\tsmudge = touch ${home}/was-here\n[init]\n\ttemplateDir = ${home}/template\n[url "http://127.0.0.1:1/"]\n\tinsteadOf = ${server.url(id).slice(0, -5 - id.length)}\n`);
  const before = { ...process.env };
  Object.assign(process.env, { HOME: home, GIT_CONFIG_PARAMETERS: `'core.fsmonitor'='touch ${home}/was-here'`, GIT_SSH_COMMAND: 'false', GIT_DIR: home, GIT_ASKPASS: 'false' });
  try {
    await exported(id, remote(id), sha);
  } finally {
    for (const name of ['GIT_CONFIG_PARAMETERS', 'GIT_SSH_COMMAND', 'GIT_DIR', 'GIT_ASKPASS']) delete process.env[name];
    Object.assign(process.env, before);
  }
  expect(existsSync(path.join(home, 'was-here'))).toBe(false);
});
