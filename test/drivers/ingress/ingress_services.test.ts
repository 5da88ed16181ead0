// The servers of the platform itself behind the ingress: their names, the way to them, and what it says of visitors.
import { statSync } from 'node:fs';
import path from 'node:path';
import tls from 'node:tls';
import { setTimeout as sleep } from 'node:timers/promises';
import { ask, closeAll, mirror, openFront, routeOf, until, type Answer } from '../../support/ingress/ingress';
import { makeCertificate } from '../../support/ingress/ingress_certificate';
import {
  askSecurely,
  HOST,
  openOwnFront,
  openOwnServer,
  ownAuthority,
  type BoundFront,
  type OwnServer,
} from '../../support/ingress/own_server';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

let own: OwnServer;
const openNames: BoundFront = (options, routes) => openOwnFront(own, options, routes);

beforeEach(async () => void (own = await openOwnServer()));
afterEach(async () => {
  await closeAll();
  await own.close();
});

describe('what it says of visitors', () => {
  const FORGED = {
    'X-Forwarded-For': '203.0.113.9',
    X_Forwarded_For: '203.0.113.9',
    'X-Forwarded-Proto': 'http',
    'X-Forwarded-Host': 'evil.example.com',
    Forwarded: 'for=203.0.113.9',
    'X-Real-IP': '203.0.113.9',
  };

  test('the address and the scheme of the connection, whatever the visitor claims', async () => {
    const front = await openNames();
    expect((await askSecurely(front, { headers: FORGED })).status).toBe(200);
    const [one] = own.asked;
    expect(one?.visitor).toEqual({ address: '127.0.0.1', isSecure: true });
    expect(JSON.stringify(one?.request.rawHeaders)).not.toMatch(/203\.0\.113|evil/);
    expect(one?.request.headers).toMatchObject({ host: HOST, 'x-forwarded-host': HOST });
  });

  test('behind a trusted proxy, what that has added, and nothing that came before it', async () => {
    const front = await openNames({ trustProxy: 1 });
    const headers = { 'X-Forwarded-For': '198.51.100.7, 203.0.113.9', 'X-Forwarded-Proto': 'https' };
    expect((await ask(front, { host: HOST, headers })).status).toBe(200);
    expect(own.asked[0]?.visitor).toEqual({ address: '203.0.113.9', isSecure: true });
    expect(own.asked[0]?.request.headers['x-forwarded-for']).toBe('203.0.113.9');
  });

  test('who connects to the server another way says nothing', async () => {
    const { mode } = statSync(own.served.socket);
    expect([mode & 0o777, statSync(path.dirname(own.served.socket)).mode & 0o777]).toEqual([0o600, 0o700]);
  });
});

describe('names', () => {
  test.each(['Platform.Example.com', 'platform.example.com.', 'platform.example.com:8443', 'data.s3.example.com'])(
    '%s is one',
    async (host) => {
      const front = await openNames({ trustProxy: 1 });
      expect((await ask(front, { host, headers: { 'x-forwarded-proto': 'https' } })).body).toBe('served');
    },
  );

  test.each(['other.example.com', 'a.platform.example.com', 'a.b.s3.example.com', 's3.example.com', '', '127.0.0.1'])(
    '%j is none',
    async (host) => {
      const front = await openNames({ trustProxy: 1 });
      const { status } = await ask(front, { host, headers: { 'x-forwarded-proto': 'https' } });
      expect([status >= 400, own.asked]).toEqual([true, []]);
    },
  );

  test('no route takes one of them, also with a wildcard', async () => {
    const hosts = [HOST, '*.example.com', 'data.s3.example.com', '*.s3.example.com'];
    const front = await openNames({}, [routeOf([await mirror('tenant')], { hosts })]);
    expect((await askSecurely(front)).body).toBe('served');
    expect((await askSecurely(front, { path: '/a' }, 'data.s3.example.com')).body).toBe('served');
    front.ingress.replaceApplicationRoutes('app_1', []);
    expect((await askSecurely(front)).body).toBe('served');
  });

  test('the host of an absolute target counts', async () => {
    const front = await openNames({ trustProxy: 1 }, [routeOf([await mirror('tenant')])]);
    const headers = { 'x-forwarded-proto': 'https' };
    const answer = await ask(front, { host: 'app.example.com', path: `https://${HOST}/v2`, headers });
    expect([answer.body, own.asked[0]?.request.headers.host]).toEqual(['served', HOST]);
  });
});

describe('plain HTTP', () => {
  test('is redirected where the name has a certificate, whatever the method', async () => {
    const front = await openNames();
    const answer = await ask(front, { host: `${HOST}:8000`, path: '/v2/me?a=b', method: 'POST' });
    expect([answer.status, answer.headers.location]).toEqual([308, `https://${HOST}/v2/me?a=b`]);
    expect(answer.headers['strict-transport-security']).toBeUndefined();
  });

  test('says that there is no certificate yet', async () => {
    const front = await openFront([], { services: [own.served], tlsPort: 0 });
    const answer = await ask(front, { host: HOST });
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([503, { code: 'no_certificate' }]);
    expect((await ask(front, { host: 'data.s3.example.com' })).status).toBe(503);
    expect(own.asked).toEqual([]);
  });

  test('is served to visitors of a website without a certificate', async () => {
    const front = await openNames();
    expect((await ask(front, { host: 'data.web.example.com' })).body).toBe('served');
    expect(own.asked[0]?.visitor).toMatchObject({ isSecure: false });
  });

  test('answers authorities', async () => {
    const front = await openNames();
    front.tokens.set('token', 'token.thumbprint');
    const answer = await ask(front, { host: HOST, path: '/.well-known/acme-challenge/token' });
    expect([answer.status, answer.body]).toEqual([200, 'token.thumbprint']);
  });

  test('from a proxy that is not trusted is no endless redirect', async () => {
    const front = await openNames();
    const answer = await ask(front, { host: HOST, headers: { 'X-Forwarded-Proto': 'https' } });
    expect([answer.status, answer.headers.location]).toEqual([400, undefined]);
    expect(answer.body).toContain('TRUST_PROXY');
  });
});

