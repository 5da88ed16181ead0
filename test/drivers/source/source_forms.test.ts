// Repositories in the forms that people have: object ids by SHA-256, names that are not UTF-8, submodules that Git
// leaves out, and remotes that are slow or silent.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { SourceDriver } from '../../../drivers/source';
import { addLargeFile } from '../../support/builds/lfs_server';
import { openSourceBench, soon, type SourceBench } from '../../support/builds/source_bench';
import type { GitServer } from '../../support/git/git_server';

let bench: SourceBench;
let server: GitServer;
let source: SourceDriver;

beforeAll(async () => {
  bench = await openSourceBench();
  ({ server, source } = bench);
});
afterEach(() => void (server.intercept = null));
afterAll(() => bench.close());

const read = (...parts: string[]): string => readFileSync(path.join(...parts), 'utf8');
const namesIn = (directory: string): string[] => readdirSync(directory, { encoding: 'latin1' }).sort();

describe('object ids by SHA-256', () => {
  const format = 'sha256';

  test('a branch, a commit by its digits, its changes and its submodules', async () => {
    const [part, id] = [bench.fresh('part'), bench.fresh('app')];
    const inner = server.makeRepository(part, { 'in.txt': 'in' }, { format });
    const first = server.makeRepository(id, { 'a.txt': 'one' }, { format });
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    const head = server.commit(id, {
      'a.txt': 'two',
      part: { mode: '160000', content: inner },
      '.gitmodules': `[submodule "p"]\n\tpath = part\n\turl = ../${part}.git\n`,
    });
    const remote = bench.remote(id);
    expect(await source.resolveHead(remote, {}, soon())).toEqual({ branch: 'main', sha: head });
    expect(await source.listBranches(remote, soon())).toEqual([{ name: 'main', sha: head }]);
    for (const digits of [first, first.slice(0, 9)])
      expect(await source.resolveHead(remote, { commit: digits }, soon())).toMatchObject({ sha: first });
    expect(await source.fetch(id, remote, { commit: first.slice(0, 9) }, soon())).toMatchObject({ sha: first });
    expect(await source.fetch(id, remote, {}, soon())).toMatchObject({ sha: head });
    expect(await source.changedPaths(id, first, head, soon())).toEqual(['.gitmodules', 'a.txt', 'part']);
    const files = await bench.exported(id, remote, head);
    expect([read(files, 'a.txt'), read(files, 'part/in.txt')]).toEqual(['two', 'in']);
  });

  test('an application may change to such a repository and back', async () => {
    const [id, other] = [bench.fresh('app'), bench.fresh('other')];
    const shas = [
      server.makeRepository(id, { 'a.txt': 'one' }),
      server.makeRepository(other, { 'a.txt': '1' }, { format }),
    ];
    for (const [i, name] of [id, other, id].entries()) {
      expect(await source.fetch(id, bench.remote(name), {}, soon())).toMatchObject({ sha: shas[i % 2] });
      await bench.exported(id, bench.remote(name), shas[i % 2]!);
    }
  });
});

