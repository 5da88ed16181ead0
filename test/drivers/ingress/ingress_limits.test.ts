// Timeouts and bounds of the ingress.
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { ask, closeAll, open, openFront, raw, routeOf, startApp, until, whole } from '../../support/ingress/ingress';

afterEach(closeAll);

const ok = () => startApp((_, response) => response.end('ok'));

describe('times', () => {
  const limits = { sweepMs: 20, clientIdleMs: 300, headersMs: 300, connectMs: 200 };

  test('504 when the first byte does not come; the next request is served', async () => {
    const app = await startApp((request, response) => void (request.url === '/slow' || response.end('ok')));
    const front = await openFront([routeOf([app], { request_timeout_ms: 150 })], { limits });
    const started = performance.now();
    const { status, body } = await ask(front, { path: '/slow' });
    expect([status, JSON.parse(body).code]).toEqual([504, 'timeout']);
    expect(performance.now() - started).toBeGreaterThan(140);
    expect(performance.now() - started).toBeLessThan(8_000);
    expect((await ask(front)).status).toBe(200);
  });

  test('an answer that has begun may pause for longer than one may take to begin, and ends when it stops', async () => {
    const app = await startApp((_, response) => {
      let left = 4;
      const timer = setInterval(() => (response.write('x'), (left -= 1) || clearInterval(timer)), 300);
      response.flushHeaders();
    });
    const times = { limits: { ...limits, streamIdleMs: 600 } };
    const front = await openFront([routeOf([app], { request_timeout_ms: 100 })], times);
    const started = performance.now();
    await expect(ask(front)).rejects.toThrow(/aborted/);
    expect(performance.now() - started).toBeGreaterThan(4 * 300 + 500);
    await until(() => front.lines.length === 1);
    expect(front.lines).toMatchObject([{ status: 200, bytes_sent: 4, reason: 'timeout' }]);
  });

  test('a client that does not send its headers, or its body, is let go', async () => {
    const front = await openFront(
      [routeOf([await startApp((request, response) => void request.resume().on('end', () => response.end()))])],
      { limits },
    );
    expect(await raw(front.port, 'GET / HTTP/1.1\r\nHost: app.example.com\r\n')).toMatch(/^HTTP\/1\.1 408 /);
    expect(await raw(front.port, 'POST / HTTP/1.1\r\nHost: app.example.com\r\nContent-Length: 10\r\n\r\nabc')).toMatch(
      /^HTTP\/1\.1 408 /,
    );
    await until(() => front.lines.length === 1);
    expect(front.lines).toMatchObject([{ status: 408, reason: 'slow_client' }]);
  });

  test('a body that trickles ends its request; one that is slow and steady does not', async () => {
    const app = await startApp((request, response) => void request.resume().on('end', () => response.end('ok')));
    const front = await openFront([routeOf([app])], {
      limits: { sweepMs: 20, clientIdleMs: 5_000, uploadGraceMs: 300, uploadBytesPerSecond: 400 },
    });
    const upload = async (bytesEach: number): Promise<string> => {
      const socket = connect(front.port, '127.0.0.1');
      let text = '';
      socket.on('data', (chunk) => (text += chunk.toString())).on('error', () => undefined);
      socket.write(`POST / HTTP/1.1\r\nHost: app.example.com\r\nContent-Length: ${bytesEach * 40}\r\n\r\n`);
      for (let piece = 0; piece < 40 && text === ''; piece += 1) {
        socket.write('x'.repeat(bytesEach));
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
      await until(() => text !== '');
      socket.destroy();
      return text.slice(0, 12);
    };
    expect(await Promise.all([upload(1), upload(100)])).toEqual(['HTTP/1.1 408', 'HTTP/1.1 200']);
  });

  test('a client that does not read is let go, and so is its instance', async () => {
    let closed = false;
    const app = await startApp((_, response) => {
      const more = (): void =>
        void (response.write(Buffer.alloc(1 << 20)) ? setImmediate(more) : response.once('drain', more));
      response.on('close', () => (closed = true));
      more();
    });
    const front = await openFront([routeOf([app])], { limits });
    const request = open(front);
    request.on('response', (response) => response.pause().on('error', () => undefined));
    request.on('error', () => undefined);
    request.end();
    await until(() => front.lines.length === 1);
    expect(front.lines).toMatchObject([{ reason: 'slow_client' }]);
    await until(() => closed);
  });

  test('a client that goes away takes its request with it', async () => {
    let closed = false;
    const app = await startApp((request) => void request.on('close', () => (closed = true)));
    const front = await openFront([routeOf([app])]);
    const request = open(front);
    request.on('error', () => undefined);
    request.end();
    setTimeout(() => request.destroy(), 50);
    await until(() => closed);
    expect(front.lines).toMatchObject([{ status: 499, reason: 'client_gone' }]);
  });
});

describe('bounds', () => {
  test('requests of one application at a time', async () => {
    const held: (() => void)[] = [];
    const app = await startApp((_, response) => void held.push(() => response.end()));
    const front = await openFront(
      [routeOf([app]), routeOf([await ok()], { application_id: 'app_2', hosts: ['two.example.com'] })],
      { limits: { applicationRequests: 3 } },
    );
    const three = [ask(front), ask(front), ask(front)];
    await until(() => held.length === 3);
    const { status, body } = await ask(front);
    expect([status, JSON.parse(body).code]).toEqual([503, 'busy']);
    expect((await ask(front, { host: 'two.example.com' })).status).toBe(200);
    held.forEach((release) => release());
    await Promise.all(three);
    const next = ask(front);
    await until(() => held.length === 4);
    held[3]?.();
    expect((await next).status).toBe(200);
  });

  test('of one client address, once half of all are taken; others are served', async () => {
    const held: (() => void)[] = [];
    const app = await startApp((_, response) => void held.push(() => response.end()));
    const front = await openFront([routeOf([app])], {
      trustProxy: 1,
      limits: { applicationRequests: 10, addressRequests: 2 },
    });
    const from = (address: string) => ask(front, { headers: { 'X-Forwarded-For': address } });
    const greedy = [1, 2, 3, 4, 5].map((last) => from(`2001:db8::${last}`));
    await until(() => held.length === 5);
    const refused = await from('2001:db8::ffff');
    expect([refused.status, JSON.parse(refused.body).code, refused.headers['retry-after']]).toEqual([
      ...[429, 'address_busy', '1'],
    ]);
    const others = [from('2001:db8:0:1::1'), from('192.0.2.1')];
    await until(() => held.length === 7);
    held.forEach((release) => release());
    expect((await Promise.all([...greedy, ...others])).map(({ status }) => status)).toEqual(new Array(7).fill(200));
    const next = from('2001:db8::ffff');
    await until(() => held.length === 8);
    held[7]?.();
    expect((await next).status).toBe(200);
  });

  test('a thousand uploads that trickle from one address take no application from others', async () => {
    const app = await startApp((request, response) => void request.resume().on('end', () => response.end('ok')));
    const front = await openFront([routeOf([app])]);
    const head = 'POST / HTTP/1.1\r\nHost: app.example.com\r\nContent-Length: 1000000\r\n\r\n';
    let refused = 0;
    const uploads = Array.from({ length: 1_000 }, () => {
      const socket = connect({ port: front.port, host: '127.0.0.1', localAddress: '127.0.0.9' });
      socket
        .on('error', () => undefined)
        .on('data', (answer) => (refused += /^HTTP\/1.1 429/.test(String(answer)) ? 1 : 0));
      socket.write(`${head}x`);
      return socket;
    });
    await until(() => refused > 0 && refused >= uploads.length - 500);
    const trickle = setInterval(() => uploads.forEach((socket) => socket.writable && socket.write('x')), 100);
    for (let i = 0; i < 5; i += 1) expect((await ask(front, { method: 'POST', body: 'hello' })).body).toBe('ok');
    clearInterval(trickle);
    uploads.forEach((socket) => socket.destroy());
  });

  test('connections', async () => {
    const front = await openFront([routeOf([await ok()])], { limits: { connections: 2 } });
    const idle = [await dial(front.port), await dial(front.port)];
    idle.forEach((socket) => socket.resume());
    const closing = 'GET / HTTP/1.1\r\nHost: app.example.com\r\nConnection: close\r\n\r\n';
    expect(await raw(front.port, closing)).toMatch(/^HTTP\/1\.1 200 /);
    // One that asked for nothing has made room.
    expect(idle.filter((socket) => socket.destroyed || socket.readableEnded)).toHaveLength(1);
    for (const socket of idle) socket.destroy();
  });

  test('the body, announced or not; the client reads why', async () => {
    const app = await startApp((request, response) => void request.resume().on('end', () => response.end('ok')));
    const front = await openFront([routeOf([app])], { limits: { bodyBytes: 100_000 } });
    const body = randomBytes(100_001);
    expect((await ask(front, { method: 'POST', body })).status).toBe(413);
    const request = open(front, { method: 'POST' });
    const answer = new Promise((resolve, reject) =>
      request.on('error', reject).on('response', (response) => void whole(response).then(resolve, reject)),
    );
    request.write(body.subarray(0, 60_000));
    setTimeout(() => request.end(body.subarray(60_000)), 50);
    expect(await answer).toMatchObject({ status: 413 });
    expect((await ask(front, { method: 'POST', body: body.subarray(1) })).status).toBe(200);
  });

  test('headers: their size and their number', async () => {
    const front = await openFront([routeOf([await ok()])]);
    const get = (headers: string) =>
      raw(front.port, `GET / HTTP/1.1\r\nHost: app.example.com\r\nConnection: close\r\n${headers}\r\n`);
    expect(await get(`X-A: ${'a'.repeat(40_000)}\r\n`)).toMatch(/^HTTP\/1\.1 431 /);
    expect(await get('a:b\r\n'.repeat(300))).toMatch(/^HTTP\/1\.1 431 /);
    expect(await get('a:b\r\n'.repeat(150))).toMatch(/^HTTP\/1\.1 200 /);
  });
});

function dial(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket));
    socket.on('error', reject);
  });
}
