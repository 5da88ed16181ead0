// Connections on which simple requests come, and what takes them to node:http.
import http from 'node:http';
import { connect } from 'node:net';
import { ask, closeAll, openFront, raw, routeOf, startApp, startRawApp, until } from '../../support/ingress/ingress';

afterEach(closeAll);

const GET = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: app.example.com\r\n${more}\r\n`;
const LAST = 'Connection: close\r\n';

/** An application that answers with the path, `/slow/…` a little later. */
const echo = () =>
  startApp((request, response) => {
    const path = request.url ?? '';
    request.resume().on('end', () => setTimeout(() => response.end(path), path.startsWith('/slow') ? 50 : 0));
  });

const pathOf = (head: Buffer): string => String(head).split(' ')[1] ?? '';

/** The bodies of answers on one connection, in order. */
const bodiesOf = (text: string): string[] =>
  [...text.matchAll(/\r\n\r\n(\/[a-z0-9/]*)/g)].map(([, body]) => body ?? '');

test('requests in one piece are answered in their order, whatever they are', async () => {
  const front = await openFront([routeOf([await echo()])]);
  const post = 'POST /slow/post HTTP/1.1\r\nHost: app.example.com\r\nContent-Length: 2\r\n\r\nhi';
  const text = await raw(front.port, GET('/slow/1') + post + GET('/2') + GET('/3', LAST));
  expect(bodiesOf(text)).toEqual(['/slow/1', '/slow/post', '/2', '/3']);
});

test('a request that comes while another is under way waits for it', async () => {
  const front = await openFront([routeOf([await echo()])]);
  const socket = connect(front.port, '127.0.0.1');
  let text = '';
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.on('data', (chunk) => (text += chunk.toString('latin1')));
  socket.setNoDelay(true).write(GET('/slow/1'));
  for (const bytes of [GET('/2'), GET('/slow/3'), 'GET /4 HTT', `P/1.1\r\nHost: app.example.com\r\n${LAST}\r\n`]) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    socket.write(bytes);
  }
  await closed;
  expect(bodiesOf(text)).toEqual(['/slow/1', '/2', '/slow/3', '/4']);
});

test('a connection goes on behind a request with a body, and behind one that comes byte by byte', async () => {
  const front = await openFront([routeOf([await echo()])]);
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const paths: string[] = [];
  for (const [path, method, body] of [
    ['/1', 'GET'],
    ['/2', 'POST', 'x'.repeat(200_000)],
    ['/3', 'GET'],
    ['/4', 'PUT', ''],
    ['/5', 'DELETE'],
  ] as const)
    paths.push((await ask(front, { path, method, agent, ...(body !== undefined && { body }) })).body);
  agent.destroy();
  expect(paths).toEqual(['/1', '/2', '/3', '/4', '/5']);
  const socket = connect(front.port, '127.0.0.1').setNoDelay(true);
  let text = '';
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.on('data', (chunk) => (text += chunk.toString('latin1')));
  for (const byte of GET('/bytes', LAST)) await new Promise((resolve) => socket.write(byte, resolve));
  await closed;
  expect(bodiesOf(text)).toEqual(['/bytes']);
});

test('bodies that come with their head arrive as they were, and the connection serves on', async () => {
  const app = await startApp((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => response.end(`${request.method} ${Buffer.concat(chunks).toString('base64')}`));
  });
  const front = await openFront([routeOf([app])], { limits: { bodyBytes: 70_000 } });
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const allBytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  const bodies = [allBytes, Buffer.alloc(0), Buffer.from('\r\n\r\nGET / HTTP/1.1\r\n\r\n'), Buffer.alloc(60_000, 7)];
  for (const body of bodies)
    for (const method of ['POST', 'PUT', 'PATCH'])
      expect((await ask(front, { method, agent, body })).body).toBe(`${method} ${body.toString('base64')}`);
  expect((await ask(front, { agent })).body).toBe('GET ');
  expect((await ask(front, { method: 'POST', agent, body: Buffer.alloc(70_001) })).status).toBe(413);
  agent.destroy();
  const bytes = 3 * bodies.reduce((sum, { length }) => sum + length, 0);
  expect(front.ingress.takeTraffic()).toMatchObject([{ received_bytes: bytes }, { received_bytes: 0 }]);
});

test('a body in one piece with its head is answered on the connection of the requests around it', async () => {
  const front = await openFront([routeOf([await echo()])]);
  const socket = connect(front.port, '127.0.0.1').setNoDelay(true);
  let text = '';
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.on('data', (chunk) => (text += chunk.toString('latin1')));
  const post = (path: string): string =>
    `POST ${path} HTTP/1.1\r\nHost: app.example.com\r\nContent-Length: 2\r\n\r\nhi`;
  for (const bytes of [post('/slow/1'), post('/2'), GET('/3'), post('/slow/4'), GET('/5', LAST)]) {
    socket.write(bytes);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await closed;
  expect(bodiesOf(text)).toEqual(['/slow/1', '/2', '/3', '/slow/4', '/5']);
});

test('behind a request that closes the connection nothing is served', async () => {
  const seen: string[] = [];
  const app = await startApp((request, response) => {
    seen.push(request.url ?? '');
    socket.write(GET('/never'), () => setTimeout(() => response.end('/only'), 50));
  });
  const front = await openFront([routeOf([app])]);
  const socket = connect(front.port, '127.0.0.1').setNoDelay(true);
  let text = '';
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.on('data', (chunk) => (text += chunk.toString('latin1'))).on('error', () => undefined);
  socket.write(GET('/only', LAST));
  await closed;
  expect(bodiesOf(text)).toEqual(['/only']);
  expect(text).toContain('Connection: close\r\n');
  expect(seen).toEqual(['/only']);
});

test('answers have what those of node:http have', async () => {
  const answers: Record<string, string> = {
    '/length': 'HTTP/1.1 200 Fine\r\nContent-Length: 2\r\nX-A: b\r\n\r\nhi',
    '/dated': 'HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 0\r\n\r\n',
    '/chunks': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-T: t\r\n\r\n',
    '/none': 'HTTP/1.1 204 No Content\r\n\r\n',
    '/same': 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n',
    '/bytes': 'HTTP/1.1 200 OK\r\nX-A: \u00ff\r\nContent-Length: 1\r\n\r\n\u00ff',
  };
  const app = await startRawApp((socket) =>
    socket.on('data', (head) => socket.write(answers[pathOf(head)] ?? '', 'latin1')),
  );
  const front = await openFront([routeOf([app])]);
  // A header that has to be Node's: it takes the connection there before the path is asked for.
  const readBoth = async (path: string): Promise<string[]> => {
    const ofNode = await raw(front.port, GET(path, `${LAST}TE: trailers\r\n`));
    const simple = await raw(front.port, GET(path, LAST));
    return [simple, ofNode].map((text) => text.replace(/(?<=Date: ).*(?= GMT)/, 'now'));
  };
  for (const path of Object.keys(answers)) {
    const [simple, ofNode] = await readBoth(path);
    expect(simple).toBe(ofNode);
  }
  const kept = await new Promise<string>((resolve) => {
    const socket = connect(front.port, '127.0.0.1', () => socket.write(GET('/length')));
    socket.on('data', (chunk) => (socket.destroy(), resolve(String(chunk))));
  });
  expect(kept).toMatch(/\r\nConnection: keep-alive\r\nKeep-Alive: timeout=65\r\n/);
});

test('an answer with a character that ends a line, or none, is refused, and the connection serves on', async () => {
  const between: Record<string, string> = { '/nul': '\0', '/return': '\r', '/good': '' };
  const app = await startRawApp((socket) =>
    socket.on('data', (head) =>
      socket.write(`HTTP/1.1 200 OK\r\nX-A: b${between[pathOf(head)]}c\r\nContent-Length: 2\r\n\r\nhi`),
    ),
  );
  const front = await openFront([routeOf([app])]);
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const statuses = [];
  for (const path of ['/nul', '/return', '/good']) statuses.push((await ask(front, { path, agent })).status);
  agent.destroy();
  expect(statuses).toEqual([502, 502, 200]);
});

test('a large answer waits for a visitor that reads slowly', async () => {
  const size = 20 << 20;
  const app = await startApp((_, response) => response.end(Buffer.alloc(size, 'x')));
  const front = await openFront([routeOf([app])]);
  const socket = connect(front.port, '127.0.0.1', () => socket.write(GET('/', LAST)));
  socket.pause();
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(front.lines).toEqual([]);
  let bytes = 0;
  socket.on('data', (chunk) => (bytes += chunk.length)).resume();
  await new Promise((resolve) => socket.on('close', resolve));
  expect(bytes).toBeGreaterThan(size);
  await until(() => front.lines.length === 1);
  expect(front.lines).toMatchObject([{ status: 200, bytes_sent: size, reason: null }]);
});

test('a connection without a request ends, and so does one without a further request', async () => {
  const front = await openFront([routeOf([await echo()])], {
    limits: { sweepMs: 20, headersMs: 2_000, keepAliveMs: 1_000 },
  });
  expect(await raw(front.port, '', 15_000)).toMatch(/^HTTP\/1\.1 408 /);
  const kept = await raw(front.port, GET('/once'), 15_000);
  expect(kept).toContain('Keep-Alive: timeout=1\r\n');
  expect(bodiesOf(kept)).toEqual(['/once']);
});
