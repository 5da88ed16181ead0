/** @user any */
// The server that a static site is built with.
import { existsSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { openWorkshop, type Built, type Running } from '../../support/runner/built';
import { getAsWritten } from '../../support/object_storage/get_as_written';

const workshop = openWorkshop();

afterAll(() => workshop.close());

describe('the server of sites', () => {
  const script = 'console.log(1);'.repeat(20);
  const digests: [name: string, isKept: boolean][] = [
    ['assets/index-DiwrgTda.js', true],
    ['static/js/main.3f9d8a2c.chunk.js', true],
    ['_astro/page.B1Xkq_2Z.css', true],
    ['assets/photo-portrait.jpg', false],
    ['assets/shot-20240101.png', false],
    ['plain/app-3f9d8a2c.js', false],
  ];
  let running: Running;
  let built: Built;

  beforeAll(async () => {
    built = await workshop.build(
      workshop.source({
        'index.html': '<h1>home</h1>',
        '404.html': 'lost',
        'about.html': 'about',
        'docs/index.html': 'docs',
        'app.js': script,
        'data.bin': '0123456789',
        'empty.txt': '',
        'with space/ö.txt': 'umlaut',
        'a\\b.txt': 'backslash',
        '\\example.com/index.html': 'no other host',
        '.env': 'SECRET',
        '.git/config': 'SECRET',
        '.well-known/security.txt': 'contact',
        'assets/app-3f9d8a2c.js': 'x',
        ...Object.fromEntries(digests.map(([name]) => [name, 'x'])),
      }),
    );
    writeFileSync(path.join(built.directory, 'app.js.br'), brotliCompressSync(script));
    writeFileSync(path.join(built.directory, 'app.js.gz'), gzipSync(script));
    writeFileSync(path.join(built.directory, 'about.html.gz'), gzipSync('other'));
    writeFileSync(path.join(built.directory, '404.html.br'), brotliCompressSync('lost').subarray(0, 4));
    symlinkSync('/etc/passwd', path.join(built.directory, 'passwd.txt'));
    symlinkSync('/etc', path.join(built.directory, 'etc'));
    symlinkSync('about.html', path.join(built.directory, 'also.html'));
    utimesSync(path.join(built.directory, 'data.bin'), 1_700_000_000, 1_700_000_000);
    running = await workshop.start(built);
  });

  const get = (target: string, headers: Record<string, string> = {}, method = 'GET') =>
    getAsWritten(running.url + target, headers, method);

  test.each([
    ['/', 'text/html; charset=utf-8', '<h1>home</h1>'],
    ['/about', 'text/html; charset=utf-8', 'about'],
    ['/docs/', 'text/html; charset=utf-8', 'docs'],
    ['/also.html?x=1', 'text/html; charset=utf-8', 'about'],
    ['/app.js', 'text/javascript; charset=utf-8', script],
    ['/with%20space/%C3%B6.txt', 'text/plain; charset=utf-8', 'umlaut'],
    ['/a%5Cb.txt', 'text/plain; charset=utf-8', 'backslash'],
    ['/a\\b.txt', 'text/plain; charset=utf-8', 'backslash'],
    ['/data.bin', 'application/octet-stream', '0123456789'],
    ['/empty.txt', 'text/plain; charset=utf-8', ''],
    ['/.well-known/security.txt', 'text/plain; charset=utf-8', 'contact'],
  ])('%s', async (target, type, body) => {
    const answer = await get(target);
    expect(answer).toMatchObject({
      status: 200,
      headers: { 'content-type': type, 'content-length': String(body.length), 'x-content-type-options': 'nosniff' },
    });
    expect(answer.body.toString()).toBe(body);
    expect(await get(target, {}, 'HEAD')).toMatchObject({
      status: 200,
      headers: { 'content-length': String(body.length) },
      body: Buffer.alloc(0),
    });
  });

  test.each([
    '/../../../etc/passwd',
    '/..%2f..%2fetc/passwd',
    '/%2e%2e/%2e%2e/etc/passwd',
    '/docs/../../etc/passwd',
    '//etc/passwd',
    '/etc/passwd',
    '/etc/hosts',
    '/passwd.txt',
    '/.env',
    '/.git/config',
    '/.platform/static_server.cjs',
    '/docs/.hidden',
    '/%2eenv',
    '/nowhere',
    '/index.html/',
  ])('%s is not there', async (target) => {
    const answer = await get(target);
    expect(answer).toMatchObject({ status: 404, headers: { 'content-type': 'text/html; charset=utf-8' } });
    expect(answer.body.toString()).toBe('lost');
  });

  test('it listens on 127.0.0.1, or where the image of a release tells it to', async () => {
    const elsewhere = ({ url }: Running): Promise<Response> => fetch(url.replace('127.0.0.1', '127.0.0.2'));
    await expect(elsewhere(running)).rejects.toThrow('fetch failed');
    const ofImage = await workshop.start(built, { SVC_LISTEN_ADDRESS: '0.0.0.0' });
    expect((await elsewhere(ofImage)).status).toBe(200);
  });

  test('what is no path, and other methods', async () => {
    for (const target of ['/%', '/%00', '/%ff']) expect((await get(target)).status).toBe(400);
    expect(await get('/', {}, 'POST')).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
  });

  test('a directory without its slash; never to another host', async () => {
    expect(await get('/docs?x=1')).toMatchObject({ status: 301, headers: { location: '/docs/?x=1' } });
    expect(await get('//docs')).toMatchObject({ status: 301, headers: { location: '/docs/' } });
    for (const target of ['/%5Cexample.com', '/\\example.com'])
      expect(await get(target)).toMatchObject({ status: 301, headers: { location: '/%5Cexample.com/' } });
  });

  test('not again what the client has', async () => {
    const { headers } = await get('/data.bin');
    expect(headers['last-modified']).toBe('Tue, 14 Nov 2023 22:13:20 GMT');
    for (const match of [headers.etag!, `"other", W/${headers.etag}`, '*'])
      expect(await get('/data.bin', { 'if-none-match': match })).toMatchObject({
        status: 304,
        headers: { etag: headers.etag },
        body: Buffer.alloc(0),
      });
    expect(
      (await get('/data.bin', { 'if-none-match': '"other"', 'if-modified-since': headers['last-modified']! })).status,
    ).toBe(200);
    expect((await get('/data.bin', { 'if-modified-since': headers['last-modified']! })).status).toBe(304);
    expect((await get('/data.bin', { 'if-modified-since': 'Mon, 13 Nov 2023 22:13:20 GMT' })).status).toBe(200);
    expect(headers['cache-control']).toMatch(/must-revalidate/);
    expect((await get('/assets/app-3f9d8a2c.js')).headers['cache-control']).toMatch(/immutable/);
  });

  test('ranges', async () => {
    const part = async (range: string, more = {}) => {
      const { status, headers, body } = await get('/data.bin', { range, ...more });
      return [status, headers['content-range'], body.toString()];
    };
    expect(await part('bytes=2-4')).toEqual([206, 'bytes 2-4/10', '234']);
    expect(await part('bytes=7-')).toEqual([206, 'bytes 7-9/10', '789']);
    expect(await part('bytes=-3')).toEqual([206, 'bytes 7-9/10', '789']);
    expect(await part('bytes=5-99')).toEqual([206, 'bytes 5-9/10', '56789']);
    expect((await part('bytes=10-')).slice(0, 2)).toEqual([416, 'bytes */10']);
    expect((await part('bytes=-0')).slice(0, 2)).toEqual([416, 'bytes */10']);
    for (const whole of ['bytes=4-2', 'bytes=-', 'bytes=1-2,4-5', 'lines=1-2'])
      expect(await part(whole)).toEqual([200, undefined, '0123456789']);
    const { etag } = (await get('/data.bin')).headers;
    expect((await part('bytes=2-4', { 'if-range': etag! }))[0]).toBe(206);
    expect((await part('bytes=2-4', { 'if-range': '"old"' }))[0]).toBe(200);
  });

  test('forms that a build has put beside a file, for who takes them, where they unpack to it', async () => {
    const brotli = await get('/app.js', { 'accept-encoding': 'gzip, br' });
    expect(brotli).toMatchObject({
      headers: { 'content-encoding': 'br', vary: 'accept-encoding', 'content-type': 'text/javascript; charset=utf-8' },
      body: brotliCompressSync(script),
    });
    expect((await get('/app.js', { 'accept-encoding': 'gzip;q=0.5, br;q=0' })).headers['content-encoding']).toBe(
      'gzip',
    );
    const plain = await get('/app.js', { 'accept-encoding': 'identity' });
    expect(plain.headers).toMatchObject({ vary: 'accept-encoding' });
    expect(plain.headers).not.toHaveProperty('content-encoding');
    expect(new Set([brotli, plain].map(({ headers }) => headers.etag)).size).toBe(2);
    for (const target of ['/about', '/nowhere'])
      expect((await get(target, { 'accept-encoding': 'gzip, br' })).headers).not.toHaveProperty('content-encoding');
  });

  test.each(digests)('%s is kept by browsers as a name with a digest: %p', async (name, isKept) => {
    expect(/immutable/.test((await get(`/${name}`)).headers['cache-control']!)).toBe(isKept);
  });

  test('SIGTERM: what is open is finished, then it ends with 0', async () => {
    mkdirSync(path.join(built.directory, 'large'));
    writeFileSync(path.join(built.directory, 'large/file.bin'), Buffer.alloc(24 << 20, 'x'));
    const other = await workshop.start(built);
    const response = await new Promise<http.IncomingMessage>((resolve) =>
      http.get(`${other.url}/large/file.bin`, { agent: false }, resolve),
    );
    const stopped = other.stop();
    let bytes = 0;
    for await (const chunk of response) bytes += (chunk as Buffer).length;
    expect(bytes).toBe(24 << 20);
    expect(await stopped).toBe(0);
    expect(existsSync(`/proc/${other.child.pid}`)).toBe(false);
  });
});
