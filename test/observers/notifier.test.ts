// Notifiers as rows: what each type needs, and how little of it is shown (docs/contract/resources.md §15.2).
import { mistakesOf } from '../support/observers/observers';
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;

beforeAll(async () => {
  service = await startService({ settings: { SMTP_PORTS: '0' } });
});

afterAll(() => service.close());

const create = (type: string, config: Record<string, unknown>, more: object = {}): Promise<Answer> =>
  service.call('POST', '/v2/notifiers', { body: { name: 'On call', type, config, ...more } });
const none = {
  ...{ addresses: null, webhook_url: null, url: null, secret: null, events: null, routing_key: null },
  ...{ token: null, chat_id: null, topic: null },
};
const SLACK = 'https://hooks.slack.com/services/T0000/B0000/abcdefghijklq8Zx';

test('a new notifier answers everything that is promised', async () => {
  const { status, body } = await create('webhook', { url: 'https://ops.example.com/hook' });
  expect(status).toBe(201);
  expect(body).toEqual({
    ...{ id: expect.stringMatching(/^ntf_/), project_id: service.project, name: 'On call', type: 'webhook' },
    config: { ...none, url: 'https://ops.example.com/hook', events: [] },
    ...{ enabled: true, last_delivery: null, created_at: expect.any(String), updated_at: body.created_at },
  });
});

