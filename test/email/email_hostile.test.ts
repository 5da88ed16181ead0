// What hostile clients and messages get: one message at most, a reply for each command, and a server that goes on.
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { randomBytes } from 'node:crypto';
import { simpleParser } from 'mailparser';
import { buffer } from 'node:stream/consumers';
import { composeMessage } from '../../engines/mail/message/compose';
import { openLoginFailures } from '../../jobs/email/mail/logins';
import { freePort } from '../support/processes/free_port';
import { mailReport, openMailBench, type MailBench } from '../support/email/mail';
import { startMailReceiver, type MailReceiver } from '../support/email/mail_receiver';
import type { Answer, TestService } from '../support/service';
import { smtpDialogue } from '../support/email/smtp_dialogue';
import { openRawSession, type RawSession } from '../support/email/smtp_session';
import { retryCheck } from '../support/wait_for';

let bench: MailBench;
let service: TestService;
let receiver: MailReceiver;
let port: number;
let mxPort: number;
let zone: Answer['body'];
let login: string;

beforeAll(async () => {
  receiver = await startMailReceiver();
  [port, mxPort] = [await freePort(), await freePort()];
  bench = await openMailBench({
    worker: true,
    settings: {
      ...{ SMTP_PORTS: String(port), MX_PORT: String(mxPort), SMTP_URL: `smtp://127.0.0.1:${receiver.port}` },
    },
  });
  ({ service } = bench);
  const domain = await bench.verified('shop.example', { open_tracking: true, click_tracking: true });
  const made = await service.call('POST', '/v2/email_relay_zones', {
    body: { name: 'zone', email_domain_ids: [domain.id] },
  });
  zone = made.body;
  login = Buffer.from(`\0${zone.smtp_username}\0${zone.smtp_password}`).toString('base64');
});

afterAll(async () => {
  await bench.close();
  await receiver.close();
});

const accepted = async (): Promise<number> =>
  Number((await service.sql('select count(*) as count from email_messages'))[0].count);

const begin = (recipient = 'x@receiver.example'): [string, RegExp][] => [
  ['EHLO client.example', /^250/],
  [`AUTH PLAIN ${login}`, /^235/],
  ['MAIL FROM:<a@shop.example>', /^250/],
  [`RCPT TO:<${recipient}>`, /^250/],
  ['DATA', /^354/],
];
const dialogue = (steps: [string, RegExp][]): Promise<void> => smtpDialogue({ port, tls: true }, steps);

const rawSession = (): Promise<RawSession> => openRawSession(port, login);

const ENDS = [
  ...['\n.\n', '\n.\r\n', '\r\n.\n', '\r.\r', '\r.\r\n', '\r\n.\r', '\r\n\0.\r\n', '\n\n.\n\n'],
  ...['\r\n.\0\r\n', '\r\n\0.\0\r\n', '\r\n.\r\0\n', '\0\r\n.\n', '\r\r\n.\r\r\n', '\n\r.\n\r', '\r\n.\n\r\n'],
];

test.each(ENDS.map((end) => [JSON.stringify(end), end]))('nothing is smuggled behind %s', async (_, end) => {
  const before = await accepted();
  const session = await rawSession();
  const smuggled =
    'MAIL FROM:<a@shop.example>\r\nRCPT TO:<smuggled@receiver.example>\r\nDATA\r\nFrom: a@shop.example\r\n\r\nx';
  await session.talk('MAIL FROM:<a@shop.example>\r\nRCPT TO:<x@receiver.example>\r\nDATA\r\n', /^354/m);
  const answer = await session.talk(`From: a@shop.example\r\n\r\nx${end}${smuggled}\r\n.\r\n`, /^\d{3} /m);
  session.close();
  expect([answer.split('\r\n').length - 1, answer.slice(0, 9)]).toEqual([1, '550 5.6.0']);
  expect(await accepted()).toBe(before);
  const rows = await service.sql(`select 1 from email_deliveries where recipient = 'smuggled@receiver.example'`);
  expect(rows).toEqual([]);
});

test('commands that came before TLS are forgotten', async () => {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  socket.on('error', () => {});
  await retryCheck(async () => expect(text).toMatch(/^220/));
  socket.write('EHLO a.example\r\nSTARTTLS\r\nEHLO injected.example\r\nNOOP\r\n');
  await retryCheck(async () => expect(text).toMatch(/^220 (?!smtp\.)/m));
  socket.removeAllListeners('data');
  const secure = connectTls({ socket, rejectUnauthorized: false });
  let said = '';
  secure.on('data', (chunk: Buffer) => (said += chunk.toString('latin1')));
  secure.on('error', () => {});
  await new Promise((resolve) => secure.once('secureConnect', resolve));
  secure.write('MAIL FROM:<a@shop.example>\r\n');
  await retryCheck(async () => expect(said).toMatch(/^\d{3} /m));
  // No greeting of the injected EHLO, nor an answer to its NOOP.
  expect(said).toMatch(/^5\d\d /);
  secure.destroy();
});

