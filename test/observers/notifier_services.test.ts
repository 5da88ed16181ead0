// Messages in the form that Teams, Telegram, ntfy, Gotify and Mattermost document: limits, escaping, errors, pauses.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { NotifierTarget, Outgoing } from '../../core/notifications';
import { openOutbound } from '../../core/outbound';
import { openSender } from '../../drivers/notifier/open';
import type { NotifierType, Sender } from '../../drivers/notifier';
import { makeAuthority } from '../support/databases/authority';
import { startReceiver, type Receiver } from '../support/email/receivers';

let receiver: Receiver;
let sender: Sender;
let base: string;

beforeAll(async () => {
  const authority = await makeAuthority();
  const caFile = authority.write(path.join(mkdtempSync(path.join(tmpdir(), 'services-')), 'ca.pem'));
  receiver = await startReceiver(await authority.issue(['127.0.0.1']));
  base = `https://127.0.0.1:${receiver.port}`;
  sender = openSender({
    outbound: openOutbound({ isAllowed: () => true, hostsFile: false, resolvers: [], caFile }),
    ...{ pagerdutyUrl: base, smtpUrl: null, smtpFrom: 'alerts@example.com', queue: null, caFile },
  });
});

afterAll(async () => {
  sender.close();
  await receiver.close();
});

const HOSTILE = '@channel <!here> [win](https://evil.example.com) **`x`** <b>&';
const LINK = 'https://platform.example.com/v2/observers/obs_1/incidents';

function alert(name: string, last_error: string): Outgoing {
  const incident = {
    ...{ id: 'inc_1', status: 'open' as const, cause: 'down', started_at: '2026-11-29T10:00:00.000Z' },
    ...{ resolved_at: null, duration_seconds: null },
  };
  const observer = { id: 'obs_1', name, type: 'uptime', target: 'https://shop.example.com/a_b_c' };
  return {
    ...{ id: 'msg_1', event: 'observer.alerting', at: '2026-11-29T10:00:05.000Z', link: LINK },
    data: { observer, incident, last_error, note: null },
    ...{ project: { id: 'prj_1', name: 'Shop' }, notifier: { id: 'ntf_1', name: 'On call' } },
  };
}

const TELEGRAM_PATH = '/bot123:abc/sendMessage';
const SERVICES: [NotifierType, () => NotifierTarget, string][] = [
  ['teams', () => ({ webhook_url: `${base}/teams?sig=1` }), '/teams?sig=1'],
  ['mattermost', () => ({ webhook_url: `${base}/hooks/1` }), '/hooks/1'],
  ['telegram', () => ({ url: base, token: '123:abc', chat_id: '-100' }), TELEGRAM_PATH],
  ['ntfy', () => ({ url: base, topic: 'ops', token: 'tk_1' }), '/'],
  ['gotify', () => ({ url: `${base}/push/`, token: 'A1' }), '/push/message'],
];

async function sent(type: NotifierType, message: Outgoing): Promise<Receiver['got'][number]> {
  const [, target, place] = SERVICES.find(([one]) => one === type) as (typeof SERVICES)[number];
  expect(await sender.send(type, target(), message)).toMatchObject({ delivered: true, error: null });
  return receiver.at(place).at(-1) as Receiver['got'][number];
}

test('Teams gets an adaptive card whose texts have no Markdown', async () => {
  const { body } = await sent('teams', alert(HOSTILE, 'The answer had the status 500.'));
  expect(body).toMatchObject({
    type: 'message',
    attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null }],
  });
  const { content: card } = body.attachments[0];
  expect(card).toMatchObject({
    ...{ type: 'AdaptiveCard', $schema: 'http://adaptivecards.io/schemas/adaptive-card.json' },
    actions: [{ type: 'Action.OpenUrl', title: 'Details', url: LINK }],
  });
  expect(card.body.map(({ type }: { type: string }) => type)).toEqual(card.body.map(() => 'RichTextBlock'));
  expect(card.body[0].inlines[0]).toMatchObject({ type: 'TextRun', text: `${HOSTILE} is alerting` });
});

