// Messages as receivers get them, from the real worker: the wire format of each service, signatures, retries, order.
import { createHmac } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { makeAuthority } from '../support/databases/authority';
import { startTarget, type Target } from '../support/deployments/breakable_target';
import { observersOf, type Observers } from '../support/observers/observers';
import { startMailServer, startReceiver, until, type MailServer, type Receiver } from '../support/email/receivers';
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
let observers: Observers;
let target: Target;
let receiver: Receiver;
let mail: MailServer;
let base: string;

beforeAll(async () => {
  const authority = await makeAuthority();
  receiver = await startReceiver(await authority.issue(['127.0.0.1']));
  mail = await startMailServer();
  target = await startTarget();
  base = `https://127.0.0.1:${receiver.port}`;
  service = await startService({
    worker: true,
    settings: {
      ALLOW_PRIVATE_ADDRESSES: '1',
      OUTBOUND_CA_FILE: authority.write(path.join(mkdtempSync(path.join(tmpdir(), 'receivers-')), 'ca.pem')),
      PAGERDUTY_URL: `${base}/v2/enqueue`,
      SMTP_URL: `smtp://127.0.0.1:${mail.port}`,
      SMTP_FROM: 'Platform <alerts@example.com>',
    },
  });
  observers = observersOf(service);
});

afterAll(async () => {
  await service.close();
  await Promise.all([receiver.close(), mail.close(), target.close()]);
});

const test_ = (id: string): Promise<Answer> => service.call('POST', `/v2/notifiers/${id}/test`);
const checkNow = (id: string): Promise<unknown> =>
  service.sql('update observer_checks set check_at = now() - make_interval(secs => 1) where observer_id = $1', [id]);
const at = (place: string): string => `http://127.0.0.1:${target.port}${place}`;

/** An observer whose incident opens and is resolved; answers its id. */
async function incident(notifier_ids: string[]): Promise<string> {
  target.status = 500;
  const { id } = await observers.made(at('/switch'), { name: 'Shop <front>', failure_threshold: 1, notifier_ids });
  await until(async () => (await observers.get(id)).status === 'alerting');
  target.status = 200;
  await checkNow(id);
  await until(async () => (await observers.get(id)).status === 'ok');
  return id;
}

const delivered = (id: string): Promise<unknown> =>
  until(async () => {
    const [found] = await observers.incidents(id);
    return (
      found.notifications.length >= 2 &&
      found.notifications.every((one: { status: string }) => one.status === 'delivered')
    );
  });

test('Slack, Discord, PagerDuty and mail get an alert and its end in their own form', async () => {
  const made = await Promise.all([
    observers.notifier({ type: 'slack', config: { webhook_url: `${base}/slack/services/T0/B0/secret-token` } }),
    observers.notifier({ type: 'discord', config: { webhook_url: `${base}/discord/webhooks/1/token-of-it` } }),
    observers.notifier({ type: 'pagerduty', config: { routing_key: '0123456789abcdef0123456789abcdef' } }),
    observers.notifier({ type: 'email', config: { addresses: ['ops@example.com', 'on-call@example.com'] } }),
  ]);
  const id = await incident(made.map((one) => one.id));
  await delivered(id);
  const [{ id: incidentId }] = await observers.incidents(id);

  const [slack, slackEnd] = receiver.at('/slack/services/T0/B0/secret-token');
  expect(slack?.headers['content-type']).toBe('application/json');
  expect(slack?.body).toEqual({
    text: 'Shop &lt;front&gt; is alerting',
    blocks: [
      { type: 'header', text: { type: 'plain_text', text: 'Shop <front> is alerting' } },
      {
        type: 'section',
        text: { type: 'mrkdwn', text: expect.stringContaining('*Last error:* The answer had the status 500.') },
      },
    ],
  });
  expect(slack?.body.blocks[1].text.text).toContain(`/v2/observers/${id}/incidents`);
  expect(slackEnd?.body.text).toContain('has recovered after');

  const [discord] = receiver.at('/discord/webhooks/1/token-of-it');
  expect(discord?.body).toMatchObject({
    ...{ content: 'Shop <front> is alerting', allowed_mentions: { parse: [] } },
    embeds: [
      {
        title: 'Shop <front> is alerting',
        color: 0xd92d20,
        fields: expect.arrayContaining([{ name: 'Target', value: at('/switch') }]),
      },
    ],
  });

  const events = receiver.at('/v2/enqueue').map(({ body }) => body);
  expect(events.map(({ event_action, dedup_key }) => [event_action, dedup_key])).toEqual([
    ['trigger', incidentId],
    ['resolve', incidentId],
  ]);
  expect(events[0]).toMatchObject({
    routing_key: '0123456789abcdef0123456789abcdef',
    payload: {
      summary: 'Shop <front> is alerting',
      source: at('/switch'),
      severity: 'critical',
      timestamp: expect.any(String),
    },
  });

  expect(mail.mails).toHaveLength(2);
  expect(mail.mails[0]?.to).toEqual(['ops@example.com', 'on-call@example.com']);
  expect(mail.mails[0]?.data).toMatch(/^Message-ID: <msg_[0-9a-z]{26}@example\.com>$/m);
  expect(mail.mails[0]?.data).toMatch(/^Subject: Shop <front> is alerting$/m);
  expect(mail.mails[0]?.data).toContain('Last error: The answer had the status 500.');
});

