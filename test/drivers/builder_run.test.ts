// Builds that really run, and the server of sites. Nothing here needs a network: packages lie beside the source.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { openWorkshop, type Built, type Running } from '../support/built';

const workshop = openWorkshop();
const hasPython = spawnSync('python3', ['-m', 'venv', '--help']).status === 0;
const hasGo = spawnSync('go', ['version']).status === 0;
const onlyIf = (found: boolean) => (found || process.env.CI ? test : test.skip);

afterAll(() => workshop.close());

const answering = (text: string) =>
  `require('http').createServer((q, s) => s.end(${text})).listen(process.env.PORT, '127.0.0.1')`;

/** A package with a program, as pip takes it without asking anyone else (the wheel format, PEP 427). */
function makeWheel(directory: string): void {
  const module =
    'import http.server, os, sys\n\n\nclass Handler(http.server.BaseHTTPRequestHandler):\n    def do_GET(self):\n        self.send_response(200)\n        self.end_headers()\n        self.wfile.write(sys.prefix.encode())\n\n    do_HEAD = do_GET\n\n\ndef serve():\n    http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()\n';
  const files = {
    'shelf.py': module,
    'shelf-1.dist-info/METADATA': 'Metadata-Version: 2.1\nName: shelf\nVersion: 1\n',
    'shelf-1.dist-info/WHEEL': 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    'shelf-1.dist-info/entry_points.txt': '[console_scripts]\nshelf-serve = shelf:serve\n',
    'shelf-1.dist-info/RECORD': '',
  };
  const program =
    'import json, sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], "w") as wheel:\n    for name, text in json.load(sys.stdin).items():\n        wheel.writestr(name, text)\n';
  execFileSync('python3', ['-c', program, path.join(directory, 'shelf-1-py3-none-any.whl')], {
    input: JSON.stringify(files),
  });
}

