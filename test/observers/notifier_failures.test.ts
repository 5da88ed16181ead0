// Receivers that fail in every way: what a notifier says of it, what is tried again, for how long, and with which id.
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Duplex } from 'node:stream';
import { RETRY_SECONDS, type Delivery, type Outgoing } from '../../core/notifications';
import { openSender } from '../../drivers/notifier/open';
import type { NotifierType, Sender } from '../../drivers/notifier';
import { openOutbound } from '../../core/outbound';
import { startTarget, type Target } from '../support/deployments/breakable_target';
import { makeAuthority } from '../support/databases/authority';
import { observersOf, type Observers } from '../support/observers/observers';
import { startReceiver, until, type Receiver } from '../support/email/receivers';
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
let observers: Observers;
let receiver: Receiver;
let target: Target;
let base: string;
let caFile: string;

beforeAll(async () => {
  const authority = await makeAuthority();
  caFile = authority.write(path.join(mkdtempSync(path.join(tmpdir(), 'failing-receivers-')), 'ca.pem'));
  const leaf = await authority.issue(['127.0.0.1']);
  [receiver, target] = await Promise.all([startReceiver(leaf), startTarget()]);
  broken = await startBroken(leaf);
  base = `https://127.0.0.1:${receiver.port}`;
  service = await startService({
    worker: true,
    settings: { ALLOW_PRIVATE_ADDRESSES: '1', OUTBOUND_CA_FILE: caFile },
  });
  observers = observersOf(service);
});

afterAll(async () => {
  await service.close();
  await Promise.all([receiver.close(), target.close(), broken.close()]);
});

