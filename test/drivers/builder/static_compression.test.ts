/** @user any */
// The compressed forms of the files of a site.
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import type { Built } from '../../support/runner/built';
import type { AnswerAsSent } from '../../support/object_storage/get_as_written';
import { openStaticSites, type Get } from '../../support/builds/static_sites';

const { workshop, serve, serveFiles } = openStaticSites();

afterAll(() => workshop.close());

describe('compressed files', () => {
  const script = Array.from({ length: 400 }, (_, i) => `export const value${i} = ${i * 7919};\n`).join('');
  const files = {
    'index.html': `<!doctype html>${'<p>paragraph</p>'.repeat(200)}`,
    'app.js': script,
    'small.js': 'x'.repeat(1023),
    'photo.png': 'x'.repeat(5000),
    'deep/page.html': '<p>again</p>'.repeat(500),
  };
  let built: Built;
  let get: Get;

  beforeAll(async () => {
    built = await workshop.build(workshop.source(files));
    get = await serve(built);
  });

  function unpacked({ headers, body }: AnswerAsSent): string {
    const coding = headers['content-encoding'];
    return (coding === 'br' ? brotliDecompressSync(body) : coding === 'gzip' ? gunzipSync(body) : body).toString();
  }

  test.each([
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip, deflate', 'gzip'],
    ['GZIP', 'gzip'],
    ['x-gzip', 'gzip'],
    ['br;q=0.5, gzip;q=0.8', 'gzip'],
    ['br;q=1.0, gzip;q=0.8, *;q=0.1', 'br'],
    ['gzip;q=0', undefined],
    ['br;q=0, *', 'gzip'],
    ['*', 'br'],
    ['*;q=0', undefined],
    ['identity', undefined],
    ['identity, gzip;q=0.5', undefined],
    ['identity;q=0.5, gzip', 'gzip'],
    ['identity;q=0, gzip;q=0.001', 'gzip'],
    ['gzip ; q=0.000, br ; Q=0.3', 'br'],
    ['gzip;q=2, br;q=yes', undefined],
    ['deflate, compress', undefined],
    ['', undefined],
    [',,;', undefined],
  ])('Accept-Encoding: %j gets %p', async (accepted, coding) => {
    const answer = await get('/app.js', { 'accept-encoding': accepted });
    expect(answer).toMatchObject({ status: 200, headers: { vary: 'accept-encoding', 'accept-ranges': 'bytes' } });
    expect(answer.headers['content-encoding']).toBe(coding);
    expect(answer.headers['content-length']).toBe(String(answer.body.length));
    expect(unpacked(answer)).toBe(script);
    const head = await get('/app.js', { 'accept-encoding': accepted }, 'HEAD');
    expect(head.body.length).toBe(0);
    expect({ ...head.headers, date: null }).toEqual({ ...answer.headers, date: null });
  });

  test('without the field as it is; what is small or no text has no forms', async () => {
    expect((await get('/app.js')).headers).not.toHaveProperty('content-encoding');
    for (const target of ['/small.js', '/photo.png']) {
      const { headers } = await get(target, { 'accept-encoding': 'br, gzip' });
      expect([headers['content-encoding'], headers.vary]).toEqual([undefined, undefined]);
    }
    expect(unpacked(await get('/deep/page', { 'accept-encoding': 'br' }))).toBe(files['deep/page.html']);
    expect(built.output).toMatch(/Compressed 3 text files from \d+ kB to \d+ kB\./);
  });

  test('each form has an ETag of its own, which says that nothing has changed of this form alone', async () => {
    const tags = new Map<string, string>();
    for (const accepted of ['br', 'gzip', 'identity'])
      tags.set(accepted, (await get('/app.js', { 'accept-encoding': accepted })).headers.etag!);
    expect(new Set(tags.values()).size).toBe(3);
    for (const [accepted] of tags) {
      for (const [other, tag] of tags) {
        const answer = await get('/app.js', { 'accept-encoding': accepted, 'if-none-match': tag });
        expect(answer.status).toBe(accepted === other ? 304 : 200);
        expect(answer.headers).toMatchObject({ vary: 'accept-encoding', etag: tags.get(accepted) });
        expect(unpacked(answer)).toBe(answer.status === 304 ? '' : script);
      }
    }
    const again = await workshop.build(workshop.source(files));
    expect((await (await serve(again))('/app.js', { 'accept-encoding': 'br' })).headers.etag).toBe(tags.get('br'));
  });

  test('a range is one of the file as it is; a part of another form is never gone on with', async () => {
    const range = { range: 'bytes=5-9', 'accept-encoding': 'br, gzip' };
    const part = await get('/app.js', range);
    expect(part).toMatchObject({ status: 206, headers: { vary: 'accept-encoding' } });
    expect(part.body.toString()).toBe(script.slice(5, 10));
    const { headers } = await get('/app.js');
    expect((await get('/app.js', { ...range, 'if-range': headers.etag! })).status).toBe(206);
    const brotli = await get('/app.js', { 'accept-encoding': 'br' });
    for (const condition of [brotli.headers.etag!, `W/${headers.etag}`, brotli.headers['last-modified']!])
      expect(unpacked(await get('/app.js', { ...range, 'if-range': condition }))).toBe(script);
    expect((await get('/app.js', range, 'HEAD')).status).toBe(200);
  });

  test('pages that stand for others, 404.html among them, have forms too', async () => {
    const other = await serveFiles({ ...files, '404.html': 'lost '.repeat(1000) });
    const lost = await other('/nowhere', { 'accept-encoding': 'gzip' });
    expect([lost.status, lost.headers['content-encoding'], lost.headers.vary]).toEqual([
      404,
      'gzip',
      'accept-encoding',
    ]);
    expect(unpacked(lost)).toBe('lost '.repeat(1000));
    expect(unpacked(await get('/dashboard', { 'accept-encoding': 'br' }))).toBe(files['index.html']);
  });

  test('forms of another content are not served: a file that changed, a pack that is cut off', async () => {
    const changed = await workshop.build(workshop.source(files));
    appendFileSync(path.join(changed.directory, 'app.js'), '// more');
    const answer = await (await serve(changed))('/app.js', { 'accept-encoding': 'br' });
    expect([answer.headers['content-encoding'], unpacked(answer)]).toEqual([undefined, `${script}// more`]);
    const pack = path.join(changed.directory, '.platform/static.pack');
    writeFileSync(pack, readFileSync(pack).subarray(1));
    const page = await (await serve(changed))('/', { 'accept-encoding': 'br' });
    expect([page.headers['content-encoding'], unpacked(page)]).toEqual([undefined, files['index.html']]);
  });

  test('a source cannot bring the list of forms along', async () => {
    const brought = {
      '.platform/static.json': { directory: '.', bytes: 1, files: [null] },
      '.platform/static.pack': 'x',
    };
    const get = await serveFiles({ ...files, ...brought });
    expect(unpacked(await get('/app.js', { 'accept-encoding': 'br' }))).toBe(script);
  });

  test('killed at any step, it leaves no half of a form', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 60 }, (_, i) => [`page${i}.html`, `${i} ${script}`.repeat(8)]),
    );
    const made = await workshop.build(workshop.source({ 'index.html': 'home', ...many }));
    const list = path.join(made.directory, '.platform/static.json');
    const outcomes = new Set<boolean>();
    for (let waitMs = 30; waitMs < 20_000 && outcomes.size < 2; waitMs = Math.ceil(waitMs * 1.7)) {
      const child = spawn('node', ['.platform/static_compress.cjs', 'compress', '.'], { cwd: made.directory });
      const ended = new Promise((resolve) => child.on('exit', resolve));
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, waitMs))]);
      child.kill('SIGKILL');
      await ended;
      outcomes.add(existsSync(list));
      const killed = await serve(made);
      for (const name of ['page0.html', 'page59.html'] as const)
        expect(unpacked(await killed(`/${name}`, { 'accept-encoding': 'br, gzip' }))).toBe(many[name]);
    }
    expect([...outcomes].sort()).toEqual([false, true]);
  }, 120_000);

  test('where nothing can be written, the build succeeds and files are sent as they are', async () => {
    const source = workshop.source(files);
    mkdirSync(path.join(source, '.platform/static.pack/x'), { recursive: true });
    const blocked = await workshop.build(source, { build_command: 'mkdir dist && cp -- *.* dist' });
    expect(blocked.code).toBe(0);
    expect(unpacked(await (await serve(blocked))('/app.js', { 'accept-encoding': 'br' }))).toBe(script);
  });
});
