/** @tier heavy @quarter 4 @covers drivers/source */
import { lstatSync, readFileSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { SourceDriver } from '../../../drivers/source';
import type { GitServer } from '../../support/git/git_server';
import { openSourceBench, soon, type SourceBench } from '../../support/builds/source_bench';

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

describe('what is wanted', () => {
  test('the head of the default branch, of a branch, and of a ref', async () => {
    const id = bench.fresh('app');
    const first = server.makeRepository(id, { 'a.txt': 'one' }, { branch: 'trunk' });
    const side = server.commit(
      id,
      { 'a.txt': 'two' },
      { branch: 'feature/side', message: 'Second line of work\n\nWith a body' },
    );
    const pull = server.commit(id, { 'a.txt': 'three' }, { branch: 'gone' });
    server.setRef(id, 'refs/pull/7/head', pull);
    server.setRef(id, 'refs/heads/gone', null);
    expect(await source.resolveHead(bench.remote(id), {}, soon())).toEqual({ branch: 'trunk', sha: first });
    expect(await source.resolveHead(bench.remote(id), { branch: 'feature/side' }, soon())).toEqual({
      branch: 'feature/side',
      sha: side,
    });
    expect(await source.resolveHead(bench.remote(id), { ref: 'refs/pull/7/head' }, soon())).toEqual({
      branch: null,
      sha: pull,
    });
    expect(await source.fetch(id, bench.remote(id), { branch: 'feature/side' }, soon())).toEqual({
      branch: 'feature/side',
      sha: side,
      message: 'Second line of work',
      author: 'Ada Example <ada@example.com>',
    });
    expect(await source.fetch(id, bench.remote(id), {}, soon())).toMatchObject({
      branch: 'trunk',
      sha: first,
      message: 'First commit',
    });
    expect(await source.fetch(id, bench.remote(id), { ref: 'refs/pull/7/head' }, soon())).toMatchObject({
      branch: null,
      sha: pull,
    });
  });

  test('a commit by its first digits, only on its branch', async () => {
    const id = bench.fresh('app');
    const first = server.makeRepository(id, { 'a.txt': 'one' });
    const head = server.commit(id, { 'a.txt': 'two' });
    const other = server.commit(id, { 'b.txt': 'x' }, { branch: 'other' });
    for (const way of ['look', 'fetch'] as const) {
      const ask = (wanted: object) =>
        way === 'look'
          ? source.resolveHead(bench.remote(id), wanted, soon())
          : source.fetch(id, bench.remote(id), wanted, soon());
      expect(await ask({ branch: 'main', commit: first.slice(0, 7) })).toMatchObject({ branch: 'main', sha: first });
      expect(await ask({ branch: 'main', commit: head.toUpperCase() })).toMatchObject({ sha: head });
      expect(await ask({ commit: first })).toMatchObject({ branch: 'main', sha: first });
      await bench.expectFailure(
        ask({ branch: 'main', commit: other }),
        'unknown_commit',
        /no commit .* on the branch main/,
      );
      await bench.expectFailure(ask({ branch: 'main', commit: '0123456' }), 'unknown_commit', /0123456/);
    }
    const scratch = readdirSync(path.join(bench.folder, 'runtime/git'));
    expect(scratch.filter((name) => name.startsWith('scratch'))).toEqual([]);
  });

  test('unknown branches, empty repositories, no repository', async () => {
    const id = bench.fresh('app');
    server.makeRepository(id, { 'a.txt': 'one' });
    const empty = bench.fresh('empty');
    server.makeRepository(empty, {});
    for (const branch of ['nope', 'main/', '--upload-pack=touch /tmp/x', 'a..b', 'ma*']) {
      await bench.expectFailure(
        source.resolveHead(bench.remote(id), { branch }, soon()),
        'unknown_branch',
        /no branch/,
      );
      await bench.expectFailure(source.fetch(id, bench.remote(id), { branch }, soon()), 'unknown_branch', /no branch/);
    }
    await bench.expectFailure(
      source.resolveHead(bench.remote(id), { ref: 'refs/pull/1/head' }, soon()),
      'unknown_branch',
      /no refs\/pull\/1\/head/,
    );
    await bench.expectFailure(source.resolveHead(bench.remote(empty), {}, soon()), 'empty', /empty/);
    await bench.expectFailure(source.fetch(empty, bench.remote(empty), { branch: 'main' }, soon()), 'empty', /empty/);
    await bench.expectFailure(
      source.resolveHead(bench.remote('nothing-here'), {}, soon()),
      'no_repository',
      /no Git repository/,
    );
  });

  test('a force push is followed, and the commit before it is not on the branch any more', async () => {
    const id = bench.fresh('app');
    const first = server.makeRepository(id, { 'a.txt': 'one' });
    const second = server.commit(id, { 'a.txt': 'two' });
    await source.fetch(id, bench.remote(id), {}, soon());
    const forced = server.commit(id, { 'a.txt': 'other' }, { parent: first });
    const unrelated = server.commit(id, { 'b.txt': 'b' }, { parent: null, branch: 'unrelated' });
    expect(await source.fetch(id, bench.remote(id), {}, soon())).toMatchObject({ sha: forced });
    expect(await source.fetch(id, bench.remote(id), { branch: 'unrelated' }, soon())).toMatchObject({ sha: unrelated });
    await bench.expectFailure(
      source.fetch(id, bench.remote(id), { commit: second }, soon()),
      'unknown_commit',
      /no commit/,
    );
    expect(await source.changedPaths(id, second, forced, soon())).toEqual(['a.txt']);
    expect(await source.changedPaths(id, second, '0'.repeat(40), soon())).toBeNull();
    server.setRef(id, 'refs/heads/main', unrelated);
    expect(await source.fetch(id, bench.remote(id), { branch: 'main' }, soon())).toMatchObject({ sha: unrelated });
  });

  test('a branch whose name was a folder of another one before', async () => {
    const id = bench.fresh('app');
    server.makeRepository(id, { 'a.txt': 'one' });
    server.commit(id, { 'a.txt': 'two' }, { branch: 'topic' });
    await source.fetch(id, bench.remote(id), { branch: 'topic' }, soon());
    server.setRef(id, 'refs/heads/topic', null);
    const below = server.commit(id, { 'a.txt': 'three' }, { branch: 'topic/next' });
    expect(await source.fetch(id, bench.remote(id), { branch: 'topic/next' }, soon())).toMatchObject({ sha: below });
  });
});

describe('files', () => {
  test('are those of the commit, with modes, links and what attributes hide; also after half an export', async () => {
    const id = bench.fresh('app');
    const sha = server.makeRepository(id, {
      'run.sh': { mode: '100755', content: '#!/bin/sh\n' },
      link: { mode: '120000', content: '/etc' },
      'ö/space name.txt': 'x',
      'hidden.txt': 'y',
      '.gitattributes': 'hidden.txt export-ignore\n*.bin filter=lfs\n',
      'big.bin': 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n',
    });
    await source.fetch(id, bench.remote(id), {}, soon());
    const files = await bench.exported(id, bench.remote(id), sha);
    expect(lstatSync(path.join(files, 'run.sh')).mode & 0o111).toBe(0o111);
    expect(readlinkSync(path.join(files, 'link'))).toBe('/etc');
    expect(readFileSync(path.join(files, 'big.bin'), 'utf8')).toMatch(/^version https/);
    expect(readdirSync(files).sort()).toEqual(
      ['.gitattributes', 'big.bin', 'hidden.txt', 'link', 'run.sh', 'ö'].sort(),
    );
    expect(readdirSync(path.join(files, 'ö'))).toEqual(['space name.txt']);
    writeFileSync(path.join(files, 'of-before'), '');
    rmSync(path.join(files, 'run.sh'));
    await source.export(id, bench.remote(id), sha, files, soon());
    expect(readdirSync(files).sort()).toEqual(
      ['.gitattributes', 'big.bin', 'hidden.txt', 'link', 'run.sh', 'ö'].sort(),
    );
  });

  test('of a commit that is not in the mirror are fetched', async () => {
    const id = bench.fresh('app');
    const sha = server.makeRepository(id, { 'a.txt': 'one' });
    server.commit(id, { 'a.txt': 'two' });
    expect(readFileSync(path.join(await bench.exported(id, bench.remote(id), sha), 'a.txt'), 'utf8')).toBe('one');
    await bench.expectFailure(bench.exported(id, bench.remote(id), 'f'.repeat(40)), 'unknown_commit', /not have/);
  });

  test('of submodules, relative addresses and submodules of submodules included', async () => {
    const [inner, outer, id] = [bench.fresh('inner'), bench.fresh('outer'), bench.fresh('app')];
    const innerSha = server.makeRepository(inner, { 'in.txt': 'in' });
    server.commit(inner, { 'in.txt': 'later' });
    const outerSha = server.makeRepository(outer, {
      'out.txt': 'out',
      'deep/inner': { mode: '160000', content: innerSha },
      '.gitmodules': `[submodule "i"]\n\tpath = deep/inner\n\turl = ../${inner}.git\n`,
    });
    const sha = server.makeRepository(id, {
      'parts/outer': { mode: '160000', content: outerSha },
      stray: { mode: '160000', content: outerSha },
      '.gitmodules': `[submodule "o"]\n\tpath = parts/outer\n\turl = ${server.url(outer)}\n`,
    });
    const files = await bench.exported(id, bench.remote(id), sha);
    expect(readFileSync(path.join(files, 'parts/outer/deep/inner/in.txt'), 'utf8')).toBe('in');
    expect(readFileSync(path.join(files, 'parts/outer/out.txt'), 'utf8')).toBe('out');
    expect(readdirSync(path.join(files, 'stray'))).toEqual([]);
  });

  test('of a submodule that contains itself is refused', async () => {
    const id = bench.fresh('app');
    const base = server.makeRepository(id, { 'a.txt': 'a' });
    const address = `[submodule "s"]\n\tpath = s\n\turl = ./../${id}.git\n`;
    const shas = [base];
    for (let i = 0; i < 5; i += 1)
      shas.push(server.commit(id, { '.gitmodules': address, s: { mode: '160000', content: shas.at(-1)! } }));
    await bench.expectFailure(bench.exported(id, bench.remote(id), shas[5]!), 'refused', /nested more than 3/);
    expect(readFileSync(path.join(await bench.exported(id, bench.remote(id), shas[3]!), 's/s/s/a.txt'), 'utf8')).toBe(
      'a',
    );
  });

  test('a .gitmodules that wants to run something is refused', async () => {
    const part = bench.fresh('part');
    const target = server.makeRepository(part, { 'a.txt': 'a' });
    for (const line of ['url = --upload-pack=x', `url = ${server.url(part)}\n\tupdate = !touch /tmp/x`]) {
      const id = bench.fresh('app');
      const sha = server.makeRepository(id, {
        m: { mode: '160000', content: target },
        '.gitmodules': `[submodule "m"]\n\tpath = m\n\t${line}\n`,
      });
      await bench.expectFailure(bench.exported(id, bench.remote(id), sha), 'refused', /malicious/);
    }
  });

  test('a submodule obeys the same rules of addresses', async () => {
    const local = bench.fresh('local');
    const target = server.makeRepository(local, { 'a.txt': 'secret' });
    const strict = await bench.strict({ allowLocalGit: false });
    for (const url of [
      `file://${server.folder(local)}`,
      'ext::sh -c touch% /tmp/x',
      'https://user:word@git.example.com/x.git',
      '/etc',
    ]) {
      const id = bench.fresh('app');
      const sha = server.makeRepository(id, {
        m: { mode: '160000', content: target },
        '.gitmodules': `[submodule "m"]\n\tpath = m\n\turl = ${url}\n`,
      });
      await bench.expectFailure(bench.exported(id, bench.remote(id), sha, strict), 'forbidden_address', /address/);
    }
  });
});
