// Large files (Git LFS) of repositories over http with a token, and over ssh with a deploy key.
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import type { GitRemote } from '../../../drivers/source';
import type { RemoteEndpoint } from '../../../drivers/source/address';
import { fetchLargeObject } from '../../../drivers/source/lfs/objects';
import { findLfsServer, type LfsServer } from '../../../drivers/source/lfs/server';
import { makeDeployKey } from '../../../models/integrations/shared_repository/deploy_key';
import { startGitServer, type GitFiles, type GitServer } from '../../support/git/git_server';
import { addLargeFile } from '../../support/builds/lfs_server';
import { processesWith } from '../../support/processes/processes';
import { everythingBelow, openSourceBench, soon, type SourceBench } from '../../support/builds/source_bench';
import { startSshGitServer, type SshGitServer } from '../../support/git/ssh_git_server';
import { publicAddresses } from '../../support/outbound';

const password = 't0ken-for-large-files';
const encoded = Buffer.from(`oauth2:${password}`).toString('base64');
const ATTRIBUTES = '*.bin filter=lfs diff=lfs merge=lfs -text\n';

let bench: SourceBench;
let server: GitServer;
let other: GitServer;
let ssh: SshGitServer;

beforeAll(async () => {
  bench = await openSourceBench();
  server = await startGitServer({ auth: { username: 'oauth2', password } });
  other = await startGitServer();
  ssh = await startSshGitServer(server);
});

afterEach(() => {
  for (const one of [server, other]) Object.assign(one.lfs, { intercept: null, downloads: [] });
  other.requests.length = 0;
});

afterAll(async () => {
  await ssh?.close();
  await server?.close();
  await other?.close();
  await bench?.close();
});

const remoteOf = (id: string): GitRemote => ({
  address: server.url(id),
  credential: { kind: 'basic', username: 'oauth2', password },
});

let serial = 0;
/** Bytes that no other test has. */
const content = (size = 3000): Buffer => Buffer.alloc(size, `content ${(serial += 1)} `);

function makeRepository(files: GitFiles): { id: string; sha: string } {
  const id = bench.fresh('app');
  return { id, sha: server.makeRepository(id, { '.gitattributes': ATTRIBUTES, ...files }) };
}

test('are written in place of their pointers, with their modes; other files stay as they are', async () => {
  const [one, two] = [content(), content(200_000)];
  const [first, second] = [addLargeFile(server.lfs, one), addLargeFile(server.lfs, two)];
  const { id, sha } = makeRepository({
    'one.bin': first.pointer,
    'folder/two.bin': { mode: '100755', content: second.pointer },
    'again.bin': first.pointer,
    'committed.bin': 'not a pointer',
    'pointer.txt': first.pointer,
  });
  const directory = await bench.exported(id, remoteOf(id), sha);
  const read = (name: string): Buffer => readFileSync(path.join(directory, name));
  expect(read('one.bin').equals(one)).toBe(true);
  expect(read('again.bin').equals(one)).toBe(true);
  expect(read('folder/two.bin').equals(two)).toBe(true);
  expect(statSync(path.join(directory, 'folder/two.bin')).mode & 0o777).toBe(0o755);
  expect(statSync(path.join(directory, 'one.bin')).mode & 0o777).toBe(0o644);
  expect(read('committed.bin').toString()).toBe('not a pointer');
  expect(read('pointer.txt').toString()).toBe(first.pointer);
  expect(server.lfs.downloads.sort()).toEqual([first.oid, second.oid].sort());
});

test('are fetched once, and anew when the copy on this host is damaged', async () => {
  const { oid, pointer } = addLargeFile(server.lfs, content());
  const { id, sha } = makeRepository({ 'a.bin': pointer });
  for (let turn = 0; turn < 2; turn += 1) await bench.exported(id, remoteOf(id), sha);
  expect(server.lfs.downloads).toEqual([oid]);
  const kept = path.join(bench.folder, 'runtime/mirrors', id, 'lfs');
  expect(readdirSync(kept)).toEqual([oid]);
  writeFileSync(path.join(kept, oid), 'cut off');
  writeFileSync(path.join(kept, 'partial-of-a-killed-process'), 'x');
  const directory = await bench.exported(id, remoteOf(id), sha);
  expect(readFileSync(path.join(directory, 'a.bin')).equals(server.lfs.objects.get(oid)!)).toBe(true);
  expect(readdirSync(kept)).toEqual([oid]);
});

