import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import path from 'node:path';
import type { SourceDriver } from '../../../drivers/source';
import type { GitServer } from '../../support/git/git_server';
import { firstOutput, kill, processesWith, spawnProgram } from '../../support/processes/processes';
import { everythingAllowed, openSourceBench, soon, type SourceBench } from '../../support/builds/source_bench';

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

describe('bad days', () => {
  const noise = () => Buffer.from(Array.from({ length: 3 << 20 }, () => Math.floor(Math.random() * 256)));

  test('a repository that is too large leaves nothing behind', async () => {
    const id = bench.fresh('app');
    const small = await bench.strict({ sizeMb: 2 });
    server.makeRepository(id, { 'a.bin': noise() });
    await bench.expectFailure(small.fetch(id, bench.remote(id), {}, soon()), 'too_large', /\(2 MB\)/);
    expect(await small.listMirrors(soon())).toEqual([]);
  });

  test('files that are small in the pack and large when written are not written', async () => {
    const id = bench.fresh('app');
    const small = await bench.strict({ sizeMb: 2 });
    const sha = server.makeRepository(id, { 'a.bin': Buffer.alloc(3 << 20) });
    await small.fetch(id, bench.remote(id), {}, soon());
    await bench.expectFailure(bench.exported(id, bench.remote(id), sha, small), 'too_large', /\(2 MB\)/);
  });

  test('a mirror full of what was pushed away begins anew', async () => {
    const id = bench.fresh('app');
    const small = await bench.strict({ sizeMb: 5 });
    server.makeRepository(id, { 'a.bin': noise() });
    await small.fetch(id, bench.remote(id), {}, soon());
    const head = server.commit(id, { 'a.bin': noise() }, { parent: null });
    expect(await small.fetch(id, bench.remote(id), {}, soon())).toMatchObject({ sha: head });
  });

  test('cut off by the end of the context or of the process, it is repaired by the next call', async () => {
    const id = bench.fresh('app');
    const sha = server.makeRepository(id, { 'a.bin': noise(), 'b.txt': 'b' });
    const cut = new AbortController();
    const isPack = (request: IncomingMessage) =>
      request.method === 'POST' && request.headers['content-length'] !== undefined;
    let posts = 0;
    server.intercept = (request) =>
      isPack(request) && (posts += 1) >= 3 ? (setTimeout(() => cut.abort(), 50), 'hang') : null;
    await bench.expectFailure(
      source.fetch(id, bench.remote(id), {}, { signal: cut.signal, deadline: Date.now() + 20_000 }),
      'unreachable',
      /in time/,
    );
    expect(processesWith(server.url(id))).toEqual([]);
    const directory = path.join(bench.folder, 'runtime');
    const child = spawnProgram(
      `
      const [options, id, remote] = JSON.parse(process.argv[1]);
      const outbound = require('./test/support/outbound').anyAddress;
      require('./drivers/source/git').openSource({ ...options, outbound }).then((source) => {
        process.stdout.write('ready');
        return source.fetch(id, remote, {}, { signal: new AbortController().signal, deadline: Infinity });
      })`,
      [JSON.stringify([{ ...everythingAllowed, directory }, id, bench.remote(id)])],
    );
    posts = 0;
    const hanging = new Promise<void>(
      (resolve) =>
        (server.intercept = (request) => (isPack(request) && (posts += 1) >= 3 ? (resolve(), 'hang') : null)),
    );
    await firstOutput(child);
    await hanging;
    await kill(child);
    expect(processesWith(server.url(id)).length).toBeGreaterThan(0);
    const repository = path.join(directory, 'mirrors', id, 'repository');
    for (const lock of ['HEAD.lock', 'packed-refs.lock', 'refs/heads.lock', 'config.lock', 'shallow.lock'])
      writeFileSync(path.join(repository, lock), '');
    writeFileSync(path.join(repository, 'objects/pack/tmp_pack_abcdef'), 'half');
    server.intercept = null;
    expect(await source.fetch(id, bench.remote(id), {}, soon())).toMatchObject({ sha });
    expect(processesWith(server.url(id))).toEqual([]);
    expect(existsSync(path.join(repository, 'objects/pack/tmp_pack_abcdef'))).toBe(false);
    expect(existsSync(path.join(await bench.exported(id, bench.remote(id), sha), 'a.bin'))).toBe(true);
  });

  test('a mirror without its inner parts, and one with broken packs, are made anew', async () => {
    const id = bench.fresh('app');
    server.makeRepository(id, { 'a.txt': 'a' });
    await source.fetch(id, bench.remote(id), {}, soon());
    const repository = path.join(bench.folder, 'runtime/mirrors', id, 'repository');
    rmSync(path.join(repository, 'HEAD'));
    const sha = server.commit(id, { 'a.txt': 'b' });
    expect(await source.fetch(id, bench.remote(id), {}, soon())).toMatchObject({ sha });
    for (const name of readdirSync(path.join(repository, 'objects/pack'))) {
      rmSync(path.join(repository, 'objects/pack', name));
      writeFileSync(path.join(repository, 'objects/pack', name), 'no pack');
    }
    expect(await source.fetch(id, bench.remote(id), {}, soon())).toMatchObject({ sha });
    const later = server.commit(id, { 'a.txt': 'c' });
    expect(await source.fetch(id, bench.remote(id), {}, soon())).toMatchObject({ sha: later });
  });

  test('many fetches at once of one mirror, and of many', async () => {
    const id = bench.fresh('app');
    const sha = server.makeRepository(id, { 'a.txt': 'a' });
    const all = await Promise.all(
      Array.from({ length: 6 }, (_, i) => source.fetch(i % 2 ? id : `${id}-${i}`, bench.remote(id), {}, soon())),
    );
    expect(new Set(all.map((one) => one.sha))).toEqual(new Set([sha]));
    expect(await source.listMirrors(soon())).toEqual(expect.arrayContaining([id, `${id}-0`]));
    await source.removeMirror(id, soon());
    await source.removeMirror(id, soon());
    expect(await source.listMirrors(soon())).not.toContain(id);
  });

  test('an id that leads elsewhere is none', async () => {
    await expect(source.fetch('../x', bench.remote('x'), {}, soon())).rejects.toThrow(/not valid/);
  });
});
