// Connections on which nothing is sent end, but not while the service works at a request.
import net from 'node:net';
import type { ServerResponse } from 'node:http';
import { limits } from '../../core/limits';
import { listenHttp, type HttpServer } from '../../server/http/http';

const SILENT_MS = 300;
const before = limits.silentTimeoutMs;
let server: HttpServer;

beforeAll(async () => {
  Object.assign(limits, { silentTimeoutMs: SILENT_MS });
  const answerLate = (response: ServerResponse): void =>
    void setTimeout(() => response.destroyed || response.end('late'), 4 * SILENT_MS);
  server = await listenHttp(
    { host: '127.0.0.1', port: 0, trustProxy: 0, webConcurrency: 1 },
    {
      rest: async () => undefined,
      others(request, response) {
        request.resume();
        if (request.url === '/unread') response.end(Buffer.alloc(64 * 2 ** 20));
        else answerLate(response);
      },
      upgrade: () => false,
      baseUrl: () => 'http://localhost',
      hasOwnName: () => false,
      corsOrigins: () => [],
    },
  );
});
afterAll(async () => {
  Object.assign(limits, { silentTimeoutMs: before });
  await server.close(0);
});

/** What comes until the connection ends. */
function send(text: string, reads = true): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect(server.port, '127.0.0.1');
    let answer = '';
    socket.on('error', () => undefined).on('close', () => resolve(answer));
    if (reads) socket.on('data', (piece) => (answer += piece));
    // Its end shows when it reads again.
    else setTimeout(() => socket.on('data', (piece) => (answer += piece)), 6 * SILENT_MS);
    socket.write(text);
  });
}

test('a request that is worked at is not silent', async () => {
  const answer = await send('PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody');
  expect(answer).toMatch(/^HTTP\/1\.1 200 [\s\S]*late/);
});

test('a body that stalls, and an answer that is not read, are', async () => {
  expect(await send('PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo')).toBe('');
  const unread = await send('GET /unread HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', false);
  expect(unread.length).toBeLessThan(64 * 2 ** 20);
});