test('need the token, which stays out of arguments, files, messages and requests to other hosts', async () => {
  const elsewhere = addLargeFile(other.lfs, content());
  const here = addLargeFile(server.lfs, content());
  const { id, sha } = makeRepository({ 'here.bin': here.pointer, 'elsewhere.bin': elsewhere.pointer });
  const seen: string[] = [];
  const signed = { 'X-Signed': 'for this object' };
  server.lfs.intercept = (oid) => {
    seen.push(...processesWith('').map(({ args }) => args));
    if (oid !== elsewhere.oid) return null;
    const href = `${other.url('x')}/info/lfs/objects/${oid}`;
    return { oid, actions: { download: { href, header: signed } } };
  };
  const headers: unknown[] = [];
  other.intercept = ({ headers: sent }) => {
    headers.push(sent);
    return null;
  };
  await bench.exported(id, remoteOf(id), sha);
  other.intercept = null;
  expect(headers).toEqual([expect.objectContaining({ 'x-signed': 'for this object' })]);
  expect(JSON.stringify(headers)).not.toMatch(/authorization/i);
  const kept = everythingBelow(path.join(bench.folder, 'runtime'));
  for (const secret of [password, encoded]) {
    expect(seen.join('\n')).not.toContain(secret);
    expect(kept).not.toContain(secret);
  }
  const fresh = bench.fresh('app');
  server.lfs.intercept = () => 403;
  const refused = bench.exported(fresh, remoteOf(id), sha);
  const error = await bench.expectFailure(refused, 'refused', /refused access to the large files \(Git LFS\)/);
  expect(JSON.stringify([error.message, error.stack])).not.toContain(password);
});

test('that the host lacks, damages, cuts off or cannot give now are told by name', async () => {
  const whole = content();
  const { oid, pointer } = addLargeFile(server.lfs, whole);
  const { id, sha } = makeRepository({ 'a.bin': pointer });
  const attempt = (): Promise<string> => bench.exported(id, remoteOf(id), sha);
  server.lfs.objects.delete(oid);
  await bench.expectFailure(attempt(), 'refused', new RegExp(`does not have the large file ${oid.slice(0, 12)}`));
  server.lfs.objects.set(oid, Buffer.alloc(whole.length, 'x'));
  await bench.expectFailure(attempt(), 'refused', /damaged/);
  server.lfs.objects.set(oid, Buffer.concat([whole, whole]));
  await bench.expectFailure(attempt(), 'refused', /longer than it should be/);
  server.lfs.objects.set(oid, whole.subarray(0, 10));
  await bench.expectFailure(attempt(), 'refused', /damaged/);
  server.lfs.intercept = () => 503;
  await bench.expectFailure(attempt(), 'unreachable', /status 503.*Try again/);
  server.lfs.intercept = () => 404;
  await bench.expectFailure(attempt(), 'refused', /has no large files \(Git LFS\)/);
  server.lfs.intercept = () => ({ oid, actions: {} });
  await bench.expectFailure(attempt(), 'refused', /does not have the large file/);
  const kept = path.join(bench.folder, 'runtime/mirrors', id, 'lfs');
  expect(existsSync(kept) ? readdirSync(kept) : []).toEqual([]);
  server.lfs.intercept = null;
  server.lfs.objects.set(oid, whole);
  expect(readFileSync(path.join(await attempt(), 'a.bin')).equals(whole)).toBe(true);
});

test('count against the size of a source before one of them is fetched', async () => {
  const { oid, pointer } = addLargeFile(server.lfs, content());
  const { id, sha } = makeRepository({ 'a.bin': pointer.replace(/size \d+/, `size ${65 * 2 ** 20}`) });
  await bench.expectFailure(bench.exported(id, remoteOf(id), sha), 'too_large', /64 MB/);
  expect(server.lfs.downloads).not.toContain(oid);
});

test('no address that a repository or its server names leads into a private network', async () => {
  const rules = { allowHttpGit: true, allowLocalGit: true, outbound: publicAddresses };
  const endpoint: RemoteEndpoint = {
    ...{ scheme: 'https', address: 'https://git.example.com/a.git/info/lfs', host: 'git.example.com', port: 443 },
    ips: ['192.0.2.1'],
  };
  const strict: LfsServer = { endpoint, headers: {}, rules, authorizationFor: () => ({ Authorization: 'Basic x' }) };
  const { oid } = addLargeFile(other.lfs, content());
  const directory = path.join(bench.folder, bench.fresh('objects'));
  const { port } = new URL(other.url('x'));
  for (const [href, words] of [
    [`${other.url('x')}/info/lfs/objects/${oid}`, /private network/],
    [`http://localhost:${port}/x`, /private network/],
    [`http://2130706433:${port}/x`, /private network/],
    [`http://[::ffff:127.0.0.1]:${port}/x`, /private network/],
    [`http://[::127.0.0.1]:${port}/x`, /private network/],
    ['http://169.254.169.254/latest/meta-data', /private network/],
    ['file:///etc/passwd', /not a plain http or https URL/],
    ['https://ada:word@git.example.com/x', /not a plain http or https URL/],
    ['nonsense', /not a plain http or https URL/],
  ] as const) {
    const fetched = fetchLargeObject(strict, directory, { oid, size: 3000, href, headers: {} }, soon());
    await bench.expectFailure(fetched, 'forbidden_address', words);
    const found = findLfsServer({ address: '' }, { endpoint, config: [], env: {} }, href, rules, soon());
    await bench.expectFailure(found, 'forbidden_address', words);
  }
  expect(other.requests).toEqual([]);
});

