// Requests that two servers could read differently, and other protocols than HTTP.
import { type Socket } from 'node:net';
import { closeAll, openFront, raw, routeOf, startApp } from '../support/ingress';

afterEach(closeAll);

describe('requests that mean to be read twice', () => {
  const seen: string[] = [];
  const attack = async (lines: string, body = ''): Promise<string> => {
    seen.length = 0;
    const app = await startApp(
      (request, response) => (seen.push(request.url ?? ''), void request.resume().on('end', () => response.end())),
    );
    const front = await openFront([routeOf([app])]);
    return raw(front.port, `${lines}\r\n\r\n${body}`);
  };
  const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: app.example.com\r\n\r\n';

  test.each([
    [
      'length and coding',
      'POST / HTTP/1.1\r\nHost: app.example.com\r\nContent-Length: 6\r\nTransfer-Encoding: chunked',
      `0\r\n\r\n${smuggled}`,
    ],
    [
      'coding and length',
      'POST / HTTP/1.1\r\nHost: app.example.com\r\nTransfer-Encoding: chunked\r\nContent-Length: 6',
      `0\r\n\r\n${smuggled}`,
    ],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: app.example.com\r\nContent-Length: 0\r\nContent-Length: 50', smuggled],
    ['a list of lengths', 'POST / HTTP/1.1\r\nHost: app.example.com\r\nContent-Length: 0, 50', smuggled],
    ['a signed length', 'POST / HTTP/1.1\r\nHost: app.example.com\r\nContent-Length: +5', smuggled],
    ['an unknown coding', 'POST / HTTP/1.1\r\nHost: app.example.com\r\nTransfer-Encoding: xchunked', smuggled],
    [
      'two codings',
      'POST / HTTP/1.1\r\nHost: app.example.com\r\nTransfer-Encoding: gzip, chunked',
      `0\r\n\r\n${smuggled}`,
    ],
    [
      'chunked twice',
      'POST / HTTP/1.1\r\nHost: app.example.com\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity',
      smuggled,
    ],
    [
      'a coding in HTTP/1.0',
      'POST / HTTP/1.0\r\nHost: app.example.com\r\nTransfer-Encoding: chunked',
      `0\r\n\r\n${smuggled}`,
    ],
    [
      'a space before the colon',
      'POST / HTTP/1.1\r\nHost: app.example.com\r\nTransfer-Encoding : chunked',
      `0\r\n\r\n${smuggled}`,
    ],
    [
      'a folded header',
      'POST / HTTP/1.1\r\nHost: app.example.com\r\nTransfer-Encoding:\r\n chunked',
      `0\r\n\r\n${smuggled}`,
    ],
    ['bare line feeds', 'POST / HTTP/1.1\nHost: app.example.com\nContent-Length: 50\n', smuggled],
    [
      'a malformed chunk',
      'POST / HTTP/1.1\r\nHost: app.example.com\r\nTransfer-Encoding: chunked',
      `5x\r\nhello\r\n0\r\n\r\n${smuggled}`,
    ],
    ['two hosts', 'GET / HTTP/1.1\r\nHost: app.example.com\r\nHost: other.example.com', ''],
    ['no host', 'GET / HTTP/1.1', ''],
    [
      'a body behind an upgrade',
      'POST / HTTP/1.1\r\nHost: app.example.com\r\nConnection: Upgrade\r\nUpgrade: x\r\n' +
        `Content-Length: ${smuggled.length}`,
      smuggled,
    ],
    ['a target that is no path', 'GET app.example.com:80 HTTP/1.1\r\nHost: app.example.com', ''],
  ])('%s', async (_, lines, body) => {
    const answer = await attack(lines, body);
    expect(answer).toMatch(/^HTTP\/1\.1 (400|501) /);
    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1);
    expect(seen).not.toContain('/smuggled');
  });

  test('CONNECT is refused', async () => {
    expect(await attack('CONNECT app.example.com:80 HTTP/1.1\r\nHost: app.example.com')).not.toMatch(/ 200 /);
    expect(seen).toEqual([]);
  });

  test('another protocol than WebSocket is not passed on; the request is', async () => {
    let upgrades = 0;
    const app = await startApp((request, response) => void response.end(JSON.stringify(request.headers)));
    app.server.on('upgrade', (_, socket: Socket) => ((upgrades += 1), socket.destroy()));
    const front = await openFront([routeOf([app])]);
    const answer = await raw(
      front.port,
      'GET / HTTP/1.1\r\nHost: app.example.com\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n' +
        'HTTP2-Settings: AAMAAABk\r\n\r\n',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).not.toMatch(/h2c|http2-settings/i);
    expect(upgrades).toBe(0);
  });
});
