/** @tier both @quarter 3 @covers engines/ingress/ingress */
// The ingress's parser of simple requests against hostile visitors: thousands of requests from a seed. What it takes,
// Node's own parser reads in the same way; what it does not take is Node's. FUZZ_SEED and FUZZ_CASES choose others.
import http from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { INGRESS_LIMITS } from '../../../engines/ingress/limits';
import { parseSimpleRequest } from '../../../engines/ingress/http/simple_request';
import { isHeavyRun } from '../../support/processes/kills';
import { fuzzSeed, pick, randomFrom, type Random } from '../../support/runner/seeded_random';

const SEED = fuzzSeed(20_260_201);
const CASES = Number(process.env.FUZZ_CASES ?? (isHeavyRun() ? 30_000 : 6_000));

const socket = {} as Socket;
const parse = (bytes: string | Buffer) => parseSimpleRequest(Buffer.from(bytes as string, 'latin1'), socket, LIMITS);
const LIMITS = { ...INGRESS_LIMITS, headerBytes: 4_096, headers: 20 };
const HOST = 'Host: app.example.com\r\n';

test('what is taken is read', () => {
  const request = parse(
    `GET /a/b?c=d%20 HTTP/1.1\r\nhOsT:\t app.example.com:8000 \r\nX-Bytes: a\u00ff\u0080 b \r\nCookie:a=b\r\n` +
      'X-Empty:\r\nX-Twice: 1\r\nX-Twice: 2\r\n\r\n',
  );
  expect(request).toMatchObject({
    ...{ method: 'GET', url: '/a/b?c=d%20', authority: 'app.example.com:8000', isLast: false, complete: true },
    headers: { host: 'app.example.com:8000', cookie: 'a=b' },
    rawHeaders: [
      ...['hOsT', 'app.example.com:8000', 'X-Bytes', 'a\u00ff\u0080 b', 'Cookie', 'a=b', 'X-Empty', ''],
      ...['X-Twice', '1', 'X-Twice', '2'],
    ],
  });
  const isLast = (value: string) => parse(`GET / HTTP/1.1\r\n${HOST}Connection: ${value}\r\n\r\n`)?.isLast;
  expect(['close', 'Close', 'keep-alive', 'Keep-Alive'].map(isLast)).toEqual([true, true, false, false]);
});

test('a body that came whole with its head is taken', () => {
  const withBody = (method: string, length: string, body: string) =>
    parse(`${method} / HTTP/1.1\r\n${HOST}${length}\r\n${body}`)?.body;
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  expect(withBody('POST', 'Content-Length: 256\r\n', bytes.toString('latin1'))).toEqual(bytes);
  expect(withBody('PUT', 'content-length:4\r\n', '\r\n\r\n')).toEqual(Buffer.from('\r\n\r\n'));
  expect(withBody('PATCH', 'Content-Length: 5000\r\n', 'x'.repeat(5_000))).toHaveLength(5_000);
  expect(withBody('POST', 'Content-Length: 0\r\n', '')).toBeNull();
  expect(withBody('POST', '', '')).toBeNull();
});

