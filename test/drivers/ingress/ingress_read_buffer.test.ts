// All instances are read into the same memory: what waits for a slow visitor, or for the rest of a head, is its own.
import type http from 'node:http';
import { connect, type Socket } from 'node:net';
import {
  ask,
  closeAll,
  open,
  openFront,
  raw,
  routeOf,
  startApp,
  startRawApp,
  whole,
  type Front,
} from '../../support/ingress/ingress';

afterEach(closeAll);

const BYTES = 6 << 20;
const WEBSOCKET =
  'GET /ws HTTP/1.1\r\nHost: app.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n';

/** Bodies of one letter each, the path of the request: with a length, in chunks, or until the end. */
async function startLetters(): Promise<Front> {
  const app = await startApp((request, response) => {
    const letter = request.url![1]!;
    if (request.url!.length > 2) return response.end(letter.repeat(Number(request.url!.slice(2))));
    if (letter === 'a') response.setHeader('Content-Length', BYTES);
    if (letter === 'b') response.useChunkedEncodingByDefault = false;
    response.write(letter.repeat(BYTES / 2));
    return response.end(letter.repeat(BYTES / 2));
  });
  app.server.on('upgrade', (_: http.IncomingMessage, socket: Socket) => {
    socket.on('error', () => undefined);
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    socket.end('w'.repeat(BYTES));
  });
  return openFront([routeOf([app])], { limits: { clientIdleMs: 60_000 } });
}

async function askOften(front: Front): Promise<void> {
  for (let round = 0; round < 25; round += 1) {
    const answers = await Promise.all(['/x5', '/y3000', '/z70000'].map((path) => ask(front, { path })));
    expect(answers.map(({ body }) => body)).toEqual(['x'.repeat(5), 'y'.repeat(3_000), 'z'.repeat(70_000)]);
  }
}

test('what waits for slow visitors is not mixed with the responses to others', async () => {
  const front = await startLetters();
  const slow = ['/a', '/b', '/c'].map((path) => {
    const request = open(front, { path });
    return new Promise<http.IncomingMessage>((resolve) => request.on('response', resolve).end());
  });
  const responses = await Promise.all(slow);
  await askOften(front);
  const bodies = await Promise.all(responses.map(whole));
  expect(bodies.map(({ body }) => body.length)).toEqual([BYTES, BYTES, BYTES]);
  expect(bodies.map(({ body }) => [...new Set(body)].join(''))).toEqual(['a', 'b', 'c']);
});

test('nor is what waits behind a WebSocket', async () => {
  const front = await startLetters();
  const socket = connect(front.port, '127.0.0.1', () => socket.write(WEBSOCKET)).pause();
  await askOften(front);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString('latin1');
  const frames = text.slice(text.indexOf('\r\n\r\n') + 4);
  expect([frames.length, [...new Set(frames)].join('')]).toEqual([BYTES, 'w']);
});

test('nor are heads, sizes of chunks and trailers that come in pieces', async () => {
  const letters = await startLetters();
  const parts = [
    'HTTP/1.1 200 OK\r\nX-Long: ',
    'long\r\nTransfer-Encoding: chunked\r\n\r',
    '\n1',
    '0\r\n0123456789abcdef\r',
  ];
  const rest = ['\n0\r\nX-La', 'st: yes\r\n\r', '\n'];
  const app = await startRawApp(async (socket) => {
    await new Promise((resolve) => socket.once('data', resolve));
    for (const part of [...parts, ...rest]) {
      socket.write(part);
      // Others have the memory in the meantime.
      await ask(letters, { path: '/z70000' });
    }
  });
  const front = await openFront([routeOf([app])]);
  const text = await raw(front.port, 'GET / HTTP/1.1\r\nHost: app.example.com\r\nConnection: close\r\n\r\n', 15_000);
  expect(text).toContain('X-Long: long\r\n');
  expect(text).toMatch(/\r\n\r\n10\r\n0123456789abcdef\r\n0\r\nX-Last: yes\r\n\r\n$/);
});
