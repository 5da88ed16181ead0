// What the ingress answers itself, what it counts and writes down.
import { randomBytes } from 'node:crypto';
import { LATENCY_BOUNDS_MS } from '../../drivers/ingress';
import { ask, closeAll, open, openFront, raw, routeOf, startApp, startRawApp, until, whole } from '../support/ingress';

afterEach(closeAll);

const ok = () => startApp((_, response) => response.end('ok'));

describe('pages', () => {
  test('html for browsers, a problem document for programs, nothing of the inside in either', async () => {
    const front = await openFront([routeOf([await startRawApp((socket) => socket.destroy())])]);
    const page = await ask(front, { headers: { accept: 'text/html,*/*' } });
    expect(page.status).toBe(502);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(page.body).toContain('<h1>Bad gateway</h1>');
    const problem = await ask(front);
    expect(problem.headers).toMatchObject({ 'content-type': 'application/problem+json', 'cache-control': 'no-store' });
    expect(JSON.parse(problem.body)).toEqual({
      type: 'about:blank',
      title: 'Bad gateway',
      status: 502,
      detail: expect.any(String),
      code: 'broken',
      request_id: problem.headers['x-request-id'],
    });
    expect(page.body + problem.body).not.toMatch(/127\.0\.0\.1|ins_|ECONN|app_1/);
  });

  test.each([
    ['new', 'has not been deployed'],
    ['stopped', 'has been stopped'],
    ['crashed', 'has crashed'],
    ['running', 'is starting'],
  ] as const)('no instance, %s: %s', async (state, words) => {
    const { status, headers, body } = await ask(await openFront([routeOf([], { state })]));
    expect(status).toBe(503);
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    expect(body).toContain(words);
  });

  test('all instances refuse: 503', async () => {
    const gone = [await ok(), await ok()];
    for (const app of gone) await app.close();
    const front = await openFront([routeOf(gone)]);
    const { status, headers, body } = await ask(front);
    expect([status, JSON.parse(body).code, headers['retry-after']]).toEqual([503, 'refused', '5']);
    expect(front.lines).toMatchObject([{ status: 503, reason: 'refused' }]);
  });

  test('maintenance', async () => {
    const front = await openFront([routeOf([await ok()], { maintenance: true })]);
    const { status, headers } = await ask(front, { method: 'POST', body: 'x'.repeat(100_000) });
    expect([status, headers['retry-after']]).toEqual([503, '60']);
    expect((await ask(front, { method: 'HEAD' })).body).toBe('');
  });

  test('an unknown host belongs to nobody: 404, no line, no counters', async () => {
    const front = await openFront([]);
    expect((await ask(front, { host: 'x.example.com', headers: { accept: 'text/html' } })).body).toContain(
      'no application at this address',
    );
    expect((await ask(front, { method: 'POST', body: Buffer.alloc(3 << 20) })).status).toBe(404);
    expect(front.lines).toEqual([]);
    expect(front.ingress.takeTraffic()).toEqual([]);
  });

  test.each([
    ['no HTTP', 'hello\r\n\r\n'],
    ['a header that Node refuses', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-A: a\x01b\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    ['length and coding', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['an unknown coding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'],
    ['a folded header', 'HTTP/1.1 200 OK\r\nX-A: a\r\n b\r\nContent-Length: 0\r\n\r\n'],
    ['a negative length', 'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n'],
    ['headers without end', `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(40_000)}`],
    ['a switch of protocols that nobody asked for', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n'],
  ])('an answer with %s: 502', async (_, bytes) => {
    const front = await openFront([
      routeOf([await startRawApp((socket) => void socket.once('data', () => socket.write(bytes, 'latin1')))]),
    ]);
    expect((await ask(front)).status).toBe(502);
    expect(front.lines).toMatchObject([{ status: 502, reason: 'broken' }]);
  });

  test('an answer that breaks off breaks off for the client too', async () => {
    for (const bytes of [
      'Content-Length: 10\r\n\r\nabc',
      'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n',
      'Transfer-Encoding: chunked\r\n\r\nzz\r\n',
    ]) {
      const front = await openFront([
        routeOf([
          await startRawApp(
            (socket) =>
              void socket.once(
                'data',
                () => (socket.write(`HTTP/1.1 200 OK\r\n${bytes}`), setTimeout(() => socket.destroy(), 50)),
              ),
          ),
        ]),
      ]);
      await expect(ask(front)).rejects.toThrow(/aborted|hang up|RESET/);
      await until(() => front.lines.length === 1);
    }
  });

  test('bytes after an answer never reach the next request', async () => {
    let first = true;
    const app = await startRawApp(
      (socket) =>
        void socket.on('data', () => {
          socket.write(
            first
              ? 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil'
              : 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb',
          );
          first = false;
        }),
    );
    const front = await openFront([routeOf([app])]);
    expect((await ask(front)).body).toBe('a');
    expect((await ask(front)).body).toBe('b');
  });
});

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

  test('an answer may take long as long as bytes flow, and ends when they stop', async () => {
    const app = await startApp((_, response) => {
      let left = 8;
      const timer = setInterval(() => (response.write('x'), (left -= 1) || clearInterval(timer)), 60);
    });
    const front = await openFront([routeOf([app], { request_timeout_ms: 200 })], { limits });
    const started = performance.now();
    await expect(ask(front)).rejects.toThrow(/aborted/);
    expect(performance.now() - started).toBeGreaterThan(8 * 60 + 150);
    await until(() => front.lines.length === 1);
    expect(front.lines).toMatchObject([{ status: 200, bytes_sent: 8, reason: 'timeout' }]);
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

  test('connections', async () => {
    const front = await openFront([routeOf([await ok()])], { limits: { connections: 2 } });
    const idle = [raw(front.port, '', 300), raw(front.port, '', 300)].map((one) => one.catch(() => 'open'));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await raw(front.port, 'GET / HTTP/1.1\r\nHost: app.example.com\r\n\r\n')).toBe('');
    expect(await Promise.all(idle)).toEqual(['open', 'open']);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect((await ask(front)).status).toBe(200);
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

describe('the books', () => {
  test('a line per request, without the query', async () => {
    const front = await openFront([routeOf([await ok()], { preview_id: 'prv_1' })]);
    await ask(front, { host: 'App.example.com:81', path: '/a/b?token=secret' });
    await ask(front, { path: `/${'x'.repeat(5_000)}` });
    expect(front.lines).toMatchObject([
      {
        application_id: 'app_1',
        preview_id: 'prv_1',
        method: 'GET',
        host: 'app.example.com',
        path: '/a/b',
        status: 200,
        bytes_sent: 2,
        client_address: '127.0.0.1',
        reason: null,
      },
      { status: 200 },
    ]);
    expect(front.lines[0]?.instance_id).toMatch(/^ins_/);
    expect(front.lines[0]?.at).toBeInstanceOf(Date);
    expect(front.lines[1]?.path).toHaveLength(2_048);
    expect(JSON.stringify(front.lines)).not.toContain('secret');
  });

  test('counters per instance, and for what the ingress answers itself', async () => {
    const app = await startApp(
      (request, response) =>
        void request.resume().on('end', () =>
          setTimeout(() => {
            response.statusCode = Number(request.url?.slice(1));
            response.end('12345');
          }, 30),
        ),
    );
    const front = await openFront([routeOf([app]), routeOf([], { preview_id: 'prv_1', hosts: ['pr.example.com'] })]);
    for (const status of [200, 201, 302, 404, 500])
      await ask(front, { path: `/${status}`, method: 'POST', body: 'abc' });
    await ask(front, { host: 'pr.example.com' });
    const [own, none] = front.ingress.takeTraffic();
    expect(own).toMatchObject({
      application_id: 'app_1',
      preview_id: null,
      instance_id: app.instance_id,
      requests: 5,
      responses: { '2xx': 2, '3xx': 1, '4xx': 1, '5xx': 1 },
      received_bytes: 15,
      sent_bytes: 25,
    });
    expect(own?.latency).toHaveLength(LATENCY_BOUNDS_MS.length + 1);
    expect(own?.latency.slice(0, 4)).toEqual([0, 0, 0, 0]);
    expect(own?.latency.reduce((sum, count) => sum + count)).toBe(5);
    expect(none).toMatchObject({ preview_id: 'prv_1', instance_id: null, requests: 1, responses: { '5xx': 1 } });
    expect(front.ingress.takeTraffic()).toEqual([]);
  });
});