test('another host that .lfsconfig names is asked without the token', async () => {
  const { oid, pointer } = addLargeFile(other.lfs, content());
  const { id, sha } = makeRepository({
    'a.bin': pointer,
    '.lfsconfig': `[lfs]\n\turl = ${other.url('x')}/info/lfs/\n`,
  });
  await bench.exported(id, remoteOf(id), sha);
  expect(other.lfs.downloads).toEqual([oid]);
  expect(other.requests.filter(({ authorization }) => authorization !== null)).toEqual([]);
});

test('a repository with a new name is followed, its token only on the same host', async () => {
  const { pointer } = addLargeFile(server.lfs, content());
  const { id, sha } = makeRepository({ 'a.bin': pointer });
  server.intercept = ({ url = '' }) =>
    url.startsWith(`/${id}.git/info/lfs/objects/batch`)
      ? { status: 307, headers: { location: '/new-name.git/info/lfs/objects/batch' } }
      : null;
  await bench.exported(id, remoteOf(id), sha);
  server.intercept = ({ url = '' }) =>
    url.includes('/objects/')
      ? { status: 302, headers: { location: `${other.url('x')}/info/lfs/objects/batch` } }
      : null;
  const again = bench.fresh('app');
  await bench.exported(again, remoteOf(id), sha).catch(() => undefined);
  server.intercept = null;
  expect(other.requests.length).toBeGreaterThan(0);
  expect(other.requests.filter(({ authorization }) => authorization !== null)).toEqual([]);
});

test('a submodule has large files of its own', async () => {
  const { pointer } = addLargeFile(server.lfs, content());
  const part = makeRepository({ 'part.bin': pointer });
  const { id, sha } = makeRepository({
    m: { mode: '160000', content: part.sha },
    '.gitmodules': `[submodule "m"]\n\tpath = m\n\turl = ../${part.id}.git\n`,
  });
  const directory = await bench.exported(id, remoteOf(id), sha);
  expect(statSync(path.join(directory, 'm/part.bin')).size).toBe(3000);
});

const hasSsh = spawnSync('ssh', ['-V']).error === undefined;

(hasSsh || process.env.CI ? test : test.skip)(
  'over ssh (needs the program ssh): the host gives the address to whoever has the deploy key',
  async () => {
    const { pointer } = addLargeFile(server.lfs, content());
    const { id, sha } = makeRepository({ 'a.bin': pointer });
    const { public_key, private_key } = makeDeployKey('srp_test');
    ssh.keys.add(public_key);
    const remote: GitRemote = { address: ssh.url(id), credential: { kind: 'ssh_key', private_key } };
    const without = bench.exported(id, remote, sha);
    await bench.expectFailure(without, 'refused', /does not give them to a deploy key/);
    ssh.lfs = { href: `${server.url(id)}/info/lfs`, header: { Authorization: `Basic ${encoded}` } };
    // The object is behind the same authorization, which the batch API passes on.
    server.lfs.intercept = (oid, href) => ({ oid, actions: { download: { href, header: ssh.lfs?.header } } });
    const directory = await bench.exported(id, remote, sha);
    expect(statSync(path.join(directory, 'a.bin')).size).toBe(3000);
    expect(ssh.commands).toContain(`git-lfs-authenticate '${id}.git' download`);
    ssh.keys.clear();
    await bench.expectFailure(bench.exported(bench.fresh('app'), remote, sha), 'refused', /refused access/);
  },
);

const hasProgram = spawnSync('git', ['lfs', 'version']).status === 0;

(hasProgram ? test : test.skip)(
  'what the program git-lfs pushes is what it would check out (needs git-lfs)',
  async () => {
    const id = bench.fresh('app');
    server.makeRepository(id, {});
    await promisify(execFile)('git', ['-C', server.folder(id), 'config', 'http.receivepack', 'true']);
    const work = path.join(bench.folder, bench.fresh('work'));
    const url = server.url(id).replace('//', `//oauth2:${password}@`);
    const files = { 'a.bin': content(70_000), 'folder with space/ä.bin': content(1), 'empty.bin': Buffer.alloc(0) };
    mkdirSync(path.join(work, 'folder with space'), { recursive: true });
    for (const [name, bytes] of Object.entries(files)) writeFileSync(path.join(work, name), bytes);
    writeFileSync(path.join(work, '.gitattributes'), ATTRIBUTES);
    const script = `git init -q --initial-branch=main && git lfs install --local
      git config user.name A && git config user.email a@example.com
      git config lfs.url ${url}/info/lfs && git config lfs.locksverify false
      git add . && git commit -qm x && git push -q ${url} main && git rev-parse HEAD`;
    const env = { PATH: process.env.PATH, HOME: work, GIT_CONFIG_NOSYSTEM: '1' };
    // `git lfs install` says what it did.
    const { stdout } = await promisify(execFile)('sh', ['-ec', script], { cwd: work, env });
    const directory = await bench.exported(id, remoteOf(id), stdout.trim().split('\n').at(-1) ?? '');
    for (const [name, bytes] of Object.entries(files))
      expect([name, readFileSync(path.join(directory, name)).equals(bytes)]).toEqual([name, true]);
    expect(server.lfs.downloads).toHaveLength(2);
  },
  60_000,
);