describe('builds', () => {
  test('npm ci with a lock file, development packages for the build script, NODE_ENV', async () => {
    const lock = {
      name: 'app',
      version: '1.0.0',
      lockfileVersion: 3,
      requires: true,
      packages: {
        '': {
          name: 'app',
          version: '1.0.0',
          dependencies: { plain: 'file:plain' },
          devDependencies: { tool: 'file:tool' },
        },
        'node_modules/plain': { resolved: 'plain', link: true },
        'node_modules/tool': { resolved: 'tool', link: true },
        plain: { version: '1.0.0' },
        tool: { version: '1.0.0', dev: true, bin: { tool: 'tool.js' } },
      },
    };
    const built = await workshop.build(
      workshop.source({
        'package.json': {
          name: 'app',
          version: '1.0.0',
          dependencies: { plain: 'file:plain' },
          devDependencies: { tool: 'file:tool' },
          scripts: { build: 'tool', start: 'node server.js' },
        },
        'package-lock.json': lock,
        'plain/package.json': { name: 'plain', version: '1.0.0' },
        'plain/index.js': 'module.exports = "plain"',
        'tool/package.json': { name: 'tool', version: '1.0.0', bin: { tool: 'tool.js' } },
        'tool/tool.js':
          '#!/usr/bin/env node\nrequire("fs").writeFileSync("made.txt", "made in " + process.env.NODE_ENV + ", CI " + process.env.CI)',
        'server.js': answering('require("plain") + ": " + require("fs").readFileSync("made.txt")'),
      }),
    );
    expect(built).toMatchObject({
      code: 0,
      output: expect.stringMatching(/-----> npm ci\n[^]*-----> npm run build\n/),
    });
    const running = await workshop.start(built);
    expect(await (await fetch(running.url)).text()).toBe('plain: made in production, CI 1');
  });

  test('a Procfile whose command is a program of a package', async () => {
    const built = await workshop.build(
      workshop.source({
        Procfile: 'web: serve-it --fast\n',
        'package.json': { dependencies: { 'serve-it': 'file:serve-it' } },
        'serve-it/package.json': { name: 'serve-it', version: '1.0.0', bin: { 'serve-it': 'serve.js' } },
        'serve-it/serve.js': `#!/usr/bin/env node\n${answering('process.argv[2]')}`,
      }),
    );
    expect(built.code).toBe(0);
    expect(await (await fetch((await workshop.start(built)).url)).text()).toBe('--fast');
  });

  test('the first failure ends it, with its code; a step cannot spoil the next', async () => {
    const failed = await workshop.build(
      workshop.source({ 'package.json': { scripts: { build: 'echo broken >&2; exit 3', start: 'x' } } }),
    );
    expect(failed).toMatchObject({
      code: 3,
      output: expect.stringMatching(/broken[^]*npm run build failed with exit code 3\./),
    });
    const custom = (build_command: string) => workshop.build(workshop.source({ 'index.html': '' }), { build_command });
    expect(await custom("cd /; set -e; trap 'echo never' USR1; echo 'it''s' \"$HOME\" && exit 0")).toMatchObject({
      code: 0,
      output: expect.stringMatching(/-----> Build command\nits .*\/cache\/home\n-----> Web server for files/),
    });
    expect(await custom('echo a; false')).toMatchObject({ code: 1 });
    expect(await custom('kill -9 $$')).toMatchObject({ code: 137 });
  });

  test('a site that a build script makes; and one that makes none', async () => {
    const built = await workshop.build(
      workshop.source({
        'package.json': { scripts: { build: 'mkdir out && echo made > out/index.html' } },
        'index.html': 'source',
      }),
    );
    expect(built.code).toBe(0);
    expect(await (await fetch((await workshop.start(built)).url)).text()).toBe('made\n');
    const none = await workshop.build(workshop.source({ 'package.json': { scripts: { build: 'echo nothing' } } }));
    expect(none).toMatchObject({ code: 1, output: expect.stringMatching(/left no index\.html in dist\/, build\//) });
    const custom = await workshop.build(workshop.source({ 'site.md': '' }), {
      build_command: 'mkdir public && cp site.md public/',
    });
    const running = await workshop.start(custom);
    expect(running.child.exitCode).toBe(1);
    expect(running.output()).toMatch(/There is no index\.html in dist, build/);
  });

  onlyIf(hasPython)(
    'Python (needs python3 with venv): packages, and their programs from another directory',
    async () => {
      const directory = workshop.source({
        'requirements.txt': './shelf-1-py3-none-any.whl\n',
        Procfile: 'web: shelf-serve\n',
      });
      makeWheel(directory);
      const built = await workshop.build(directory);
      expect(built).toMatchObject({ code: 0, plan: { kind: 'procfile', env: { PYTHONUNBUFFERED: '1' } } });
      const text = await (await fetch((await workshop.start(built)).url)).text();
      expect(text).toMatch(/\/instance-[^/]+\/\.platform\/venv$/);
    },
    120_000,
  );

  (hasGo ? test : test.skip)(
    'Go (needs go)',
    async () => {
      const built = await workshop.build(
        workshop.source({
          'go.mod': 'module example.com/shop\n\ngo 1.19\n',
          'main.go':
            'package main\n\nimport ("net/http"; "os")\n\nfunc main() {\n\thttp.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("go")) }))\n}\n',
        }),
      );
      expect(built.code).toBe(0);
      expect(await (await fetch((await workshop.start(built)).url)).text()).toBe('go');
    },
    120_000,
  );
});

describe('the server of sites', () => {
  const script = 'console.log(1);'.repeat(20);
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
        '.env': 'SECRET',
        '.git/config': 'SECRET',
        '.well-known/security.txt': 'contact',
        'assets/app-3f9d8a2c.js': 'x',
      }),
    );
    writeFileSync(path.join(built.directory, 'app.js.br'), brotliCompressSync(script));
    writeFileSync(path.join(built.directory, 'app.js.gz'), gzipSync(script));
    symlinkSync('/etc/passwd', path.join(built.directory, 'passwd.txt'));
    symlinkSync('/etc', path.join(built.directory, 'etc'));
    symlinkSync('about.html', path.join(built.directory, 'also.html'));
    utimesSync(path.join(built.directory, 'data.bin'), 1_700_000_000, 1_700_000_000);
    running = await workshop.start(built);
  });

  interface Answer {
    status: number;
    headers: http.IncomingHttpHeaders;
    body: Buffer;
  }

  /** Not fetch, which tidies paths and unpacks bodies. */
  function get(target: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const request = http.request(running.url, { path: target, headers, method }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () =>
          resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) }),
        );
      });
      request.on('error', reject).end();
    });
  }

  test.each([
    ['/', 'text/html; charset=utf-8', '<h1>home</h1>'],
    ['/about', 'text/html; charset=utf-8', 'about'],
    ['/docs/', 'text/html; charset=utf-8', 'docs'],
    ['/also.html?x=1', 'text/html; charset=utf-8', 'about'],
    ['/app.js', 'text/javascript; charset=utf-8', script],
    ['/with%20space/%C3%B6.txt', 'text/plain; charset=utf-8', 'umlaut'],
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
    '/.platform/static_server.js',
    '/docs/.hidden',
    '/%2eenv',
    '/nowhere',
    '/index.html/',
  ])('%s is not there', async (target) => {
    const answer = await get(target);
    expect(answer).toMatchObject({ status: 404, headers: { 'content-type': 'text/html; charset=utf-8' } });
    expect(answer.body.toString()).toBe('lost');
  });

  test('what is no path, and other methods', async () => {
    for (const target of ['/%', '/%00', '/a%5Cb', '/%ff']) expect((await get(target)).status).toBe(400);
    expect(await get('/', {}, 'POST')).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
  });

  test('a directory without its slash; never to another host', async () => {
    expect(await get('/docs?x=1')).toMatchObject({ status: 301, headers: { location: '/docs/?x=1' } });
    expect(await get('//docs')).toMatchObject({ status: 301, headers: { location: '/docs/' } });
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

  test('compressed files of the build, for who takes them', async () => {
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
  });

  test('200.html answers for everything that is not there', async () => {
    const site = await workshop.build(workshop.source({ 'index.html': 'home', '200.html': 'app', '404.html': 'lost' }));
    const other = await workshop.start(site);
    const answer = await fetch(`${other.url}/some/where`);
    expect([answer.status, await answer.text()]).toEqual([200, 'app']);
    expect((await fetch(`${other.url}/.env`)).status).toBe(200);
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
