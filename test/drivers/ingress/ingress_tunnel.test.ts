// WebSockets: connections that are no longer HTTP.
import type http from 'node:http';
import { connect, type Socket } from 'node:net';
import { ask, closeAll, openFront, raw, routeOf, startApp, until, type Front } from '../../support/ingress/ingress';

afterEach(closeAll);

describe('WebSockets', () => {
  const hello =
    'GET /ws HTTP/1.1\r\nHost: app.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n';
  const echo = async () => {
    const app = await startApp((_, response) => response.writeHead(426).end('upgrade'));
    app.server.on('upgrade', (request: http.IncomingMessage, socket: Socket, head: Buffer) => {
      if (request.headers['sec-websocket-protocol'] === 'no')
        return socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno');
      socket.on('error', () => undefined);
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
          `X-For: ${String(request.headers['x-forwarded-for'])}\r\n\r\nwelcome`,
      );
      if (head.length > 0) socket.write(head);
      socket.pipe(socket);
    });
    return app;
  };
  const dial = (front: Front, bytes = hello): Promise<{ socket: Socket; text(): string; closed(): boolean }> =>
    new Promise((resolve) => {
      let [text, closed] = ['', false];
      const socket = connect(front.port, '127.0.0.1', () => socket.write(bytes));
      socket
        .on('error', () => undefined)
        .on('close', () => (closed = true))
        .on('data', (chunk) => (text += chunk.toString('latin1')));
      socket.once('data', () => resolve({ socket, text: () => text, closed: () => closed }));
    });

  test('bytes pass both ways and are counted', async () => {
    const app = await echo();
    const front = await openFront([routeOf([app])]);
    const { socket, text } = await dial(front, `${hello}early`);
    await until(() => text().endsWith('welcomeearly'));
    expect(text()).toMatch(
      /^HTTP\/1\.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n[^]*X-For: 127\.0\.0\.1\r\n/,
    );
    const big = 'x'.repeat(300_000);
    socket.write(big);
    await until(() => text().endsWith(`early${big}`));
    expect(front.ingress.takeTraffic()).toMatchObject([
      { requests: 1, responses: { '2xx': 1 }, received_bytes: 300_005, sent_bytes: 300_012 },
    ]);
    expect(front.lines).toEqual([]);
    socket.end();
    await until(() => front.lines.length === 1);
    expect(front.lines).toMatchObject([
      { status: 101, instance_id: app.instance_id, path: '/ws', bytes_sent: 300_012, reason: null },
    ]);
  });

  test('an instance that declines is heard', async () => {
    const front = await openFront([routeOf([await echo()])]);
    const answer = await raw(
      front.port,
      hello.replace('Sec-WebSocket-Version', 'Sec-WebSocket-Protocol: no\r\nSec-WebSocket-Version'),
    );
    expect(answer).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n[^]*\r\n\r\nno$/);
    expect(await raw(front.port, hello.replace('app.', 'nobody.'))).toMatch(/^HTTP\/1\.1 404 /);
  });

  test('silent ones end; so do those whose instance dies', async () => {
    const app = await echo();
    const front = await openFront([routeOf([app])], { limits: { sweepMs: 20, tunnelIdleMs: 150 } });
    const silent = await dial(front);
    await until(() => silent.closed());
    const left = await dial(front);
    await app.close();
    await until(() => left.closed());
    await until(() => front.lines.length === 2);
  });

  test('they stay with an ingress that is replaced for as long as it is given', async () => {
    const app = await echo();
    const front = await openFront([routeOf([app])], { limits: { tunnelDrainMs: 100 } });
    const [staying, ending] = [await dial(front), await dial(front)];
    const closed = front.ingress.close(20_000, 20_000);
    await new Promise((resolve) => setTimeout(resolve, 900));
    staying.socket.write('still');
    await until(() => staying.text().endsWith('still'));
    expect(staying.closed()).toBe(false);
    for (const { socket } of [staying, ending]) socket.end();
    await closed;
  });

  test('they count as open requests and hold a drain only so long', async () => {
    const app = await echo();
    const front = await openFront([routeOf([app])], { limits: { applicationRequests: 1, tunnelDrainMs: 200 } });
    const one = await dial(front);
    expect((await ask(front)).status).toBe(503);
    const started = performance.now();
    await front.ingress.drain(app.instance_id, 10_000);
    expect(performance.now() - started).toBeLessThan(8_000);
    await until(() => one.closed());
    expect(JSON.parse((await ask(front)).body).code).toBe('no_target');
  });
});