describe('secrets are masked', () => {
  const cases: [string, Record<string, unknown>, Record<string, unknown>, string][] = [
    ['slack', { webhook_url: SLACK }, { webhook_url: 'https://hooks.slack.com/***q8Zx' }, 'abcdefghijkl'],
    [
      'discord',
      { webhook_url: 'https://discord.com/api/webhooks/1/token-of-it' },
      { webhook_url: 'https://discord.com/***f-it' },
      'token-o',
    ],
    ['pagerduty', { routing_key: '0123456789abcdef0123456789abcdef' }, { routing_key: '***cdef' }, '0123456789'],
    [
      'teams',
      { webhook_url: 'https://teams.example.com/workflows/1/invoke?api-version=1&sig=hidden-signature' },
      { webhook_url: 'https://teams.example.com/***ture' },
      'hidden',
    ],
    [
      'mattermost',
      { webhook_url: 'https://chat.example.com/hooks/xen8bkrlngyf' },
      { webhook_url: 'https://chat.example.com/***ngyf' },
      'xen8bk',
    ],
    [
      'telegram',
      { token: '123456:ABC-DEF1234ghIkl-zyx57W2v1u', chat_id: '-1001234567890' },
      { token: '***2v1u', chat_id: '-1001234567890' },
      'ABC-DEF',
    ],
    [
      'ntfy',
      { topic: 'alerts-hD7sKq29xLm', token: 'tk_AgQdq7mVBoFD' },
      { topic: '***9xLm', token: '***' },
      'alerts-hD7s',
    ],
    [
      'gotify',
      { url: 'https://push.example.com/gotify', token: 'AKmkq1CpH0zD9xs.Q' },
      { url: 'https://push.example.com/gotify', token: '***xs.Q' },
      'AKmkq1',
    ],
    [
      'webhook',
      {
        url: 'https://ops.example.com/hook?key=hidden',
        secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
        events: ['deployment.*'],
      },
      { url: 'https://ops.example.com/hook?***', secret: '***LaSw', events: ['deployment.*'] },
      'hidden',
    ],
  ];

  test.each(cases)('of %s', async (type, config, shown, secret) => {
    const { status, body } = await create(type, config);
    expect([status, body.config]).toEqual([201, { ...none, ...shown }]);
    const rows = await service.sql('select * from notifiers where id = $1', [body.id]);
    const activity = await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${body.id}`);
    expect(JSON.stringify(rows) + activity.text).not.toContain(secret);
    // Sent back as it was shown, it stays as it is.
    const again = await service.call('PATCH', `/v2/notifiers/${body.id}`, { body: { config: shown } });
    expect([again.status, again.body.config]).toEqual([200, { ...none, ...shown }]);
  });
});

test.each([
  ['slack', { webhook_url: SLACK }],
  ['pagerduty', { routing_key: '0123456789abcdef0123456789abcdef' }],
])('%s takes entries of the activity too, and has none unless it says so', async (type, config) => {
  const events = ['run.failed', 'schedule.missed'];
  const { body } = await create(type, { ...config, events });
  expect(body.config.events).toEqual(events);
  const changed = await service.call('PATCH', `/v2/notifiers/${body.id}`, { body: { config: { events: null } } });
  expect(changed.body.config.events).toBeNull();
});

describe('what is refused', () => {
  const cases: [string, string, Record<string, unknown>, [string, string][]][] = [
    ['nothing of its type', 'slack', {}, [['config.webhook_url', 'required']]],
    ['a field of another type', 'slack', { webhook_url: SLACK, url: SLACK }, [['config.url', 'depends_on']]],
    ['no chat', 'telegram', { token: '123:abc' }, [['config.chat_id', 'required']]],
    ['a name as a chat', 'telegram', { token: '123:abc', chat_id: 'Ops' }, [['config.chat_id', 'invalid_format']]],
    ['a token that is a path', 'telegram', { token: '1/../2', chat_id: '1' }, [['config.token', 'invalid_format']]],
    ['a topic that is a path', 'ntfy', { topic: 'a/json' }, [['config.topic', 'invalid_format']]],
    ['no server', 'gotify', { token: 'AKmkq1CpH0zD9xs' }, [['config.url', 'required']]],
    ['a private server', 'ntfy', { topic: 'a', url: 'https://10.0.0.1/' }, [['config.url', 'invalid_format']]],
    ['http', 'webhook', { url: 'http://ops.example.com/' }, [['config.url', 'invalid_format']]],
    ['a private address', 'webhook', { url: 'https://192.168.0.1/' }, [['config.url', 'invalid_format']]],
    ['loopback', 'discord', { webhook_url: 'https://127.0.0.1/' }, [['config.webhook_url', 'invalid_format']]],
    ['an e-mail address', 'email', { addresses: ['nobody'] }, [['config.addresses.0', 'invalid_format']]],
    ['no addresses', 'email', { addresses: [] }, [['config.addresses', 'too_few']]],
    ['a short secret', 'webhook', { url: 'https://a.example.com/', secret: 'short' }, [['config.secret', 'too_short']]],
    [
      'an odd pattern',
      'webhook',
      { url: 'https://a.example.com/', events: ['Deploy!'] },
      [['config.events.0', 'invalid_format']],
    ],
  ];

  test.each(cases)('%s', async (_, type, config, mistakes) => {
    expect(mistakesOf(await create(type, config))).toEqual(mistakes);
  });

  test('email where the operator sends none', async () => {
    const answer = await create('email', { addresses: ['ops@example.com'] });
    expect([answer.status, answer.body.code, answer.body.detail]).toEqual([
      409,
      'engine_unavailable',
      expect.stringContaining('SMTP_URL'),
    ]);
  });
});

test('an update merges the configuration; null takes the secret away', async () => {
  const { body } = await create('webhook', { url: 'https://ops.example.com/hook', secret: 'a secret of the receiver' });
  const patch = (config: object): Promise<Answer> =>
    service.call('PATCH', `/v2/notifiers/${body.id}`, { body: { config } });
  expect((await patch({ url: 'https://ops.example.com/other' })).body.config).toMatchObject({ secret: '***iver' });
  expect((await patch({ secret: null })).body.config).toMatchObject({
    url: 'https://ops.example.com/other',
    secret: null,
  });
});

test('a token that is not shown is not sent to another server either', async () => {
  const { body } = await create('gotify', { url: 'https://push.example.com', token: 'AKmkq1CpH0zD9xs.Q' });
  const patch = (config: object): Promise<Answer> =>
    service.call('PATCH', `/v2/notifiers/${body.id}`, { body: { config } });
  const url = 'https://other.example.com/';
  expect(mistakesOf(await patch({ url }))).toEqual([['config.token', 'required']]);
  expect(mistakesOf(await patch({ url, token: '***xs.Q' }))).toEqual([['config.token', 'required']]);
  expect(mistakesOf(await patch({ token: null }))).toEqual([['config.token', 'required']]);
  expect((await patch({ url, token: 'another-token-of-it' })).body.config).toMatchObject({ url, token: '***f-it' });
});

test('a notifier that is switched off sends no test', async () => {
  const { body } = await create('webhook', { url: 'https://ops.example.com/hook' }, { enabled: false });
  const answer = await service.call('POST', `/v2/notifiers/${body.id}/test`);
  expect([answer.status, answer.body.code]).toEqual([409, 'invalid_state']);
});

test('without a worker a test says that nothing was sent', async () => {
  const { body } = await create('webhook', { url: 'https://ops.example.com/hook' });
  const answer = await service.call('POST', `/v2/notifiers/${body.id}/test`);
  expect([answer.status, answer.body]).toEqual([
    200,
    { status: 'failed', status_code: null, error: expect.stringContaining('no worker'), duration_ms: 0 },
  ]);
});
