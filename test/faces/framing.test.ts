// Requests that two recipients could read differently, and the header that every answer has.
import { connect } from 'node:net';
import { startService, type TestService } from '../support/service';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

/** Everything that is answered to bytes, until the connection ends. */
function exchange(lines: string[], body = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => (text += String(chunk)));
    socket.on('end', () => resolve(text)).on('error', reject);
    socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`);
  });
}

const CHUNKED = '2\r\n{}\r\n0\r\n\r\n';

test.each([
  ['two Host headers', ['GET /v2/errors HTTP/1.1', 'Host: a.example.com', 'Host: b.example.com'], ''],
  ['the same Host twice', ['GET /v2/errors HTTP/1.1', 'Host: a.example.com', 'host: a.example.com'], ''],
  ['no Host', ['GET /v2/errors HTTP/1.1'], ''],
  ['another coding', ['POST /v2/volumes HTTP/1.1', 'Host: a', 'Transfer-Encoding: gzip, chunked'], CHUNKED],
  ['chunked in HTTP/1.0', ['POST /v2/volumes HTTP/1.0', 'Host: a', 'Transfer-Encoding: chunked'], CHUNKED],
])('%s: 400, and the connection ends', async (_, lines, body) => {
  const text = await exchange(lines, body);
  expect(text).toMatch(/^HTTP\/1\.1 400 /);
  expect(text).toMatch(/"code":"malformed_request"/);
  expect(text.toLowerCase()).toMatch(/connection: close/);
});

test('every answer says nosniff', async () => {
  const authorization = { Authorization: `Bearer ${service.key}`, 'X-Svc-Project': service.project };
  const json = { ...authorization, 'Content-Type': 'application/json' };
  const { headers: first } = await service.call('GET', '/v2/regions');
  const cases: [string, RequestInit][] = [
    ['/v2/volumes', { headers: authorization }],
    ['/v2/regions', { headers: { ...authorization, 'If-None-Match': String(first.get('etag')) } }],
    ['/v2/volumes', {}],
    ['/v2/volumes', { method: 'OPTIONS' }],
    ['/v2/volumes', { method: 'POST', headers: json, body: '{' }],
    ['/v2/nowhere', {}],
    ['/v2/openapi.json', {}],
    ['/v2/openapi.json', { method: 'POST' }],
    ['/v2/docs', {}],
    ['/graphql', { headers: { Accept: 'text/html' } }],
    ['/graphql', { method: 'POST', headers: json, body: '{"query":"{ __typename }"}' }],
    ['/graphql', { method: 'POST', headers: json, body: '{}' }],
    ['/', { redirect: 'manual' }],
    ['/healthz', {}],
    ['/nowhere', {}],
  ];
  for (const [path, options] of cases) {
    const answer = await fetch(service.url + path, options);
    expect([path, answer.status, answer.headers.get('x-content-type-options')]).toEqual([
      path,
      answer.status,
      'nosniff',
    ]);
    await answer.arrayBuffer();
  }
});

test('parallel repetitions of a finished request are all replayed', async () => {
  const send = (): ReturnType<TestService['call']> =>
    service.call('POST', '/v2/volumes', { body: { name: 'once', size_gb: 1 }, headers: { 'Idempotency-Key': 'once' } });
  const first = await send();
  const again = await Promise.all(Array.from({ length: 20 }, send));
  expect(again.map(({ status, text, headers }) => [status, text, headers.get('idempotent-replayed')])).toEqual(
    Array(20).fill([201, first.text, 'true']),
  );
});