test('Mattermost mentions nobody, and shows no link under another text', async () => {
  const { body } = await sent('mattermost', alert(HOSTILE, HOSTILE));
  expect(body.props).toEqual({ disable_mentions: true });
  const [attachment] = body.attachments;
  const texts = [attachment.text, ...attachment.fields.map(({ value }: { value: string }) => value)].join('\n');
  expect(texts).not.toMatch(/@channel|<!here>|(?<!\\)\[win|(?<!\\)`x/);
  expect(attachment.color).toBe('#d92d20');
  // An address stays one.
  expect(attachment.fields[0]).toEqual({ short: false, title: 'Target', value: 'https://shop.example.com/a_b_c' });
});

test('Telegram gets plain text of at most 4,096 characters, with formatting by position', async () => {
  for (const error of ['The answer had the status 500.', '😀'.repeat(5000), 'x'.repeat(3990)]) {
    const { body } = await sent('telegram', alert(HOSTILE, error));
    expect(body).toMatchObject({ chat_id: '-100', link_preview_options: { is_disabled: true } });
    expect(body.parse_mode).toBeUndefined();
    expect(body.text.length).toBeLessThanOrEqual(4096);
    expect(body.text.isWellFormed()).toBe(true);
    const bold = body.entities.map(({ offset, length }: { offset: number; length: number }) =>
      body.text.slice(offset, offset + length),
    );
    expect(bold.slice(0, 4)).toEqual([`${HOSTILE} is alerting`, 'Target:', 'Since:', 'Last error:']);
    for (const { offset, length } of body.entities) expect(offset + length).toBeLessThanOrEqual(body.text.length);
  }
});

test('ntfy gets JSON of at most 4,096 bytes of text, with priority, tag and link', async () => {
  const { body, headers } = await sent('ntfy', alert('Größe 😀', 'é'.repeat(5000)));
  expect(headers.authorization).toBe('Bearer tk_1');
  expect(body).toMatchObject({ topic: 'ops', title: 'Größe 😀 is alerting', priority: 4, click: LINK });
  expect(body.tags).toEqual(['rotating_light']);
  expect(Buffer.byteLength(body.message)).toBeLessThanOrEqual(4096);
  expect(body.message).not.toContain('\ufffd');
  // ntfy reads a request of 8,192 bytes at most.
  const { text } = await sent('ntfy', alert('"'.repeat(3000), '"\n\u0001'.repeat(3000)));
  expect(Buffer.byteLength(text)).toBeLessThan(8192);
});

test('Gotify gets a message of high priority with the token in a header, not in the address', async () => {
  const { body, headers, path: place } = await sent('gotify', alert('Shop', HOSTILE));
  expect([headers['x-gotify-key'], place]).toEqual(['A1', '/push/message']);
  expect(body).toMatchObject({ title: 'Shop is alerting', priority: 8 });
  expect(body.extras).toEqual({
    'client::display': { contentType: 'text/plain' },
    'client::notification': { click: { url: LINK } },
  });
  expect(body.message).toContain(HOSTILE);
});

test.each(SERVICES)('a message to %s stays below 28 KB, whatever is in it', async (type) => {
  const { text } = await sent(type, alert('名'.repeat(5000), '😀"\\'.repeat(5000)));
  expect(Buffer.byteLength(text)).toBeLessThan(28_000);
});

describe('errors of the services', () => {
  const cases: [NotifierType, string, { status: number; headers?: Record<string, string>; body?: string }, object][] = [
    [
      'telegram',
      'a chat that it is not in',
      { status: 400, body: '{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}' },
      { error: 'The receiver answered with the status 400: Bad Request: chat not found', retry: 'never' },
    ],
    [
      'telegram',
      'too many messages',
      { status: 429, body: '{"ok":false,"description":"Too Many Requests","parameters":{"retry_after":37}}' },
      { retry: 37_000 },
    ],
    [
      'telegram',
      'a group that has become a supergroup',
      {
        status: 400,
        body: '{"ok":false,"description":"Bad Request: group upgraded","parameters":{"migrate_to_chat_id":-1009}}',
      },
      { error: expect.stringMatching(/group upgraded \(its id is now -1009\)$/), retry: 'never' },
    ],
    [
      'gotify',
      'a wrong token',
      { status: 401, body: '{"error":"Unauthorized","errorCode":401,"errorDescription":"you need a valid token"}' },
      { error: 'The receiver answered with the status 401: you need a valid token', retry: 'never' },
    ],
    [
      'ntfy',
      'a full quota',
      { status: 429, body: '{"code":42908,"http":429,"error":"limit reached: daily message quota reached"}' },
      { error: 'The receiver answered with the status 429: limit reached: daily message quota reached', retry: null },
    ],
    ['teams', 'a busy workflow', { status: 429, headers: { 'Retry-After': '12' }, body: '' }, { retry: 12_000 }],
    [
      'mattermost',
      'a webhook that was deleted',
      {
        status: 400,
        body: '{"id":"web.incoming_webhook.invalid.app_error","message":"Invalid webhook.","detailed_error":""}',
      },
      { error: 'The receiver answered with the status 400: Invalid webhook.', retry: 'never' },
    ],
    [
      'mattermost',
      'a proxy',
      { status: 502, body: 'null' },
      { error: expect.stringMatching(/502: null$/), retry: null },
    ],
  ];

  test.each(cases)('%s: %s', async (type, _, answer, delivery) => {
    const [, target, place] = SERVICES.find(([one]) => one === type) as (typeof SERVICES)[number];
    receiver.answers.set(place, [answer]);
    const outcome = await sender.send(type, target(), alert('Shop', 'Down.'));
    expect(outcome).toMatchObject({ delivered: false, status_code: answer.status, ...delivery });
    expect(JSON.stringify(outcome)).not.toContain('123:abc');
  });
});