test('10,000 recipients: 500 of them are taken, and each of the others has its reply', async () => {
  const session = await rawSession();
  const recipients = Array.from({ length: 10_000 }, (_, index) => `RCPT TO:<r${index}@receiver.example>\r\n`);
  const answers = await session.talk(`MAIL FROM:<a@shop.example>\r\n${recipients.join('')}VRFY x\r\n`, /^252/m);
  const codes = answers.split('\r\n').map((line) => line.slice(0, 3));
  expect([codes.filter((code) => code === '250').length, codes.filter((code) => code === '452').length]).toEqual([
    501, 9_500,
  ]);
  expect(await session.talk('RSET\r\nNOOP\r\n', /^250.*\r\n250/)).toMatch(/^250/);
  session.close();
});

/** Parts within parts. */
function nested(depth: number): string {
  const open = Array.from(
    { length: depth },
    (_, at) => `Content-Type: multipart/mixed; boundary="b${at}"\r\n\r\n--b${at}\r\n`,
  );
  const shut = Array.from({ length: depth }, (_, at) => `\r\n--b${depth - 1 - at}--\r\n`);
  return `MIME-Version: 1.0\r\n${open.join('')}Content-Type: text/html\r\n\r\n<a href="https://x.example/">x</a>${shut.join('')}`;
}

test('a message with parts 1000 deep arrives, and a bounce that quotes one does no harm', async () => {
  await dialogue([
    ...begin('deep@receiver.example'),
    [`From: a@shop.example\r\n${nested(1000)}\r\n.`, /^250/],
    ['NOOP', /^250/],
  ]);
  const mail = await receiver.mailTo('deep@receiver.example');
  expect(mail.raw).toContain('--b999--');
  const hello: [string, RegExp] = ['EHLO client.example', /^250/];
  for (const text of [nested(1000), mailReport('delivery-status', nested(1000), nested(1000))])
    await smtpDialogue({ port: mxPort, tls: false }, [
      hello,
      ['MAIL FROM:<>', /^250/],
      [`RCPT TO:<${mail.from}>`, /^250/],
      ['DATA', /^354/],
      [`From: a@b.example\r\n${text}\r\n.`, /^250/],
    ]);
});

test('eight-bit junk is taken as text or refused, and goes out encoded', async () => {
  const junk = Array.from({ length: 200 }, () =>
    randomBytes(70)
      .toString('latin1')
      .replace(/[\0\r\n]/g, 'x'),
  ).join('\r\n');
  await dialogue([
    ...begin('junk@receiver.example'),
    [`From: a@shop.example\r\nSubject: \xff\xfe\x80\r\n\r\n${junk.replace(/^\./gm, '..')}\r\n.`, /^250/],
  ]);
  const mail = await receiver.mailTo('junk@receiver.example');
  expect(mail.raw).toMatch(/^[\0-\x7f]*$/);
  const [part] = (await simpleParser(mail.raw.replace('unknown-8bit', 'latin1'))).text?.split('\n\n') ?? [];
  const read = Buffer.from(mail.raw.slice(mail.raw.indexOf('\r\n\r\n')), 'base64').toString('latin1');
  expect([part?.length, read]).toEqual([expect.any(Number), `${junk}\r\n`]);
  expect(await receiver.judge(mail, bench.dns.address)).toMatchObject({
    dkim: expect.arrayContaining(['rsa-sha256 pass']),
  });
  await dialogue([
    ...begin(),
    [
      `${randomBytes(3000)
        .toString('latin1')
        .replace(/[\r\n.]/g, 'x')}\r\n.`,
      /^550 5\.6\.0/,
    ],
  ]);
  // Commands of junk: a reply or the end of the session, and the next one is served.
  const session = await rawSession();
  await session.talk(
    `${randomBytes(500)
      .toString('latin1')
      .replace(/[\r\n]/g, 'x')}\r\n`,
    /^5\d\d/m,
  );
  session.close();
});

