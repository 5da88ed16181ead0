// What servers answer to recipients, and what follows: nothing, a suppression, the suspension of the zone.
import { createTransport } from 'nodemailer';
import { classifyRejection } from '../../engines/mail/rejection';
import { openMailBench, type MailBench } from '../support/email/mail';
import { startMailReceiver, type MailReceiver } from '../support/email/mail_receiver';
import { REJECTIONS } from '../support/email/rejections';
import { freePort } from '../support/processes/free_port';
import type { Answer, TestService } from '../support/service';
import { retryCheck } from '../support/wait_for';

type Body = Answer['body'];

let bench: MailBench;
let service: TestService;
let receiver: MailReceiver;
let port: number;
let domain: Body;

/** By local part of the recipient, without its number. */
const refusals: Record<string, { stage: 'rcpt' | 'data'; answer: readonly [number, string] }> = {
  listed: { stage: 'rcpt', answer: [550, 'Mail from 192.0.2.1 rejected, see https://www.spamhaus.org/'] },
  content: { stage: 'data', answer: [550, 'User unknown'] },
  attachment: { stage: 'data', answer: [552, 'Attachment not allowed'] },
  same: { stage: 'rcpt', answer: [550, '5.1.1 No such user'] },
  missing: { stage: 'rcpt', answer: [550, '5.1.1 No such user'] },
  grey: { stage: 'rcpt', answer: [550, '5.7.1 Greylisted, try again in 5 minutes'] },
};

function refusalOf(address: string, stage: 'rcpt' | 'data'): readonly [number, string] | undefined {
  const [, name = '', number] = /^([a-z]+)-(\d+)@/.exec(address) ?? [];
  if (name === 'answer' && stage === 'rcpt') {
    const [, code, text] = REJECTIONS[Number(number)] as (typeof REJECTIONS)[number];
    return [code, text];
  }
  return refusals[name]?.stage === stage ? refusals[name].answer : undefined;
}

beforeAll(async () => {
  receiver = await startMailReceiver({ refuse: refusalOf });
  port = await freePort();
  bench = await openMailBench({
    worker: true,
    settings: { SMTP_PORTS: String(port), MX_PORT: '0', SMTP_URL: `smtp://127.0.0.1:${receiver.port}` },
  });
  ({ service } = bench);
  domain = await bench.verified('shop.example');
});

afterAll(async () => {
  await bench.close();
  await receiver.close();
});

const newZone = (name: string): Promise<Body> => bench.relayZone(name, domain);

async function send({ smtp_username: user, smtp_password: pass }: Body, to: string[]): Promise<void> {
  const client = createTransport({ host: '127.0.0.1', port, auth: { user, pass }, tls: { rejectUnauthorized: false } });
  await client.sendMail({ from: 'hello@shop.example', to, subject: 'Hello', text: 'Hi.\n' });
  client.close();
}

const numbered = (name: string, count: number, at = 'receiver.example'): string[] =>
  Array.from({ length: count }, (_, index) => `${name}-${index}@${at}`);

const ended = async ({ id }: Body, count: number): Promise<void> =>
  retryCheck(async () =>
    expect(
      await service.sql(`select 1 from email_deliveries where email_relay_zone_id = $1 and ended_at is not null`, [id]),
    ).toHaveLength(count),
  );

async function suppressed({ id }: Body): Promise<string[]> {
  const { body } = await service.call('GET', `/v2/email_relay_zones/${id}/suppressions?limit=100`);
  return body.data.map(({ email }: Body) => email).sort();
}

const zoneOf = async ({ id }: Body): Promise<Body> => (await service.call('GET', `/v2/email_relay_zones/${id}`)).body;

test.each(REJECTIONS)('%s: %i %s', (kind, code, text) => {
  const rejection = { code, response: `${code} ${text}`, recipient: 'jo.doe@a.example' };
  expect(classifyRejection({ ...rejection, stage: 'rcpt' })).toBe(kind);
  expect(classifyRejection({ ...rejection, stage: 'other' })).not.toBe('mailbox');
  expect(classifyRejection({ ...rejection, stage: 'rcpt', code: 450, response: `450 ${text}` })).not.toBe('mailbox');
});