test('HSTS is sent with a certificate of an authority, not with one that signs itself', async () => {
  const front = await openNames();
  expect((await askSecurely(front)).headers['strict-transport-security']).toBe('max-age=31536000');
  const itself = makeCertificate(HOST);
  front.certificates.set(HOST, itself);
  front.ingress.forgetCertificate(HOST);
  const answer = await askSecurely(front, { ca: itself.chain });
  expect([answer.status, answer.headers['strict-transport-security']]).toEqual([200, undefined]);
});

test('their requests are neither lines nor traffic of an application', async () => {
  const front = await openNames();
  await askSecurely(front);
  expect([front.lines, front.ingress.takeTraffic()]).toEqual([[], []]);
});

test('a WebSocket goes through, and says who it is', async () => {
  const front = await openNames({ limits: { tunnelIdleMs: 1, sweepMs: 10 } });
  const socket = tls.connect({
    ...{ host: '127.0.0.1', port: front.ingress.ports.https as number, servername: HOST, ca: ownAuthority() },
  });
  let text = '';
  socket.on('data', (bytes: Buffer) => (text += bytes.toString()));
  socket.write(`GET /attach HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst `);
  await until(() => text.endsWith('first '));
  await sleep(100); // longer than that of an application may be silent
  socket.write('second');
  await until(() => text.endsWith('first second'));
  expect(text).toMatch(/^HTTP\/1\.1 101 /);
  expect(own.asked[0]?.visitor).toEqual({ address: '127.0.0.1', isSecure: true });
  socket.destroy();
});

test('bodies may be larger than those of applications', async () => {
  const front = await openNames({ limits: { bodyBytes: 10 } });
  expect((await askSecurely(front, { method: 'PUT', body: 'a'.repeat(100_000) })).status).toBe(200);
  expect(own.asked[0]?.body).toHaveLength(100_000);
});

test('a visitor with too many open requests gets 429, and all together 503', async () => {
  await own.stop();
  await own.start(() => undefined); // never answers
  const limits = { serviceRequests: 6, serviceAddressRequests: 2, serviceAwayMs: 200 };
  const front = await openNames({ trustProxy: 1, limits });
  const from = (address: string): Promise<Answer> =>
    ask(front, { host: HOST, headers: { 'x-forwarded-proto': 'https', 'x-forwarded-for': address } });
  const pending = ['1.1.1.1', '1.1.1.1', '2.2.2.2', '2.2.2.2', '3.3.3.3', '3.3.3.3'];
  const codeOf = async (answer: Promise<Answer>): Promise<unknown[]> => {
    const { status, body, headers } = await answer;
    return [status, (JSON.parse(body) as { code: string }).code, headers['retry-after']];
  };
  const open = pending.slice(0, 2).map(from);
  await until(() => own.asked.length === 2);
  expect(await codeOf(from('1.1.1.1'))).toEqual([429, 'rate_limited', '1']);
  open.push(...pending.slice(2).map(from));
  await until(() => own.asked.length === 6);
  expect(await codeOf(from('4.4.4.4'))).toEqual([503, 'service_unavailable', '1']);
  own.kill();
  expect((await Promise.all(open)).map(({ status }) => status)).toEqual(pending.map(() => 503));
});

test('the fewer requests are free, the fewer a visitor may have: a handful of them do not hold all', async () => {
  await own.stop();
  await own.start(() => undefined); // never answers
  const limits = { serviceRequests: 160, serviceAddressRequests: 20, serviceAwayMs: 200 };
  const front = await openNames({ trustProxy: 1, limits });
  const from = (address: string): Promise<Answer> =>
    ask(front, { host: HOST, headers: { 'x-forwarded-proto': 'https', 'x-forwarded-for': address } });
  const refused: number[] = [];
  const open = [1, 2, 3, 4, 5, 6, 7, 8].flatMap((number) =>
    Array.from({ length: 20 }, () => from(`${number}.${number}.${number}.${number}`)),
  );
  for (const one of open) void one.then(({ status }) => refused.push(status));
  await until(() => own.asked.length + refused.length === open.length);
  expect([...new Set(refused)]).toEqual([429]);
  const before = own.asked.length;
  expect(before).toBeLessThanOrEqual(140);
  open.push(from('9.9.9.9'));
  await until(() => own.asked.length === before + 1);
  own.kill();
  await Promise.all(open);
});

test('private addresses leave some requests to public ones', async () => {
  await own.stop();
  await own.start(() => undefined); // never answers
  const front = await openNames({ trustProxy: 1, limits: { serviceRequests: 8, serviceAwayMs: 200 } });
  const from = (address: string): Promise<Answer> =>
    ask(front, { host: HOST, headers: { 'x-forwarded-proto': 'https', 'x-forwarded-for': address } });
  const open = ['10.0.0.1', '10.0.0.1', '10.0.0.2', 'fd00::1', 'fd00:1::1', '192.168.0.9'].map(from);
  await until(() => own.asked.length === 6);
  expect((await from('10.0.0.3')).status).toBe(503);
  open.push(from('1.1.1.1'), from('2606:4700::1'));
  await until(() => own.asked.length === 8);
  own.kill();
  expect((await Promise.all(open)).map(({ status }) => status)).toEqual(open.map(() => 503));
});
