// What a check reads of a page: packed though nobody asked for it, in other encodings than UTF-8, behind a cookie.
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import type { CheckOutcome } from '../../../core/protocols/checks';
import { openMonitor } from '../../../drivers/monitor/open';
import { openOutbound } from '../../../core/outbound';

const isAllowed = (address: string): boolean => address === '127.0.0.1';
const monitor = openMonitor(openOutbound({ isAllowed, hostsFile: false, resolvers: ['127.0.0.1:1'], caFile: null }));
let respond: (path: string, response: ServerResponse, cookie: string) => unknown;
let server: Server;

beforeAll(async () => {
  server = createServer((request, response) => respond(request.url ?? '/', response, request.headers.cookie ?? ''));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

const check = (expected_body: string | null, headers: { name: string; value: string }[] = []): Promise<CheckOutcome> =>
  monitor.check({
    ...{ check: 'http', target: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, method: 'GET', headers },
    ...{ expected_status_codes: [200], expected_body, follow_redirects: true, verify_tls: true, timeout_seconds: 5 },
  });

const page = Buffer.from('<p>Öffnungszeiten: täglich</p>');
const shiftJis = Buffer.concat([Buffer.from('<meta charset="shift_jis">'), Buffer.from('93fa967b8cea', 'hex')]);

test.each<[string, Record<string, string>, Buffer, string]>([
  ['as it is', {}, page, 'täglich'],
  ['gzip', { 'Content-Encoding': 'gzip' }, gzipSync(page), 'täglich'],
  ['br', { 'Content-Encoding': 'BR' }, brotliCompressSync(page), 'täglich'],
  ['deflate', { 'Content-Encoding': 'deflate' }, deflateSync(page), 'täglich'],
  ['deflate without the zlib header', { 'Content-Encoding': 'deflate' }, deflateRawSync(page), 'täglich'],
  ['two codings', { 'Content-Encoding': 'gzip, br' }, brotliCompressSync(gzipSync(page)), 'täglich'],
  ['identity', { 'Content-Encoding': 'identity' }, page, 'täglich'],
  ['Latin-1', { 'Content-Type': 'text/html; charset=ISO-8859-1' }, Buffer.from(`${page}`, 'latin1'), 'täglich'],
  ['a quoted charset', { 'Content-Type': 'text/html;charset="utf-8"' }, page, 'täglich'],
  ['a charset in the page', { 'Content-Type': 'text/html' }, shiftJis, '日本語'],
  ['an XML declaration', {}, Buffer.from('<?xml version="1.0" encoding="iso-8859-15"?>\xa4', 'latin1'), '€'],
  ['UTF-16 by its mark', {}, Buffer.from('\ufefftäglich', 'utf16le'), 'täglich'],
  ['UTF-8 with a mark', {}, Buffer.from('\ufefftäglich'), 'täglich'],
])('a page is read: %s', async (_, headers, body, text) => {
  respond = (_path, response) => response.writeHead(200, headers).end(body);
  expect(await check(text)).toMatchObject({ status: 'pass', error: null });
  expect(await check('geschlossen')).toMatchObject({ error: 'The answer did not contain the expected text.' });
});

test.each<[Record<string, string>, Buffer, string]>([
  [{ 'Content-Encoding': 'gzip' }, page, 'The answer is declared as compressed with gzip, but it is not.'],
  [{ 'Content-Encoding': 'deflate' }, page, 'The answer is declared as compressed with deflate, but it is not.'],
  [{ 'Content-Encoding': 'dcb' }, page, 'The answer is compressed as "dcb", which checks cannot decompress.'],
  [{ 'Content-Type': 'text/plain; charset=klingon' }, page, 'The answer has the unknown character encoding "klingon".'],
  [
    { 'Content-Encoding': 'gzip' },
    gzipSync(Buffer.alloc(64 * 2 ** 20)),
    'The answer did not contain the expected text in its first MiB.',
  ],
])('a page that is not what it says is named: %j', async (headers, body, error) => {
  respond = (_path, response) => response.writeHead(200, headers).end(body);
  expect(await check('täglich')).toMatchObject({ status: 'fail', error });
  expect(await check(null)).toMatchObject({ status: 'pass', error: null });
});

test('a redirect that needs a cookie is followed with it, beside a cookie of the check', async () => {
  respond = (path, response, cookie) => {
    if (path === '/') response.writeHead(302, { Location: '/home', 'Set-Cookie': ['sid=1; Path=/; HttpOnly', 'bad'] });
    else response.writeHead(/(^|; )sid=1/.test(cookie) ? 200 : 403);
    response.end(cookie);
  };
  expect(await check('sid=1')).toMatchObject({ status: 'pass', error: null });
  expect(await check('theme=dark; sid=1', [{ name: 'Cookie', value: 'theme=dark' }])).toMatchObject({ error: null });
});
