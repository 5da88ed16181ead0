// Certificates of targets that expire soon: notifiers are told once for each, while the checks pass.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { makeAuthority, type Authority } from '../support/databases/authority';
import { startTarget, type Target } from '../support/deployments/breakable_target';
import { mistakesOf, observersOf, type Observers } from '../support/observers/observers';
import { startReceiver, until, type Receiver } from '../support/email/receivers';
import { startService, type TestService } from '../support/service';

let authority: Authority;
let service: TestService;
let observers: Observers;
let receiver: Receiver;
const targets: Target[] = [];

beforeAll(async () => {
  authority = await makeAuthority();
  receiver = await startReceiver(await authority.issue(['127.0.0.1']));
  service = await startService({
    worker: true,
    settings: {
      ALLOW_PRIVATE_ADDRESSES: '1',
      OUTBOUND_CA_FILE: authority.write(path.join(mkdtempSync(path.join(tmpdir(), 'certificates-')), 'ca.pem')),
      PAGERDUTY_URL: `https://127.0.0.1:${receiver.port}/v2/enqueue`,
    },
  });
  observers = observersOf(service);
});

afterAll(async () => {
  await service.close();
  await Promise.all([receiver.close(), ...targets.map((one) => one.close())]);
});

async function startSecure(days: number, port = 0): Promise<Target> {
  const target = await startTarget(await authority.issue(['127.0.0.1'], { from: -1, until: days }), port);
  targets.push(target);
  return target;
}

/** Of which observer, and of how many days, the messages at a path tell. */
const told = (place: string): unknown[] =>
  receiver.at(place).map(({ body }) => [body.type, body.data?.observer?.id, body.data?.certificate?.days_left]);

async function watch(target: Target, place: string, uptime: Record<string, unknown> = {}): Promise<string> {
  const notifier = await observers.notifier({ config: { url: `https://127.0.0.1:${receiver.port}${place}` } });
  const settings = { notifier_ids: [notifier.id], interval_seconds: 3600, uptime };
  return (await observers.made(`https://127.0.0.1:${target.port}/ok`, settings)).id;
}

const forgetWarning = (id: string): Promise<unknown> =>
  service.sql(`update observers set certificate_warned_at = certificate_warned_at - interval '1 day' where id = $1`, [
    id,
  ]);

test('seven days before it expires notifiers are told, once, and the observer stays ok', async () => {
  const target = await startSecure(6.5);
  const id = await watch(target, '/soon');
  expect((await observers.check(id)).body).toMatchObject({ status: 'pass', incident_id: null });
  await until(() => told('/soon').length > 0);
  for (let check = 0; check < 3; check += 1) await observers.check(id);
  await forgetWarning(id);
  await observers.check(id);
  const [message] = receiver.at('/soon');
  expect(told('/soon')).toEqual([['observer.certificate_expiring', id, 6]]);
  expect(message?.body.data).toMatchObject({
    observer: { id, name: 'Shop', target: `https://127.0.0.1:${target.port}/ok` },
    certificate: { expires_at: (await observers.get(id)).last_result.certificate_expires_at },
    link: `${service.url}/v2/observers/${id}`,
  });
  expect(await observers.get(id)).toMatchObject({ status: 'ok', uptime_percent_30d: 100 });
  expect(await observers.incidents(id)).toEqual([]);
});

test('an authority that ends before the certificate is told of by its name', async () => {
  const between = await authority.intermediate('Shop CA 1', { from: -1, until: 4.5 });
  const { cert, key } = await between.issue(['127.0.0.1'], { from: -1, until: 60 });
  const target = await startTarget({ cert: `${cert}\n${between.pem}`, key });
  targets.push(target);
  const id = await watch(target, '/between');
  expect((await observers.check(id)).body.status).toBe('pass');
  await until(() => told('/between').length > 0);
  expect(receiver.at('/between')[0]?.body.data.certificate).toMatchObject({ days_left: 4, authority: 'Shop CA 1' });
});

test('another certificate that expires soon is told of a day later', async () => {
  const first = await startSecure(3.5);
  const id = await watch(first, '/next');
  await observers.check(id);
  await until(() => told('/next').length === 1);
  await first.close();
  await startSecure(2.5, first.port);
  await observers.check(id);
  expect(told('/next')).toHaveLength(1);
  await forgetWarning(id);
  await observers.check(id);
  await until(() => told('/next').length === 2);
  expect(told('/next').map((one) => (one as unknown[])[2])).toEqual([3, 2]);
});

test('the days are those of the observer; 0 switches it off', async () => {
  const target = await startSecure(20.5);
  const [far, near, off] = await Promise.all([
    watch(target, '/far', { certificate_expiry_days: 30 }),
    watch(target, '/near'),
    watch(await startSecure(0.5), '/off', { certificate_expiry_days: 0 }),
  ]);
  for (const id of [near, off, far]) await observers.check(id);
  await until(() => told('/far').length === 1);
  expect([told('/far'), told('/near'), told('/off')]).toEqual([[[expect.any(String), far, 20]], [], []]);
  await observers.patch(off, { uptime: { certificate_expiry_days: 1 } });
  await observers.check(off);
  await until(() => told('/off').length === 1);
});

test('one that has expired fails the check, which is an incident and no warning', async () => {
  const target = await startSecure(-0.5);
  const id = await watch(target, '/over');
  expect((await observers.check(id)).body.status).toBe('fail');
  expect(told('/over')).toEqual([]);
});

test('PagerDuty gets a warning of its own', async () => {
  const notifier = await observers.notifier({
    type: 'pagerduty',
    config: { routing_key: '0123456789abcdef0123456789abcdef' },
  });
  const { port } = await startSecure(1.5);
  const place = `https://127.0.0.1:${port}/ok`;
  const { id } = await observers.made(place, { notifier_ids: [notifier.id], interval_seconds: 3600 });
  await observers.check(id);
  await until(() => receiver.at('/v2/enqueue').length === 1);
  expect(receiver.at('/v2/enqueue')[0]?.body).toMatchObject({
    event_action: 'trigger',
    payload: { summary: 'The certificate of Shop expires in 1 day', source: place, severity: 'warning' },
    links: [{ href: `${service.url}/v2/observers/${id}`, text: 'The observer' }],
  });
});

test('the days are 0 to 90', async () => {
  const made = await observers.create({
    uptime: { target: 'https://shop.example.com/', certificate_expiry_days: 91 },
  });
  expect(mistakesOf(made)).toEqual([['uptime.certificate_expiry_days', 'too_large']]);
});