test('a header cannot be injected by what becomes part of one', async () => {
  const raw = await buffer(
    composeMessage({
      ...{ from: 'Platform <a@shop.example>', recipients: ['b@shop.example'], text: 'x', html: '<p>x</p>' },
      ...{ subject: 'x\r\nBcc: evil@elsewhere.example\r\n\r\nInjected', messageId: '<1@x>' },
    }),
  );
  const parsed = await simpleParser(raw);
  expect([parsed.bcc, parsed.to && 'text' in parsed.to && parsed.to.text]).toEqual([undefined, 'b@shop.example']);
  expect(parsed.text?.trim()).toBe('x');
  // Lines that would be fields of their own are what RFC 5322 says: continued ones stay part of theirs.
  await dialogue([
    ...begin('folded@receiver.example'),
    ['From: a@shop.example\r\nSubject: x\r\n Bcc: evil@elsewhere.example\r\n\r\nx\r\n.', /^250/],
  ]);
  const mail = await receiver.mailTo('folded@receiver.example');
  expect((await simpleParser(mail.raw)).subject).toBe('x Bcc: evil@elsewhere.example');
  const refused = async (header: string): Promise<void> =>
    dialogue([...begin(), [`${header}\r\n\r\nx\r\n.`, /^550 5\./]]);
  await refused('From: a@shop.example\rBcc: evil@elsewhere.example');
  await refused('From: a@shop.example\nBcc: evil@elsewhere.example');
  await refused(' leading: continuation\r\nFrom: a@shop.example');
  await refused('From: a@shop.example, =?utf-8?q?b=40bank.example?= <b@bank.example>');
  await refused(`From: ${'(('.repeat(5000)} a@shop.example`);
});

test('wrong passwords are answered later and later, then not at all; others of the same address go on', async () => {
  const failures = openLoginFailures();
  const wrong = (user: string): string => Buffer.from(`\0${user}\0wrong`).toString('base64');
  const other = await service.call('POST', '/v2/email_relay_zones', {
    body: { name: 'other', email_domain_ids: [zone.email_domain_ids[0]] },
  });
  const right = Buffer.from(`\0${other.body.smtp_username}\0${other.body.smtp_password}`).toString('base64');
  const took: number[] = [];
  const attempt = async (credentials: string, answer: RegExp): Promise<void> => {
    const began = performance.now();
    await dialogue([
      ['EHLO client.example', /^250/],
      [`AUTH PLAIN ${credentials}`, answer],
    ]);
    took.push(performance.now() - began);
  };
  await Promise.all(Array.from({ length: 10 }, () => attempt(wrong(zone.smtp_username), /^535/)));
  expect(Math.max(...took)).toBeGreaterThan(2_400);
  await attempt(wrong(zone.smtp_username), /^454/);
  await attempt(login, /^454/);
  await attempt(right, /^235/);
  // An address that tries many names is told to go away; one of another network is not.
  for (let count = 0; count < 50; count += 1) void failures.count('192.0.2.1', `erz_${count}`);
  await expect(failures.count('192.0.2.1', 'erz_next')).rejects.toMatchObject({ responseCode: 454 });
  expect(() => failures.requireFew('192.0.2.1', 'erz_right')).not.toThrow();
  for (let count = 0; count < 10; count += 1) void failures.count(`2001:db8::${count}`, 'erz_six');
  expect(() => failures.requireFew('2001:db8::ffff:1', 'erz_six')).toThrow(/Too many/);
  expect(() => failures.requireFew('2001:db8:1::1', 'erz_six')).not.toThrow();
});

test('an address that refuses for other reasons three times within two weeks is suppressed', async () => {
  const { body } = await service.call('POST', '/v2/email_relay_zones', {
    body: { name: 'soft', email_domain_ids: [zone.email_domain_ids[0]] },
  });
  const soft = Buffer.from(`\0${body.smtp_username}\0${body.smtp_password}`).toString('base64');
  const path = `/v2/email_relay_zones/${body.id}/suppressions`;
  const ended = (count: number): Promise<void> =>
    retryCheck(async () =>
      expect(
        await service.sql(`select 1 from email_deliveries where email_relay_zone_id = $1 and status = 'bounced'`, [
          body.id,
        ]),
      ).toHaveLength(count),
    );
  for (let count = 1; count <= 3; count += 1) {
    expect((await service.call('GET', path)).body.data).toEqual([]);
    await dialogue([
      ['EHLO client.example', /^250/],
      [`AUTH PLAIN ${soft}`, /^235/],
      ['MAIL FROM:<a@shop.example>', /^250/],
      ['RCPT TO:<policy-soft@receiver.example>', /^250/],
      ['DATA', /^354/],
      ['From: a@shop.example\r\n\r\nx\r\n.', /^250/],
    ]);
    await ended(count);
  }
  expect((await service.call('GET', path)).body.data).toMatchObject([
    { email: 'policy-soft@receiver.example', reason: 'bounce', detail: expect.stringContaining('5.7.1') },
  ]);
});