test('webhooks are signed as Standard Webhooks, and repeated with the same id until they are taken', async () => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const place = '/hooks/signed';
  receiver.answers.set(place, [{ status: 503, body: 'busy' }]);
  const { id: notifier } = await observers.notifier({ config: { url: base + place, secret } });
  const id = await incident([notifier]);
  await until(() => receiver.at(place).length === 1);
  const failed = await until(async () => (await service.call('GET', `/v2/notifiers/${notifier}`)).body.last_delivery);
  expect(failed).toEqual({
    at: expect.any(String),
    status: 'failed',
    error: 'The receiver answered with the status 503: busy',
  });
  // The end of the incident waits behind its beginning.
  expect(receiver.at(place)).toHaveLength(1);
  await delivered(id);
  const [first, again, end] = receiver.at(place);
  expect([first?.headers['webhook-id'], first?.text]).toEqual([again?.headers['webhook-id'], again?.text]);
  expect(first?.headers['webhook-id']).toMatch(/^msg_/);
  expect([first?.body.type, again?.body.type, end?.body.type]).toEqual([
    'observer.alerting',
    'observer.alerting',
    'observer.resolved',
  ]);
  expect(end?.body).toEqual({
    ...{ type: 'observer.resolved', timestamp: expect.any(String) },
    data: {
      project: { id: service.project, name: expect.any(String) },
      observer: { id, name: 'Shop <front>', type: 'uptime', target: at('/switch') },
      incident: expect.objectContaining({ status: 'resolved', cause: 'The answer had the status 500.' }),
      ...{ last_error: null, note: null, link: `${service.url}/v2/observers/${id}/incidents` },
    },
  });
  for (const { headers, text } of receiver.at(place)) {
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`;
    const key = Buffer.from(secret.slice(6), 'base64');
    expect(headers['webhook-signature']).toBe(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`);
    expect(Math.abs(Number(headers['webhook-timestamp']) - Date.now() / 1000)).toBeLessThan(60);
  }
});

test('a receiver that refuses for good is not asked again', async () => {
  receiver.answers.set('/slack/revoked/of-a-channel', [{ status: 404, body: 'no_service' }]);
  const { id: notifier } = await observers.notifier({
    type: 'slack',
    config: { webhook_url: `${base}/slack/revoked/of-a-channel` },
  });
  const id = await incident([notifier]);
  const [found] = await until(async () => {
    const incidents = await observers.incidents(id);
    return incidents[0].notifications.every((one: { status: string }) => one.status !== 'pending') && incidents;
  });
  expect(found.notifications.map((one: { status: string }) => one.status)).toEqual(['failed', 'delivered']);
});

