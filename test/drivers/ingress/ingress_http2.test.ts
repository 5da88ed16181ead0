// HTTP/2 of visitors: what HTTP/1.1 has, in streams. curl is a client that is not of Node.
import { execFile } from 'node:child_process';
import http2, { type ClientHttp2Session, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2';
import type http from 'node:http';
import type { Socket } from 'node:net';
import { promisify } from 'node:util';
import type { Certificate } from '../../../engines/ingress/ingress';
import {
  closeAll,
  openFront,
  routeOf,
  startApp,
  startRawApp,
  until,
  type App,
  type Front,
} from '../../support/ingress/ingress';
import { makeCertificate } from '../../support/ingress/ingress_certificate';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

const HOST = 'app.example.com';
let made: Certificate;
const sessions: ClientHttp2Session[] = [];

beforeAll(() => {
  made = makeCertificate(HOST);
});
afterEach(async () => {
  sessions.splice(0).forEach((session) => session.destroy());
  await closeAll();
});

interface Answered {
  headers: IncomingHttpHeaders;
  body: Buffer;
  trailers: IncomingHttpHeaders;
}

async function secureFront(app: Parameters<typeof routeOf>[0][number]): Promise<Front> {
  const front = await openFront([routeOf([app])], { tlsPort: 0, limits: { bodyBytes: 8 << 20, sweepMs: 20 } });
  front.certificates.set(HOST, made);
  return front;
}

function dial(front: Front): ClientHttp2Session {
  const options = { ca: made.chain, servername: HOST, maxSessionMemory: 100 };
  const session = http2.connect(`https://127.0.0.1:${front.ingress.ports.https}`, options);
  sessions.push(session.on('error', () => undefined));
  return session;
}

function ask(session: ClientHttp2Session, headers: OutgoingHttpHeaders, body?: Buffer): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':authority': HOST, ...headers }, { endStream: body === undefined });
    const answered: Answered = { headers: {}, body: Buffer.alloc(0), trailers: {} };
    const chunks: Buffer[] = [];
    stream.on('response', (found) => (answered.headers = found));
    stream.on('trailers', (found) => (answered.trailers = found));
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', reject);
    stream.on('end', () => resolve({ ...answered, body: Buffer.concat(chunks) }));
    if (body !== undefined) stream.end(body);
  });
}

/** Says what it saw, and sends the body back, with a trailer. */
const mirror = (): Promise<App> =>
  startApp((request, response) => {
    response.setHeader('Set-Cookie', ['a=1', 'b=2']);
    response.setHeader('X-Seen', JSON.stringify({ ...request.headers, method: request.method, url: request.url }));
    let bytes = 0;
    request.on('data', (chunk: Buffer) => (bytes += chunk.length));
    if (request.method !== 'HEAD') request.on('end', () => response.addTrailers({ 'x-sum': String(bytes) }));
    request.pipe(response);
  });

const seenIn = ({ headers }: Answered): Record<string, string> => JSON.parse(String(headers['x-seen']));

test('requests of one connection side by side, each with its own line', async () => {
  const front = await secureFront(await mirror());
  const session = dial(front);
  const paths = Array.from({ length: 100 }, (_, index) => `/${index}?q=é`.replace('é', '%C3%A9'));
  const all = await Promise.all(paths.map((path) => ask(session, { ':path': path, cookie: ['one=1', 'two=2'] })));
  expect(all.map((one) => seenIn(one).url)).toEqual(paths);
  expect(seenIn(all[0] as Answered)).toMatchObject({
    ...{ host: HOST, cookie: 'one=1; two=2', 'x-forwarded-proto': 'https', 'x-forwarded-for': '127.0.0.1' },
  });
  expect(all[0]?.headers).toMatchObject({ ':status': 200, 'set-cookie': ['a=1', 'b=2'] });
  expect(Object.keys(all[0]?.headers ?? {})).not.toEqual(expect.arrayContaining(['connection']));
  await until(() => front.lines.length === 100);
  expect(new Set(front.lines.map(({ status, reason }) => `${status} ${reason}`))).toEqual(new Set(['200 null']));
});

test('bodies of any size both ways, with trailers, and HEAD without one', async () => {
  const front = await secureFront(await mirror());
  const session = dial(front);
  const body = Buffer.alloc(5 << 20, 'abcdefgh');
  const sized = { ':method': 'PUT', ':path': '/big', 'content-length': String(body.length) };
  const unsized = { ':method': 'POST', ':path': '/big' };
  for (const answered of await Promise.all([ask(session, sized, body), ask(session, unsized, body)])) {
    expect(answered.body.equals(body)).toBe(true);
    expect(answered.trailers['x-sum']).toBe(String(body.length));
  }
  const { headers, body: none } = await ask(session, { ':method': 'HEAD', ':path': '/' });
  expect([headers[':status'], none.length]).toEqual([200, 0]);
}, 30_000);