test.each([
  ['half a head', `GET / HTTP/1.1\r\n${HOST}`],
  ['no end of the head', `GET / HTTP/1.1\r\n${HOST}\r`],
  ['a second request', `GET / HTTP/1.1\r\n${HOST}\r\nGET /smuggled HTTP/1.1\r\n${HOST}\r\n`],
  ['an empty line in front', `\r\nGET / HTTP/1.1\r\n${HOST}\r\n`],
  ['bytes behind the head', `GET / HTTP/1.1\r\n${HOST}\r\nx\r\n\r\n`],
  ['bare line feeds', 'GET / HTTP/1.1\nHost: app.example.com\n\n'],
  ['one bare line feed', `GET / HTTP/1.1\r\nX-A: b\n${HOST}\r\n`],
  ['a bare line feed at the end', `GET / HTTP/1.1\r\n${HOST}X: y\r\n\n\r\n`],
  ['a bare carriage return', `GET / HTTP/1.1\r\nX-A: b\rX-B: c\r\n${HOST}\r\n`],
  ['a folded header', `GET / HTTP/1.1\r\n${HOST}X-A: b\r\n c\r\n\r\n`],
  ['a folded header by a tab', `GET / HTTP/1.1\r\n${HOST}X-A: b\r\n\tc: d\r\n\r\n`],
  ['a space before the first header', `GET / HTTP/1.1\r\n ${HOST}\r\n`],
  ['a space before a colon', `GET / HTTP/1.1\r\n${HOST}X-A : b\r\n\r\n`],
  ['a tab before a colon', `GET / HTTP/1.1\r\n${HOST}X-A\t: b\r\n\r\n`],
  ['no colon', `GET / HTTP/1.1\r\n${HOST}X-A\r\n\r\n`],
  ['no name', `GET / HTTP/1.1\r\n${HOST}: b\r\n\r\n`],
  ['NUL in a value', `GET / HTTP/1.1\r\n${HOST}X-A: b\0c\r\n\r\n`],
  ['NUL in a name', `GET / HTTP/1.1\r\n${HOST}X\0A: b\r\n\r\n`],
  ['DEL in a value', `GET / HTTP/1.1\r\n${HOST}X-A: b\x7f\r\n\r\n`],
  ['a form feed in a value', `GET / HTTP/1.1\r\n${HOST}X-A: b\f\r\n\r\n`],
  ['a byte above ASCII in a name', `GET / HTTP/1.1\r\n${HOST}X-\u00c4: b\r\n\r\n`],
  ['a length', `GET / HTTP/1.1\r\n${HOST}Content-Length: 0\r\n\r\n`],
  ['half a body', `POST / HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nhell`],
  ['more than a body', `POST / HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nhello!`],
  ['a body without a length', `POST / HTTP/1.1\r\n${HOST}\r\nhello`],
  ['a body of no length', `POST / HTTP/1.1\r\n${HOST}Content-Length: 0\r\n\r\nhello`],
  ['two lengths', `POST / HTTP/1.1\r\n${HOST}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`],
  ['a list of lengths', `POST / HTTP/1.1\r\n${HOST}Content-Length: 5, 5\r\n\r\nhello`],
  ['a length with a sign', `POST / HTTP/1.1\r\n${HOST}Content-Length: +5\r\n\r\nhello`],
  ['a length with a zero in front', `POST / HTTP/1.1\r\n${HOST}Content-Length: 05\r\n\r\nhello`],
  ['a length in other digits', `POST / HTTP/1.1\r\n${HOST}Content-Length: 0x5\r\n\r\nhello`],
  ['an empty length', `POST / HTTP/1.1\r\n${HOST}Content-Length:\r\n\r\n`],
  ['a body in chunks', `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['a body of a method that has none', `DELETE / HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nhello`],
  ['a length in another case', `GET / HTTP/1.1\r\n${HOST}cONTENT-lENGTH: 5\r\n\r\n`],
  ['a coding', `GET / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`],
  ['both', `GET / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n`],
  ['an expectation', `GET / HTTP/1.1\r\n${HOST}Expect: 100-continue\r\n\r\n`],
  ['another protocol', `GET / HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`],
  ['another protocol without Connection', `GET / HTTP/1.1\r\n${HOST}Upgrade: h2c\r\n\r\n`],
  ['a header that Connection names', `GET / HTTP/1.1\r\n${HOST}Connection: keep-alive, X-A\r\nX-A: b\r\n\r\n`],
  ['Connection twice', `GET / HTTP/1.1\r\n${HOST}Connection: close\r\nConnection: close\r\n\r\n`],
  ['Connection by another name', `GET / HTTP/1.1\r\n${HOST}Proxy-Connection: close\r\n\r\n`],
  ['trailers', `GET / HTTP/1.1\r\n${HOST}TE: trailers\r\n\r\n`],
  ['no host', 'GET / HTTP/1.1\r\nX-A: b\r\n\r\n'],
  ['no headers', 'GET / HTTP/1.1\r\n\r\n'],
  ['two hosts', `GET / HTTP/1.1\r\n${HOST}host: other.example.com\r\n\r\n`],
  ['two hosts, one empty', `GET / HTTP/1.1\r\nHost:\r\n${HOST}\r\n`],
  ['a cookie twice', `GET / HTTP/1.1\r\n${HOST}Cookie: a=b\r\nCookie: c=d\r\n\r\n`],
  ['a chain of proxies twice', `GET / HTTP/1.1\r\n${HOST}X-Forwarded-For: ::1\r\nX-Forwarded-For: ::2\r\n\r\n`],
  ['HTTP/1.0', `GET / HTTP/1.0\r\n${HOST}\r\n`],
  ['HTTP/2 in words', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['HTTP/1.10', `GET / HTTP/1.10\r\n${HOST}\r\n`],
  ['another name of HTTP', `GET / http/1.1\r\n${HOST}\r\n`],
  ['no version', `GET /\r\n${HOST}\r\n`],
  ['two spaces', `GET  / HTTP/1.1\r\n${HOST}\r\n`],
  ['a space in the path', `GET /a b HTTP/1.1\r\n${HOST}\r\n`],
  ['a space behind the version', `GET / HTTP/1.1 \r\n${HOST}\r\n`],
  ['a tab', `GET\t/ HTTP/1.1\r\n${HOST}\r\n`],
  ['an absolute target', `GET http://app.example.com/ HTTP/1.1\r\n${HOST}\r\n`],
  ['no path', `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`],
  ['a fragment', `GET /a#b HTTP/1.1\r\n${HOST}\r\n`],
  ['a byte above ASCII in the path', `GET /\u00e4 HTTP/1.1\r\n${HOST}\r\n`],
  ['a tunnel', `CONNECT app.example.com:80 HTTP/1.1\r\n${HOST}\r\n`],
  ['a method in lower case', `get / HTTP/1.1\r\n${HOST}\r\n`],
  ['a method that nobody knows', `GETS / HTTP/1.1\r\n${HOST}\r\n`],
  ['a large head', `GET / HTTP/1.1\r\n${HOST}X-A: ${'a'.repeat(4_096)}\r\n\r\n`],
  ['many headers', `GET / HTTP/1.1\r\n${HOST}${'a:b\r\n'.repeat(20)}\r\n`],
  ['TLS', Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 13, 10, 13, 10, 13, 10, 13, 10])],
])('%s is left to Node', (_, bytes) => {
  expect(parse(bytes)).toBeNull();
});