describe('a test message tells the truth of one attempt', () => {
  test('that was taken', async () => {
    const { id } = await observers.notifier({ config: { url: `${base}/hooks/test` } });
    const { status, body } = await test_(id);
    expect([status, body]).toEqual([
      200,
      { status: 'delivered', status_code: 200, error: null, duration_ms: expect.any(Number) },
    ]);
    expect(receiver.at('/hooks/test')[0]?.body).toMatchObject({ type: 'notifier.test', data: { notifier: { id } } });
    expect(receiver.at('/hooks/test')[0]?.headers).not.toHaveProperty('webhook-signature');
    // What is repeated with its key is answered again, and not sent again.
    const headers = { 'Idempotency-Key': 'test-once' };
    const again = (): Promise<Answer> => service.call('POST', `/v2/notifiers/${id}/test`, { headers });
    const [first, second] = [await again(), await again()];
    expect([second.body, second.headers.get('idempotent-replayed')]).toEqual([first.body, 'true']);
    expect(receiver.at('/hooks/test')).toHaveLength(2);
    expect((await service.call('GET', `/v2/notifiers/${id}`)).body.last_delivery).toMatchObject({
      status: 'delivered',
    });
  });

  test('that was refused, once', async () => {
    receiver.answers.set('/hooks/broken', [{ status: 500, body: 'oh no' }]);
    const { id } = await observers.notifier({ config: { url: `${base}/hooks/broken` } });
    expect((await test_(id)).body).toMatchObject({
      status: 'failed',
      status_code: 500,
      error: 'The receiver answered with the status 500: oh no',
    });
    expect(receiver.at('/hooks/broken')).toHaveLength(1);
  });

  test('that nobody heard', async () => {
    const { id } = await observers.notifier({ config: { url: 'https://127.0.0.1:1/hook' } });
    expect((await test_(id)).body).toMatchObject({
      status: 'failed',
      status_code: null,
      error: 'The connection to port 1 was refused.',
    });
  });

  test('that a mail server refused', async () => {
    mail.refusal = '550 no such user';
    const { id } = await observers.notifier({ type: 'email', config: { addresses: ['gone@example.com'] } });
    expect((await test_(id)).body).toMatchObject({
      status: 'failed',
      status_code: 550,
      error: 'The mail server answered 550.',
    });
    mail.refusal = null;
  });
});

test('reminders come while an incident is open, and none after', async () => {
  const place = '/hooks/reminders';
  const { id: notifier } = await observers.notifier({ config: { url: base + place } });
  target.status = 500;
  const { id } = await observers.made(at('/switch'), {
    failure_threshold: 1,
    notifier_ids: [notifier],
    reminder_minutes: 5,
  });
  await until(async () => (await observers.get(id)).status === 'alerting');
  await service.sql(`update incidents set remind_at = now() where observer_id = $1`, [id]);
  await service.sql(`update schedules set next_at = now() where id = 'remind_of_incidents'`);
  await until(() => receiver.at(place).length === 2);
  expect(receiver.at(place).map(({ body }) => body.type)).toEqual(['observer.alerting', 'observer.reminder']);
  const [row] = await service.sql(
    `select remind_at > now() + interval '4 minutes' as later from incidents where observer_id = $1`,
    [id],
  );
  expect(row).toEqual({ later: true });
  target.status = 200;
  await checkNow(id);
  await until(() => receiver.at(place).length === 3);
  expect(await service.sql('select remind_at from incidents where observer_id = $1', [id])).toEqual([
    { remind_at: null },
  ]);
});

test('a webhook may subscribe to activity, by patterns, in order for each resource', async () => {
  const place = '/hooks/activity';
  await observers.notifier({ config: { url: base + place, events: ['volume.*'] } });
  receiver.answers.set(place, [{ status: 500 }]);
  const { body: volume } = await service.call('POST', '/v2/volumes', { body: { name: 'told', size_gb: 1 } });
  await service.call('PATCH', `/v2/volumes/${volume.id}`, { body: { name: 'told-again' } });
  await service.call('POST', '/v2/applications', { body: { name: 'not-told' } });
  const actions = (): string[] =>
    receiver
      .at(place)
      .filter(({ body }) => body.data.resource.id === volume.id)
      .map(({ body }) => body.type);
  await until(() => actions().includes('volume.updated'));
  const seen = actions();
  // Refused at first: sent again before anything that came later.
  expect(seen.slice(0, 2)).toEqual(['volume.created', 'volume.created']);
  expect(seen.indexOf('volume.updated')).toBeGreaterThan(1);
  const [first] = receiver.at(place);
  const { body } = await service.call(
    'GET',
    `/v2/projects/${service.project}/activity?action=volume.created&resource_id=${volume.id}`,
  );
  // Whether it can be reverted is answered for the time of the question.
  const { revertible: _, revert_obstacle: __, reverts: ___, reverted_by: ____, ...entry } = body.data[0];
  expect(first?.body).toEqual({
    type: 'volume.created',
    timestamp: expect.any(String),
    data: { ...entry, project_id: service.project },
  });
  expect(first?.headers['webhook-id']).toBe(body.data[0].id);
  expect(receiver.at(place).filter(({ body: { type } }) => !type.startsWith('volume.'))).toEqual([]);
});