test('pages of the ingress: an unknown host, a body that is too large, two hosts', async () => {
  const front = await secureFront(await mirror());
  const session = dial(front);
  const unknown = await ask(session, { ':authority': 'other.example.com', ':path': '/' });
  expect([unknown.headers[':status'], JSON.parse(unknown.body.toString()).code]).toEqual([404, 'unknown_host']);
  const size = { 'content-length': String(9 << 20) };
  const large = await ask(session, { ':method': 'PUT', ':path': '/', ...size }, Buffer.alloc(9 << 20));
  expect([large.headers[':status'], JSON.parse(large.body.toString()).code]).toEqual([413, 'body_too_large']);
  const twice = await ask(session, { ':path': '/', host: 'other.example.com' });
  expect([twice.headers[':status'], JSON.parse(twice.body.toString()).code]).toEqual([400, 'malformed']);
  expect((await ask(session, { ':path': '/ok' })).headers[':status']).toBe(200);
}, 30_000);

test('a visitor that resets a stream is gone, an instance that breaks off breaks the stream off', async () => {
  const app = await startRawApp((socket) =>
    socket.on('data', (data) => {
      if (String(data).startsWith('GET /hangs ')) return;
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this');
    }),
  );
  const front = await secureFront(app);
  const session = dial(front);
  const hanging = session.request({ ':authority': HOST, ':path': '/hangs' }).on('error', () => undefined);
  await until(() => app.sockets.size === 1);
  hanging.close(http2.constants.NGHTTP2_CANCEL);
  await until(() => front.lines.length === 1);
  expect(front.lines[0]).toMatchObject({ path: '/hangs', status: 499, reason: 'client_gone' });
  await expect(ask(session, { ':path': '/breaks' })).rejects.toThrow('INTERNAL_ERROR');
  await until(() => front.lines.length === 2);
  expect(front.lines[1]).toMatchObject({ path: '/breaks', status: 200, reason: 'broken' });
  await until(() => app.sockets.size === 0);
});

test('a WebSocket in a stream (RFC 8441)', async () => {
  const app = await startApp((_, response) => response.writeHead(426).end('upgrade'));
  app.server.on('upgrade', (request: http.IncomingMessage, socket: Socket) => {
    socket.on('error', () => undefined);
    const protocol = `Sec-WebSocket-Protocol: ${String(request.headers['sec-websocket-protocol'])}`;
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${protocol}\r\n\r\nwelcome`,
    );
    socket.pipe(socket);
  });
  const front = await secureFront(app);
  const session = dial(front);
  await new Promise((resolve) => session.once('remoteSettings', resolve));
  const fields = { 'sec-websocket-version': '13', 'sec-websocket-protocol': 'chat' };
  const stream = session.request(
    {
      ':authority': HOST,
      ':method': 'CONNECT',
      ':protocol': 'websocket',
      ':scheme': 'https',
      ':path': '/ws',
      ...fields,
    },
    { endStream: false },
  );
  let text = '';
  stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const headers = await new Promise<IncomingHttpHeaders>((resolve) => stream.once('response', resolve));
  expect(headers).toMatchObject({ ':status': 200, 'sec-websocket-protocol': 'chat' });
  stream.write('hello');
  await until(() => text === 'welcomehello');
  stream.close();
  await until(() => front.lines.length === 1);
  expect(front.lines[0]).toMatchObject({ status: 101, path: '/ws' });
});

test('an ingress that closes lets streams finish, and takes no new ones', async () => {
  const waiting: http.ServerResponse[] = [];
  const front = await secureFront(await startApp((_, response) => void waiting.push(response)));
  const session = dial(front);
  const late = ask(session, { ':path': '/' });
  await until(() => waiting.length === 1);
  const gone = new Promise((resolve) => session.once('goaway', resolve));
  const closed = front.close(10_000);
  await gone;
  waiting[0]?.end('late');
  expect((await late).body.toString()).toBe('late');
  await closed;
  expect(session.destroyed || session.closed).toBe(true);
}, 30_000);

test('curl takes HTTP/2 by itself, and HTTP/1.1 where it is told to', async () => {
  const front = await secureFront(await mirror());
  const port = front.ingress.ports.https;
  const curl = async (...more: string[]): Promise<string> => {
    const place = ['--resolve', `${HOST}:${port}:127.0.0.1`, `https://${HOST}:${port}/path`];
    const said = ['--silent', '--insecure', '--output', '/dev/null', '--write-out', '%{http_version} %{response_code}'];
    return (await promisify(execFile)('curl', [...said, ...more, ...place])).stdout;
  };
  expect(await curl('--http2')).toBe('2 200');
  expect(await curl('--http1.1')).toBe('1.1 200');
  expect(await curl('--http2', '--data-binary', 'x'.repeat(100_000))).toBe('2 200');
});
