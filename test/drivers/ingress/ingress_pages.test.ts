// What the ingress answers itself.
import { openIngress } from '../../../engines/ingress/http/http';
import { ask, closeAll, openFront, routeOf, startApp, startRawApp, until } from '../../support/ingress/ingress';

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

  test('a load balancer that asks by the address learns when there are routes', async () => {
    const parts = { certificate: async () => null, challenge: async () => null, line: () => undefined };
    const ingress = await openIngress({ host: '127.0.0.1', port: 0, tlsPort: null, parts });
    const front = { port: ingress.ports.http };
    const probe = async (host: string, path = '/readyz'): Promise<number> => (await ask(front, { host, path })).status;
    expect([await probe('192.0.2.1:8000'), await probe('app.example.com')]).toEqual([503, 503]);
    ingress.replaceRoutes([routeOf([await ok()])]);
    ingress.confirmRoutes(0);
    expect([await probe('192.0.2.1:8000'), await probe('[2001:db8::1]'), await probe('192.0.2.1', '/')]).toEqual([
      200, 200, 404,
    ]);
    const named = await ask(front, { path: '/readyz' });
    expect([named.status, named.body]).toEqual([200, 'ok']);
    expect(await probe('other.example.com')).toBe(404);
    await ingress.close(0);
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