describe('names that are not UTF-8', () => {
  test('files are written under their bytes, large ones too, and are replaced by the next export', async () => {
    const id = bench.fresh('app');
    const { pointer } = addLargeFile(server.lfs, Buffer.from('a picture'));
    const sha = server.makeRepository(id, {
      '"d\\351pliants/caf\\351.txt"': 'black',
      '"caf\\351.bin"': pointer,
      '.gitattributes': '*.bin filter=lfs\n',
    });
    const files = await bench.exported(id, bench.remote(id), sha);
    await source.export(id, bench.remote(id), sha, files, soon());
    expect(namesIn(files)).toEqual(['.gitattributes', 'caf\u00e9.bin', 'd\u00e9pliants']);
    expect(readFileSync(Buffer.from(path.join(files, 'caf\u00e9.bin'), 'latin1'), 'utf8')).toBe('a picture');
  });

  test('authors and messages in Latin-1 are read, whether the commit says so or not', async () => {
    const id = bench.fresh('app');
    server.makeRepository(id, { 'a.txt': 'one' });
    const tree = execFileSync('git', ['-C', server.folder(id), 'rev-parse', 'main^{tree}'], { encoding: 'utf8' });
    for (const encoding of ['', 'encoding ISO-8859-1\n']) {
      const by = 'Ren\u00e9 <rene@example.com> 1 +0000';
      const text = `tree ${tree}author ${by}\ncommitter ${by}\n${encoding}\nCaf\u00e9 \u00fcberall\n`;
      const input = Buffer.from(text, 'latin1');
      const args = ['-C', server.folder(id), 'hash-object', '-t', 'commit', '-w', '--stdin'];
      const sha = execFileSync('git', args, { input, encoding: 'utf8' }).trim();
      server.setRef(id, 'refs/heads/main', sha);
      expect(await source.fetch(id, bench.remote(id), {}, soon())).toMatchObject({
        message: 'Caf\u00e9 \u00fcberall',
        author: 'Ren\u00e9 <rene@example.com>',
      });
    }
  });
});

describe('submodules', () => {
  const submodule = (name: string, url: string, more = ''): string =>
    `[submodule "${name}"]\n\tpath = libs/${name}\n\turl = ${url}\n${more}`;

  test('with `update = none` stay empty, as Git leaves them', async () => {
    const [part, id] = [bench.fresh('part'), bench.fresh('app')];
    const content = server.makeRepository(part, { 'in.txt': 'in' });
    const modules =
      submodule('fonts', 'https://git.example.invalid/private.git', '\tupdate = none\n') +
      submodule('theme', server.url(part), '\tupdate = rebase\n');
    const sha = server.makeRepository(id, {
      'libs/fonts': { mode: '160000', content },
      'libs/theme': { mode: '160000', content },
      '.gitmodules': modules,
    });
    const files = await bench.exported(id, bench.remote(id), sha);
    expect(readdirSync(path.join(files, 'libs/fonts'))).toEqual([]);
    expect(read(files, 'libs/theme/in.txt')).toBe('in');
  });

  test('that cannot be fetched are named', async () => {
    const id = bench.fresh('app');
    const content = server.makeRepository(bench.fresh('part'), { 'in.txt': 'in' });
    const sha = server.makeRepository(id, {
      'libs/theme': { mode: '160000', content },
      '.gitmodules': submodule('theme', server.url('no-such-repository')),
    });
    await bench.expectFailure(
      bench.exported(id, bench.remote(id), sha),
      'no_repository',
      /^The submodule libs\/theme could not be fetched: The host 127\.0\.0\.1 has no Git repository at this address\./,
    );
  });
});

describe('a remote', () => {
  test('that is silent is given up long before the time of the work is over, and the reason says so', async () => {
    const id = bench.fresh('app');
    server.makeRepository(id, { 'a.txt': 'one' });
    server.intercept = () => 'hang';
    const begun = Date.now();
    for (const work of [
      source.resolveHead(bench.remote(id), {}, { ...soon(600_000), stallMs: 1500 }),
      source.fetch(id, bench.remote(id), {}, { ...soon(600_000), stallMs: 1500 }),
    ])
      await bench.expectFailure(work, 'unreachable', /^The host 127\.0\.0\.1 was silent for 2 seconds\. Try again/);
    expect(Date.now() - begun).toBeLessThan(300_000);
  });

  test('that sends slowly is not given up', async () => {
    const id = bench.fresh('app');
    const sha = server.makeRepository(id, { 'a.bin': randomBytes(3 << 19) });
    server.trickleMs = 200;
    try {
      const begun = Date.now();
      const ctx = { ...soon(600_000), stallMs: 5_000 };
      expect(await source.fetch(id, bench.remote(id), {}, ctx)).toMatchObject({ sha });
      expect(Date.now() - begun).toBeGreaterThan(5_000);
    } finally {
      server.trickleMs = 0;
    }
  });
});