test('a large head that is nearly right costs no more than its length', () => {
  const limits = { ...INGRESS_LIMITS, headerBytes: 1 << 20 };
  const bytes = Buffer.from(`GET / HTTP/1.1\r\n${HOST}${`X-A: ${'a'.repeat(100)}\r\n`.repeat(9_000)}X-A : b\r\n\r\n`);
  const started = process.cpuUsage();
  expect(parseSimpleRequest(bytes, socket, limits)).toBeNull();
  expect(process.cpuUsage(started).user).toBeLessThan(2_000_000);
});

test('what is taken is what Node reads', async () => {
  const random = randomFrom(SEED);
  let [taken, bodies] = [0, 0];
  for (let number = 0; number < CASES; number += 1) {
    const bytes = hostileRequest(random);
    const ours = parse(bytes);
    if (ours === null) continue;
    taken += 1;
    const { method, url, rawHeaders, isLast, body } = ours;
    if (body) bodies += 1;
    expect({ number, requests: await readWithNode(bytes) }).toEqual({
      number,
      requests: [{ method, url, rawHeaders, isLast, body: body?.toString('latin1') ?? '' }],
    });
  }
  expect(taken).toBeGreaterThan(CASES / 40);
  expect(taken).toBeLessThan(CASES / 2);
  expect(bodies).toBeGreaterThan(CASES / 400);
});

/** What Node's server makes of the bytes; empty where it refuses them. */
async function readWithNode(bytes: Buffer): Promise<object[]> {
  const requests: object[] = [];
  const server = http.createServer({ maxHeaderSize: 8_192 }, (request, response) => {
    let body = '';
    const { method, url, rawHeaders } = request;
    request.setEncoding('latin1').on('data', (text: string) => (body += text));
    request.on('end', () => {
      requests.push({ method, url, rawHeaders, isLast: !response.shouldKeepAlive, body });
      response.end();
    });
  });
  server.maxHeadersCount = 0;
  const stream = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  server.emit('connection', stream);
  stream.push(bytes);
  stream.push(null);
  await new Promise((resolve) => stream.on('close', resolve));
  return requests;
}

const LINES = [
  ...Array<string>(8).fill('GET / HTTP/1.1'),
  ...Array<string>(8).fill('POST / HTTP/1.1'),
  ...['HEAD /a HTTP/1.1', 'DELETE /a?b=c&d HTTP/1.1', 'OPTIONS /%00 HTTP/1.1', 'POST / HTTP/1.1', 'GET / HTTP/1.0'],
  ...['GET /a"<>\\^`{|}[]!$ HTTP/1.1', 'GET /#a HTTP/1.1', 'GET  / HTTP/1.1', 'GET /a b HTTP/1.1', 'GET / HTTP/1.2'],
  ...['GET //other.example.com HTTP/1.1', 'GET http://a/ HTTP/1.1', 'OPTIONS * HTTP/1.1', 'CONNECT a:80 HTTP/1.1', ''],
];
const HEADERS = [
  ...Array<string>(6).fill('Content-Length: 5'),
  ...['Content-Length: 05', 'Content-Length: 0', 'Transfer-Encoding: chunked', 'Transfer-Encoding : chunked', 'TE: x'],
  ...['Host: other.example.com', 'Connection: close', 'Connection: keep-alive', 'Connection: close, X', 'Expect: x'],
  ...['Upgrade: websocket', 'Connection: upgrade', 'Cookie: a=b', 'Cookie: c=d', 'Accept: text/html', 'X-A:', 'X-B:b'],
  ...['X-C: \t c \t ', 'X-Bytes: \u00ff\u0080\u00a0', ' folded: line', '\tfolded', 'no colon', ': no name', 'X!#$%: y'],
  ...['X-Long: ' + 'a'.repeat(300), 'Keep-Alive: timeout=5', 'Proxy-Connection: close', '__proto__: x', 'Host:'],
];
const ENDS = [
  ...Array<string>(6).fill(''),
  ...Array<string>(3).fill('hello'),
  ...['\0\r\n\r\n', '0\r\n\r\n', 'GET /b HTTP/1.1\r\nHost: app.example.com\r\n\r\n'],
];

function hostileRequest(random: Random): Buffer {
  const headers = Array.from({ length: Math.floor(random() * 4) }, () => pick(random, HEADERS));
  headers.splice(Math.floor(random() * headers.length), 0, 'Host: app.example.com');
  const lineEnd = random() < 0.03 ? '\n' : '\r\n';
  const bytes = Buffer.from([pick(random, LINES), ...headers, '', ''].join(lineEnd) + pick(random, ENDS), 'latin1');
  // A wrong byte here and there.
  if (random() < 0.3) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
  return bytes;
}
