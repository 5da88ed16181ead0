// While a server of the platform restarts or is killed: its requests wait, and none is sent twice.
import https from 'node:https';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { listenAtFile } from '../../../core/process/named_socket';
import type { RemoteIngress } from '../../../engines/ingress/process/remote';
import { ask, closeAll, until, type Answer, type Front } from '../../support/ingress/ingress';
import { startIngressProcessBench } from '../../support/ingress/ingress_process';
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

const post = (front: Front, headers = {}): Promise<Answer> =>
  askSecurely(front, { method: 'POST', body: 'once', headers: { 'content-length': '4', ...headers } });

test('requests wait for it, and are sent once', async () => {
  const front = await openNames();
  await own.stop();
  const asked = [askSecurely(front), post(front), post(front, { expect: '100-continue' })];
  await sleep(500);
  await own.start();
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(own.asked.map(({ body }) => body).sort()).toEqual(['', 'once', 'once']);
});

test('after a while they are answered 503, soon to be tried again', async () => {
  const front = await openNames({ limits: { serviceAwayMs: 300 } });
  await own.stop();
  const began = performance.now();
  const { status, headers, body } = await post(front);
  expect(performance.now() - began).toBeGreaterThan(250);
  expect([status, headers['retry-after'], headers['content-type']]).toEqual([503, '2', 'application/problem+json']);
  expect(JSON.parse(body)).toMatchObject({
    code: 'service_unavailable',
    type: `https://${HOST}/v2/errors/service_unavailable`,
    retryable: true,
  });
  // How long it is away counts.
  const again = performance.now();
  expect((await post(front)).status).toBe(503);
  expect(performance.now() - again).toBeLessThan(250);
  await own.start();
  expect((await post(front)).status).toBe(200);
});

test('no more than a number of them wait', async () => {
  const front = await openNames({ limits: { serviceWaiting: 2, serviceAwayMs: 2_000 } });
  await own.stop();
  const asked = Array.from({ length: 5 }, () => askSecurely(front));
  await sleep(500);
  await own.start();
  const statuses = (await Promise.all(asked)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 503).length).toBeGreaterThanOrEqual(2);
  expect(statuses).toContain(200);
});

test('one client does not take the places of others', async () => {
  const front = await openNames({ trustProxy: 1, limits: { serviceWaiting: 20, serviceAwayMs: 5_000 } });
  const from = async (address: string): Promise<number> =>
    (await ask(front, { host: HOST, headers: { 'x-forwarded-proto': 'https', 'x-forwarded-for': address } })).status;
  await own.stop();
  const greedy = Array.from({ length: 30 }, () => from('203.0.113.1'));
  await sleep(300);
  const others = ['198.51.100.1', '198.51.100.2', '198.51.100.3'].map(from);
  await sleep(300);
  await own.start();
  expect(await Promise.all(others)).toEqual([200, 200, 200]);
  expect((await Promise.all(greedy)).filter((status) => status === 200)).toHaveLength(10);
});

test('a request that it was working on is not sent again, unless it only reads', async () => {
  const front = await openNames();
  await own.stop();
  await own.start(() => undefined);
  const asked = [post(front), askSecurely(front)];
  await until(() => own.asked.length === 2);
  own.kill();
  await own.start();
  const [written, read] = await Promise.all(asked);
  expect([written?.status, read?.status]).toEqual([503, 200]);
  expect(written?.body).toContain('may have carried out');
  expect(own.asked.filter(({ request }) => request.method === 'POST')).toHaveLength(1);
});

test('a connection that nobody has taken yet lets a request wait', async () => {
  // The kernel accepts for a process that does not come to it any more.
  const front = await openNames({ limits: { connectMs: 300 } });
  await own.stop();
  const silent = createServer(() => undefined);
  await listenAtFile(silent, own.served.socket);
  const asked = post(front);
  await sleep(200);
  await own.start();
  expect((await asked).status).toBe(200);
  silent.close();
});

test('a visitor who does not wait is forgotten', async () => {
  const front = await openNames();
  await own.stop();
  const request = https.request({
    ...{ host: '127.0.0.1', port: front.ingress.ports.https, servername: HOST, ca: ownAuthority(), agent: false },
    headers: { host: HOST },
  });
  request.on('error', () => undefined).end();
  await sleep(300);
  request.destroy();
  await sleep(300);
  await own.start();
  expect((await askSecurely(front)).status).toBe(200);
  expect(own.asked).toHaveLength(1);
});

test('browsers get a page', async () => {
  const front = await openNames({ limits: { serviceAwayMs: 100 } });
  await own.stop();
  const { headers, body } = await askSecurely(front, { headers: { accept: 'text/html' } });
  expect([headers['content-type'], body]).toEqual(['text/html; charset=utf-8', expect.stringContaining('restarting')]);
});

test('an ingress that is replaced meanwhile serves those that wait at it', async () => {
  const bench = startIngressProcessBench();
  const services = [own.served];
  const headers = { 'x-forwarded-for': '1.1.1.1', 'x-forwarded-proto': 'https', 'content-length': '4' };
  const send = ({ ingress }: RemoteIngress): Promise<Answer> =>
    ask({ port: ingress.ports.http }, { host: HOST, method: 'POST', body: 'once', headers });
  try {
    const first = await bench.open({ trustProxy: 1, services });
    expect((await send(first)).status).toBe(200);
    await own.stop();
    const waiting = send(first);
    await sleep(200);
    // Nothing else is behind it: it stays for its names.
    await bench.detach(first);
    const logged: string[] = [];
    const second = await bench.open({ trustProxy: 2, services, log: (message) => void logged.push(message) });
    expect(second.ingress.ports).toEqual(first.ingress.ports);
    const later = send(second);
    await own.start();
    expect([(await waiting).status, (await later).status]).toEqual([200, 200]);
    expect(own.asked.map(({ body }) => body)).toEqual(['once', 'once', 'once']);
    await until(() => logged.some((line) => line.includes('1 requests waited, 0 got 503')));
  } finally {
    await bench.close();
  }
});
