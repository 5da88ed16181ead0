// Requests that two servers could read differently, and other protocols than HTTP.
import { type Socket } from 'node:net';
import { openOwnServer } from '../../support/ingress/own_server';
import { ask, closeAll, openFront, raw, routeOf, startApp, startRawApp, until } from '../../support/ingress/ingress';

afterEach(closeAll);

/** Sends the request, and notes what comes. */
type Attack = (seen: string[], lines: string, body: string) => Promise<string>;

async function attackApplication(seen: string[], lines: string, body: string): Promise<string> {
  const app = await startApp(
    (request, response) => (seen.push(request.url ?? ''), void request.resume().on('end', () => response.end())),
  );
  const front = await openFront([routeOf([app])]);
  return raw(front.port, `${lines}\r\n\r\n${body}`);
}

async function attackPlatform(seen: string[], lines: string, body: string): Promise<string> {
  const own = await openOwnServer((request, response) => (seen.push(request.url ?? ''), void response.end()));
  const front = await openFront([], { services: [own.served], trustProxy: 1 });
  const secure = `${lines.replaceAll('app.example.com', 'platform.example.com')}\r\nX-Forwarded-Proto: https`;
  const answer = await raw(front.port, `${secure}\r\n\r\n${body}`);
  await own.close();
  return answer;
}

describe.each<[string, Attack]>([
  ['an application', attackApplication],
  ['the platform', attackPlatform],
])('requests to %s that mean to be read twice', (_, send) => {
  const seen: string[] = [];
  const attack = (lines: string, body = ''): Promise<string> => ((seen.length = 0), send(seen, lines, body));
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
  ])('%s', async (__, lines, body) => {
    const answer = await attack(lines, body);
    expect(answer).toMatch(/^HTTP\/1\.1 (400|501) /);
    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1);
    expect(seen).not.toContain('/smuggled');
  });

  test('CONNECT is refused', async () => {
    expect(await attack('CONNECT app.example.com:80 HTTP/1.1\r\nHost: app.example.com')).not.toMatch(/ 200 /);
    expect(seen).toEqual([]);
  });
});

describe('upgrades', () => {
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

describe('answers that break the protocol', () => {
  const answering = (bytes: string | Buffer) => startRawApp((socket) => socket.once('data', () => socket.write(bytes)));
  const ask1 = async (bytes: string) => ask(await openFront([routeOf([await answering(bytes)])]));

  test('bare line feeds are refused at once, not at the timeout', async () => {
    const began = performance.now();
    for (const bytes of [
      'HTTP/1.1 200 OK\nContent-Length: 2\n\nhi',
      'HTTP/1.1 200 OK\r\nX-A: b\nContent-Length: 2\r\n\r\nhi',
    ])
      expect((await ask1(bytes)).status).toBe(502);
    await expect(ask1('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nhi\n0\n\n')).rejects.toThrow(
      /hang up|aborted/,
    );
    expect(performance.now() - began).toBeLessThan(4_000);
  });

  test('twenty informational answers pass, more do not', async () => {
    const hints = (count: number): string => 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(count);
    const last = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi';
    expect((await ask1(hints(20) + last)).body).toBe('hi');
    expect((await ask1(hints(21) + last)).status).toBe(502);
  });

  test('200,000 of them end with the twenty-first: the connection is reset', async () => {
    const flood = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(200_000);
    let ended = '';
    const hostile = await startRawApp((socket) => {
      socket.once('data', () => socket.write(flood));
      socket.on('error', (error: NodeJS.ErrnoException) => (ended = String(error.code)));
    });
    expect((await ask(await openFront([routeOf([hostile])]))).status).toBe(502);
    await until(() => ended !== '');
    expect(['ECONNRESET', 'EPIPE']).toContain(ended);
  });

  test('204 has no length', async () => {
    const { status, headers } = await ask1('HTTP/1.1 204 No Content\r\nContent-Length: 5\r\nX-A: b\r\n\r\n');
    expect([status, headers['content-length'], headers['x-a']]).toEqual([204, undefined, 'b']);
  });
});

test('what only a proxy may say of the client does not pass', async () => {
  const app = await startApp((request, response) => void response.end(JSON.stringify(request.headers)));
  const headers = {
    Proxy: 'http://a.example',
    'Client-IP': '1.2.3.4',
    'True-Client-IP': '1.2.3.4',
    Client_IP: '1.2.3.4',
  };
  const names = async (trustProxy: number) => {
    const front = await openFront([routeOf([app])], { trustProxy });
    return Object.keys(JSON.parse((await ask(front, { headers })).body)).filter((name) => /proxy|client/.test(name));
  };
  expect(await names(0)).toEqual([]);
  expect(await names(1)).toEqual(['client-ip', 'true-client-ip', 'client_ip']);
});