test('only answers about the mailbox suppress a recipient', async () => {
  const zone = await newZone('answers');
  await send(zone, ['jo@receiver.example', ...numbered('answer', REJECTIONS.length)]);
  await ended(zone, REJECTIONS.length + 1);
  const missing = REJECTIONS.flatMap(([kind], index) => (kind === 'mailbox' ? `answer-${index}@receiver.example` : []));
  expect(await suppressed(zone)).toEqual(missing.sort());
});

test('a block list suppresses nobody, and the owner reads what the server says', async () => {
  const zone = await newZone('listed');
  for (let count = 1; count <= 3; count += 1) {
    await send(zone, numbered('listed', 30));
    await ended(zone, 30 * count);
  }
  await retryCheck(async () =>
    expect(await zoneOf(zone)).toMatchObject({
      status: 'active',
      status_reason: expect.stringMatching(/^90 of 90 recipients .*“550 Mail from 192\.0\.2\.1 rejected, see/),
    }),
  );
  expect(await suppressed(zone)).toEqual([]);
});

test('what a server says of the message is not about its recipients', async () => {
  const zone = await newZone('contents');
  await send(zone, [...numbered('content', 25), ...numbered('attachment', 25)]);
  await ended(zone, 50);
  expect(await suppressed(zone)).toEqual([]);
  expect((await zoneOf(zone)).status).toBe('active');
});

test('a server that refuses everybody in the same words refuses the sender', async () => {
  const zone = await newZone('same');
  await send(zone, numbered('same', 4, 'closed.example'));
  await ended(zone, 4);
  expect(await suppressed(zone)).toHaveLength(4);
  await send(zone, ['same-9@closed.example', ...numbered('same', 30, 'walled.example')]);
  await ended(zone, 35);
  expect(await suppressed(zone)).toEqual([]);
  await retryCheck(async () => expect((await zoneOf(zone)).status_reason).toContain('35 of 35 recipients'));
  expect((await zoneOf(zone)).status).toBe('active');
});

test('the same words count where the server takes mail for others', async () => {
  const zone = await newZone('missing');
  await send(zone, ['jo@open.example']);
  await ended(zone, 1);
  await send(zone, numbered('missing', 25, 'open.example'));
  await ended(zone, 26);
  expect(await suppressed(zone)).toHaveLength(25);
  await retryCheck(async () =>
    expect(await zoneOf(zone)).toMatchObject({
      status: 'suspended',
      status_reason: expect.stringMatching(/^25 of 26 recipients .* do not exist.*“550 5\.1\.1 No such user”$/),
    }),
  );
});

test('a server that wants to be asked again is asked again, even if it says so with 550', async () => {
  const zone = await newZone('grey');
  await send(zone, ['grey-1@receiver.example']);
  await retryCheck(async () =>
    expect(
      await service.sql(`select status, attempts from email_deliveries where email_relay_zone_id = $1`, [zone.id]),
    ).toEqual([{ status: 'queued', attempts: 1 }]),
  );
});

test('a mailbox that takes a message between refusals is not suppressed', async () => {
  const zone = await newZone('full');
  const sendOne = async (count: number, answer: readonly [number, string] | null): Promise<void> => {
    if (answer) refusals['filled'] = { stage: 'rcpt', answer };
    else delete refusals['filled'];
    await send(zone, ['filled-1@receiver.example']);
    await ended(zone, count);
  };
  const full = [552, '5.2.2 Mailbox full'] as const;
  await sendOne(1, full);
  await sendOne(2, full);
  await sendOne(3, null);
  await sendOne(4, full);
  await sendOne(5, full);
  expect(await suppressed(zone)).toEqual([]);
  await sendOne(6, full);
  expect(await suppressed(zone)).toEqual(['filled-1@receiver.example']);
});