/** Takes a request, and breaks in the way of its path. */
let broken: { port: number; close(): Promise<void> };
async function startBroken(leaf: Parameters<typeof startReceiver>[0]): Promise<typeof broken> {
  const sockets = new Set<Duplex>();
  const server = createServer(leaf, (request, response) => {
    if (request.url === '/reset') return void request.socket.destroy();
    if (request.url === '/garbage') return void request.socket.end('220 SMTP\r\n\r\n');
    if (request.url === '/private')
      return void response.writeHead(307, { Location: 'https://169.254.169.254/latest' }).end();
    if (request.url === '/endless') {
      response.writeHead(200);
      const more = (): void => void (response.destroyed || response.write(Buffer.alloc(65_536, 'x'), more));
      return more();
    }
    return undefined; // '/hang'
  });
  server.on('connection', (socket) => sockets.add(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

describe('one attempt', () => {
  const message: Outgoing = {
    ...{ id: 'msg_1', event: 'notifier.test', at: new Date().toISOString(), data: {}, link: null },
    ...{ project: { id: 'prj_1', name: 'Shop' }, notifier: { id: 'ntf_1', name: 'On call' } },
  };
  let sender: Sender;

  beforeAll(() => {
    sender = openSender({
      outbound: openOutbound({ isAllowed: (one) => one === '127.0.0.1', hostsFile: false, resolvers: [], caFile }),
      ...{ pagerdutyUrl: `${base}/pagerduty`, smtpUrl: null, smtpFrom: 'a@example.com', caFile, queue: null },
      timeoutSeconds: 1,
    });
  });

  afterAll(() => sender.close());

  const send = (type: NotifierType, url: string): Promise<Delivery> =>
    sender.send(type, { url, webhook_url: url, routing_key: 'r'.repeat(32) }, message);

  test.each([
    ['/hang', 'The time limit of 1 s was reached before the response began.'],
    ['/reset', 'The connection was closed before an answer came.'],
    ['/garbage', 'The answer is not valid HTTP'],
  ])('that breaks is worth another one: %s', async (place, error) => {
    for (const type of ['webhook', 'slack', 'discord'] as const)
      expect(await send(type, `https://127.0.0.1:${broken.port}${place}`)).toEqual({
        ...{ delivered: false, status_code: null, retry: null, error: expect.stringContaining(error) },
      });
  });

  test('is not led elsewhere by a redirect, and reads no answer without end', async () => {
    expect(await send('webhook', `https://127.0.0.1:${broken.port}/private`)).toMatchObject({
      ...{ delivered: false, status_code: 307 },
    });
    expect(await send('webhook', `https://127.0.0.1:${broken.port}/endless`)).toMatchObject({ delivered: true });
  });

  test('goes to public addresses only, with a certificate that is good', async () => {
    expect((await send('webhook', `https://127.0.0.2:${broken.port}/`)).error).toContain('not public');
    const stranger = await startReceiver(await (await makeAuthority()).issue(['127.0.0.1']));
    expect((await send('slack', `https://127.0.0.1:${stranger.port}/`)).error).toContain('not trusted');
    expect(stranger.got).toEqual([]);
    await stranger.close();
  });

  // What each service documents: 4xx is for good but for 408 and 429; a webhook ends with 410 alone.
  test.each<[NotifierType, number, Delivery['retry']]>([
    ['slack', 400, 'never'],
    ['slack', 403, 'never'],
    ['slack', 410, 'never'],
    ['slack', 429, 30_000],
    ['slack', 500, null],
    ['discord', 401, 'never'],
    ['discord', 404, 'never'],
    ['discord', 429, 30_000],
    ['discord', 502, null],
    ['pagerduty', 400, 'never'],
    ['pagerduty', 408, null],
    ['pagerduty', 429, 30_000],
    ['pagerduty', 503, null],
    ['webhook', 404, null],
    ['webhook', 410, 'never'],
    ['webhook', 429, 30_000],
  ])('of %s that is answered with %d', async (type, status, retry) => {
    const place = type === 'pagerduty' ? '/pagerduty' : `/answers/${type}/${status}`;
    const headers: Record<string, string> = status === 429 ? { 'Retry-After': '30' } : {};
    receiver.answers.set(place, [{ status, headers, body: 'what\u0007it says' }]);
    expect(await send(type, base + place)).toEqual({
      ...{ delivered: false, status_code: status, retry },
      error: `The receiver answered with the status ${status}: what it says`,
    });
  });
});

test('a message is tried for a day, with one id, and its attempts grow rarer', async () => {
  const seconds = RETRY_SECONDS.reduce((sum, pause) => sum + pause, 0);
  expect(seconds / 3600).toBeGreaterThan(22);
  expect(seconds / 3600).toBeLessThanOrEqual(24);
  const place = '/hooks/down-for-days';
  const attempts = RETRY_SECONDS.length + 1;
  receiver.answers.set(place, Array(attempts).fill({ status: 503 }));
  const { id: notifier } = await observers.notifier({ config: { url: base + place } });
  target.status = 500;
  const { id } = await observers.made(`http://127.0.0.1:${target.port}/switch`, {
    ...{ failure_threshold: 1, notifier_ids: [notifier] },
  });
  const row = async (): Promise<{ status: string; attempts: number; pause: number; ended: boolean } | undefined> => {
    const [found] = await service.sql(
      `select status, attempts, extract(epoch from next_at - now())::float8 as pause, sent_at is not null as ended
        from notifications where notifier_id = $1`,
      [notifier],
    );
    return found;
  };
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    await until(() => receiver.at(place).length === attempt);
    const { status, pause } = await until(async () => {
      const found = await row();
      return found?.ended === true && found.attempts === attempt && found;
    });
    const expected = RETRY_SECONDS[attempt - 1];
    if (expected === undefined) break;
    expect(status).toBe('pending');
    expect(pause).toBeLessThanOrEqual(expected * 1.1);
    expect(pause).toBeGreaterThan(expected - 20);
    await service.sql('update notifications set next_at = now(), sent_at = null where notifier_id = $1', [notifier]);
  }
  await until(async () => (await row())?.status === 'failed');
  expect(new Set(receiver.at(place).map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  expect(receiver.at(place)).toHaveLength(attempts);
  const [incident] = await observers.incidents(id);
  expect(incident.notifications).toEqual([{ notifier_id: notifier, sent_at: null, status: 'failed' }]);
  expect((await service.call('GET', `/v2/notifiers/${notifier}`)).body.last_delivery).toMatchObject({
    ...{ status: 'failed', error: 'The receiver answered with the status 503: ok' },
  });
});

test('requests for a test with one key send one message, also when they come at the same time', async () => {
  const { id } = await observers.notifier({ config: { url: `${base}/hooks/twins` } });
  const send = (key: string): Promise<Answer> =>
    service.call('POST', `/v2/notifiers/${id}/test`, { headers: { 'Idempotency-Key': key } });
  const answers = await Promise.all(Array.from({ length: 4 }, () => send('twins')));
  const done = answers.filter(({ status }) => status === 200);
  expect(done).not.toEqual([]);
  for (const { body } of done) expect(body).toEqual(done[0]?.body);
  for (const { status, body } of answers.filter((one) => one.status !== 200))
    expect([status, body.code]).toEqual([409, 'idempotency_in_progress']);
  expect((await send('twins')).headers.get('idempotent-replayed')).toBe('true');
  expect(receiver.at('/hooks/twins')).toHaveLength(1);
  expect((await send('other')).body.status).toBe('delivered');
  expect(receiver.at('/hooks/twins')).toHaveLength(2);
});
