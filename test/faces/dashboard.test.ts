// The files of the dashboard as a browser gets them: headers, caching, compression, every path. Without Chromium.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { brotliCompressSync, brotliDecompressSync, gzipSync } from 'node:zlib';
import express from 'express';
import { dashboard } from '../../server/http/dashboard';
import { get } from '../support/http_get';

const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
const SCRIPT = 'console.log("a script that is worth compressing");'.repeat(20);

let folder: string;
let servers: Server[] = [];

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'dashboard-'));
  mkdirSync(path.join(folder, 'assets'));
  const write = (name: string, text: string): void => {
    writeFileSync(path.join(folder, name), text);
    writeFileSync(path.join(folder, `${name}.br`), brotliCompressSync(text));
    writeFileSync(path.join(folder, `${name}.gz`), gzipSync(text));
  };
  write('index.html', '<!doctype html><title>Dashboard</title><script type="module" src="/assets/a-1.js"></script>');
  write('assets/a-1.js', SCRIPT);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(() => {
  for (const server of servers) server.close();
  servers = [];
});

/** A server with the files of a folder, and one route of an API between them. */
async function serve(of = folder, elsewhere: string[] = []): Promise<string> {
  const { files, pages } = dashboard(of, () => elsewhere);
  const app = express().disable('x-powered-by').disable('etag').use(files);
  app.get('/healthz', (_, response) => void response.json({ status: 'ok' }));
  app.use(pages).use((_, response) => void response.status(404).json({ code: 'route_not_found' }));
  const server = createServer(app);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

test('a browser gets the page at each path, with a policy that allows files of this server alone', async () => {
  const base = await serve();
  for (const place of ['/', '/applications/app_1/logs', '/sign-in?return_to=%2F']) {
    const { status, headers, body } = await get(base + place, HTML);
    expect([place, status, headers['content-type']]).toEqual([place, 200, 'text/html; charset=utf-8']);
    expect(body.toString()).toContain('<title>Dashboard</title>');
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).toContain("require-trusted-types-for 'script'");
    expect(policy).not.toMatch(/unsafe|https?:/);
    expect(headers).toMatchObject({
      'cache-control': 'no-cache',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'same-origin',
    });
    expect(String(headers.vary)).toMatch(/Accept\b.*Accept-Encoding/);
  }
});

test('the terminal of a run alone may have styles of its own, and nothing more', async () => {
  const base = await serve();
  const policyOf = async (place: string): Promise<string> =>
    String((await get(base + place, HTML)).headers['content-security-policy']);
  const usual = await policyOf('/');
  const terminal = '/applications/app_1/runs/run_1/terminal';
  expect(await policyOf(terminal)).toBe(usual.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'"));
  for (const place of [`${terminal}/more`, `/x${terminal}`, '/applications/a/runs/terminal', `/?${terminal}`])
    expect(await policyOf(place)).toBe(usual);
});

test('the pages may call the origin of object storage too, and no other one', async () => {
  const [alone, beside] = [await serve(), await serve(folder, ['https://s3.example.com'])];
  const policyOf = async (base: string): Promise<string> =>
    String((await get(`${base}/buckets/bkt_1`, HTML)).headers['content-security-policy']);
  expect(await policyOf(beside)).toBe(
    (await policyOf(alone)).replace("connect-src 'self'", "connect-src 'self' https://s3.example.com"),
  );
});

test('programs get what the API answered before', async () => {
  const base = await serve();
  for (const accept of ['application/json', '*/*']) {
    expect(await get(base, { accept })).toMatchObject({ status: 302, headers: { location: '/v2/docs' } });
    expect((await get(`${base}/nowhere`, { accept })).status).toBe(404);
  }
  expect((await get(`${base}/healthz`, HTML)).body.toString()).toBe('{"status":"ok"}');
});

test('files with a digest in their names are kept for ever, those that are gone are not the page', async () => {
  const base = await serve();
  const { headers } = await get(`${base}/assets/a-1.js`);
  expect(headers).toMatchObject({ 'cache-control': 'public, max-age=31536000, immutable' });
  expect(headers['content-type']).toBe('text/javascript; charset=utf-8');
  expect((await get(`${base}/assets/a-0.js`, HTML)).status).toBe(404);
  expect((await get(`${base}/assets/..%2findex.html`, HTML)).status).toBe(404);
});

test('what was compressed by the build is sent to who takes it, with an ETag of its own', async () => {
  const base = await serve();
  const plain = await get(`${base}/assets/a-1.js`, { 'accept-encoding': 'identity' });
  expect([plain.headers['content-encoding'], plain.body.toString()]).toEqual([undefined, SCRIPT]);
  const small = await get(`${base}/assets/a-1.js`, { 'accept-encoding': 'gzip, deflate, br' });
  expect([small.headers['content-encoding'], brotliDecompressSync(small.body).toString()]).toEqual(['br', SCRIPT]);
  const refused = await get(`${base}/assets/a-1.js`, { 'accept-encoding': 'br;q=0, gzip' });
  expect(refused.headers['content-encoding']).toBe('gzip');
  expect(new Set([plain, small, refused].map(({ headers }) => headers.etag)).size).toBe(3);
  const again = { 'accept-encoding': 'br', 'if-none-match': `"other", W/${String(small.headers.etag)}` };
  expect(await get(`${base}/assets/a-1.js`, again)).toMatchObject({ status: 304, body: Buffer.alloc(0) });
});

test('where the dashboard was not built, browsers get the command', async () => {
  const base = await serve(path.join(folder, 'nothing'));
  const { status, body, headers } = await get(base, HTML);
  expect(status).toBe(503);
  expect(body.toString()).toContain('npm ci &amp;&amp; npm run build');
  expect(headers['content-security-policy']).toContain("default-src 'none'");
  expect((await get(base, { accept: 'application/json' })).status).toBe(302);
});
