// Commands of SMTP to the letter: what is not honoured is refused, on the servers for submission and for bounces.
import { connect as connectTls } from 'node:tls';
import { returnPathLocal } from '../../core/mail/mail_reference';
import { freePort } from '../support/processes/free_port';
import { openMailBench, type MailBench } from '../support/email/mail';
import { startMailReceiver, type MailReceiver } from '../support/email/mail_receiver';
import type { Answer, TestService } from '../support/service';
import { smtpDialogue } from '../support/email/smtp_dialogue';
import { retryCheck } from '../support/wait_for';
import { withConfig } from '../support/config';

type Step = readonly [string, RegExp];

let bench: MailBench;
let service: TestService;
let receiver: MailReceiver;
let [port, tlsPort, mxPort] = [0, 0, 0];
let zone: Answer['body'];

beforeAll(async () => {
  receiver = await startMailReceiver();
  [port, tlsPort, mxPort] = [await freePort(), await freePort(), await freePort()];
  bench = await openMailBench({
    worker: true,
    settings: {
      ...{ SMTP_PORTS: `${port},${tlsPort}/tls`, MX_PORT: String(mxPort), ...withConfig({ mailSizeMb: 1 }) },
      SMTP_URL: `smtp://127.0.0.1:${receiver.port}`,
    },
  });
  ({ service } = bench);
  zone = await bench.relayZone('zone', await bench.verified('shop.example'));
});

afterAll(async () => {
  await bench.close();
  await receiver.close();
});

const HELLO: Step = ['EHLO client.example', /^250/];
const encoded = (text: string): string => Buffer.from(text, 'latin1').toString('base64');
const token = (authzid = '', user = zone.smtp_username, password = zone.smtp_password): string =>
  encoded(`${authzid}\0${user}\0${password}`);
const session = (...steps: Step[]): Promise<void> =>
  smtpDialogue({ port, tls: true }, [HELLO, [`AUTH PLAIN ${token()}`, /^235/], ...steps]);
const bounces = (...steps: Step[]): Promise<void> => smtpDialogue({ port: mxPort, tls: false }, [HELLO, ...steps]);
const MAIL: Step = ['MAIL FROM:<a@shop.example>', /^250/];
const RSET: Step = ['RSET', /^250/];
const utf8 = (text: string): string => Buffer.from(text).toString('latin1');

describe('a login', () => {
  const offersAuth = (is: boolean): Step => ['EHLO client.example', is ? /^250-AUTH PLAIN LOGIN\r/m : /^(?!.*AUTH)/s];

  test('is offered once there is TLS, and only where mail is handed in', async () => {
    await smtpDialogue({ port, tls: false }, [
      offersAuth(false),
      [`AUTH PLAIN ${token()}`, /^538/],
      ['AUTH LOGIN', /^538/],
      ['AUTH', /^538/],
      ['MAIL FROM:<a@shop.example>', /^530/],
      offersAuth(false),
    ]);
    await smtpDialogue({ port, tls: true }, [offersAuth(true)]);
    await smtpDialogue({ port: mxPort, tls: true }, [offersAuth(false), [`AUTH PLAIN ${token()}`, /^50\d/]]);
    const socket = connectTls({ port: tlsPort, rejectUnauthorized: false });
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
    await retryCheck(async () => expect(text).toMatch(/^220/));
    socket.write('EHLO client.example\r\n');
    await retryCheck(async () => expect(text).toMatch(/^250[ -]AUTH PLAIN LOGIN\r/m));
    socket.destroy();
  });

  test('is for the user whose password it is', async () => {
    const other = await bench.relayZone('other', { id: zone.email_domain_ids[0] });
    const refused = ['root', other.smtp_username, 'a@shop.example', zone.smtp_username.toUpperCase()];
    await smtpDialogue({ port, tls: true }, [
      HELLO,
      ...refused.slice(0, 2).map((name): Step => [`AUTH PLAIN ${token(name)}`, /^535 5\.7\.8/]),
      ['AUTH PLAIN', /^334/],
      [token(refused[2]), /^535 5\.7\.8/],
      [`AUTH PLAIN ${token(refused[3])}`, /^535 5\.7\.8/],
      [`AUTH PLAIN ${token(zone.smtp_username)}`, /^235/],
    ]);
  });

  test('is of base64, of a method that is offered, and comes once', async () => {
    const [user, password] = [encoded(zone.smtp_username), encoded(zone.smtp_password)];
    const wrong = [`${token()}*`, `${token().slice(0, 8)} ${token().slice(8)}`, `${token()}====`, '=', 'AGE'];
    await smtpDialogue({ port, tls: true }, [
      HELLO,
      ...wrong.slice(0, 3).map((text): Step => [`AUTH PLAIN ${text}`, /^501/]),
      ['AUTH CRAM-MD5', /^504/],
    ]);
    await smtpDialogue({ port, tls: true }, [
      HELLO,
      ...wrong.slice(3).map((text): Step => [`AUTH PLAIN ${text}`, /^501/]),
      ['AUTH LOGIN', /^334/],
      ['!', /^501/],
      // The exchange has ended: the next line is a command again.
      ['NOOP', /^250/],
    ]);
    await smtpDialogue({ port, tls: true }, [
      HELLO,
      ['AUTH LOGIN', /^334/],
      ['*', /^501/],
      [`AUTH LOGIN ${user}`, /^334/],
      [password, /^235/],
      [`AUTH PLAIN ${token()}`, /^503/],
      MAIL,
      [`AUTH PLAIN ${token()}`, /^503/],
      ['RCPT TO:<x@receiver.example>', /^250/],
    ]);
  });
});

describe('parameters', () => {
  const NOT_OFFERED = [
    ...['REQUIRETLS', 'RET=HDRS', 'RET=FULL', 'RET', 'ENVID=QQ314159', 'HOLDFOR=60', 'HOLDUNTIL=2030-01-01T00:00:00Z'],
    ...['BY=120;R', 'MT-PRIORITY=3', 'MTRK=abc', 'SUBMITTER=a@shop.example', 'TRANSID=<1@x>', 'CONPERM', 'SOLICIT=x:y'],
    ...['BODY=BINARYMIME', 'BODY=9BIT', 'BODY', 'SMTPUTF8=1', 'X-UNKNOWN', 'X-UNKNOWN=1', 'NOTIFY=NEVER', 'PROTO=1'],
    'SIZE=1 RET=HDRS',
  ];
  const MALFORMED = [
    '__proto__=1',
    'SIZE=abc',
    'SIZE=-1',
    'SIZE=1 SIZE=2',
    '=1',
    'SIZE==1',
    'ENVID=a=b',
    'x@y',
    '<>',
    'BODY=7BIT BODY=7BIT',
  ];
  const HONOURED = [
    '',
    'SIZE=100',
    'SIZE=0',
    'BODY=7BIT',
    'BODY=8BITMIME',
    'body=8bitmime',
    'SMTPUTF8',
    'SIZE=1  SMTPUTF8',
  ];
  const refused = (texts: readonly string[], answer: RegExp): Step[] =>
    texts.map((text): Step => [`MAIL FROM:<a@shop.example> ${text}`, answer]);

  test('of MAIL are honoured, or the command is refused', async () => {
    const own: Step[] = [
      ...refused(
        NOT_OFFERED.filter((text) => !text.startsWith('__')),
        /^555 5\.5\.4/,
      ),
    ];
    own.push(...refused(['__proto__=1', ...MALFORMED], /^501/), ...refused(['SIZE=2000000'], /^552/));
    own.push(['MAIL FROM:<a@shop.example>RET=HDRS', /^501/], ['RCPT TO:<x@receiver.example>', /^503/]);
    for (const text of [...HONOURED, 'AUTH=<>', 'AUTH=a+2Bb@shop.example', 'AUTH=other@bank.example'])
      own.push([`MAIL FROM:<a@shop.example> ${text}`, /^250/], RSET);
    own.push(...refused(['AUTH', 'AUTH=a+bb'], /^555/));
    await session(...own);
  });

  test('of MAIL are the same for bounces, but for those of a login', async () => {
    await bounces(...refused([...NOT_OFFERED, 'AUTH=<>'], /^555 5\.5\.4/), ...refused(MALFORMED, /^501/));
    for (const text of HONOURED) await bounces([`MAIL FROM:<> ${text}`, /^250/]);
  });

  test('of RCPT are refused: nobody is told what becomes of a message', async () => {
    const texts = ['NOTIFY=NEVER', 'NOTIFY=SUCCESS,FAILURE', 'NOTIFY', 'ORCPT=rfc822;x@receiver.example', 'RRVS=2030'];
    const all = [...texts, 'SIZE=1', 'BODY=7BIT', 'SMTPUTF8', 'X-UNKNOWN=1'];
    const of = (address: string): Step[] => all.map((text): Step => [`RCPT TO:<${address}> ${text}`, /^555 5\.5\.4/]);
    await session(MAIL, ...of('x@receiver.example'), ['DATA', /^503/]);
    await bounces(['MAIL FROM:<>', /^250/], ...of('abuse@smtp.example.net'), ['DATA', /^503/]);
  });

  test('of commands that have none are refused', async () => {
    await session(MAIL, ['RCPT TO:<x@receiver.example>', /^250/], ['DATA now', /^501/], ['RSET now', /^501/]);
    await session(['QUIT now', /^501/], ['STARTTLS now', /^50[13]/], ['WIZ x', /^50\d/], ['XFORWARD NAME=x', /^50\d/]);
  });
});

test.each([
  ['a NUL', 'NOOP \0'],
  ['a NUL in an address', 'MAIL FROM:<a\0@shop.example>'],
  ['a bare CR', 'NOOP\rNOOP'],
  ['an escape', 'NOOP \x1b[2J'],
  ['a delete', 'MAIL FROM:<a\x7f@shop.example>'],
])('%s in a command ends the session', async (_name, line) => {
  await session([line, /^500 5\.5\.2/], ['NOOP', /^closed/]);
  await bounces([line, /^500 5\.5\.2/], ['NOOP', /^closed/]);
});

describe('letters beyond ASCII', () => {
  test('in an address are announced by SMTPUTF8', async () => {
    const [jo, ue] = [utf8('jürgen@receiver.example'), utf8('x@bücher.example')];
    await session(MAIL, [`RCPT TO:<${jo}>`, /^553 5\.6\.7/], [`RCPT TO:<${ue}>`, /^553 5\.6\.7/]);
    await session([`MAIL FROM:<${utf8('jürgen@shop.example')}>`, /^553 5\.6\.7/]);
    await session(
      // A refused command announces nothing for the next one.
      ['MAIL FROM:<a@elsewhere.example> SMTPUTF8', /^550/],
      MAIL,
      [`RCPT TO:<${jo}>`, /^553 5\.6\.7/],
      RSET,
      ['MAIL FROM:<a@shop.example> SMTPUTF8', /^250/],
      [`RCPT TO:<${jo}>`, /^250/],
      [`RCPT TO:<${ue}>`, /^250/],
    );
  });

  test('that are no UTF-8 are refused, and never sent back', async () => {
    await session(['MAIL FROM:<j\xfcrgen@shop.example> SMTPUTF8', /^500 5\.5\.2 [ -~]+\r\n$/]);
    await session([`MAIL FROM:<a@${utf8('bücher')}.example> SMTPUTF8`, /^550 5\.7\.1 [ -~]+\r\n$/]);
  });
});

describe('the server for bounces', () => {
  const taken = (address: string, answer: RegExp): Step => [`RCPT TO:<${address}>`, answer];

  test('takes complaints at its own name only, and a postmaster without one', async () => {
    await bounces(
      ['MAIL FROM:<x@[192.0.2.1]>', /^250/],
      ...['abuse', 'fbl', 'postmaster', 'ABUSE'].map((local) => taken(`${local}@smtp.example.net`, /^250/)),
      taken('abuse@SMTP.example.NET', /^250/),
      taken('Postmaster', /^250/),
      ...['shop.example', 'elsewhere.example', 'bounce.shop.example', 'x.smtp.example.net', '[127.0.0.1]'].flatMap(
        (name) => [taken(`abuse@${name}`, /^550 5\.7\.1/), taken(`postmaster@${name}`, /^550 5\.7\.1/)],
      ),
      taken('"abuse@smtp.example.net"@elsewhere.example', /^550 5\.7\.1/),
      taken('abuse', /^501/),
    );
  });

  test('takes bounces below the domain that the message came from', async () => {
    await session(...[MAIL, ['RCPT TO:<late@receiver.example>', /^250/] as const, ['DATA', /^354/] as const], [
      'From: a@shop.example\r\n\r\nx\r\n.',
      /^250/,
    ]);
    const { from } = await receiver.mailTo('late@receiver.example');
    const local = from.slice(0, from.indexOf('@'));
    const unknown = { message_id: `eml_${'0'.repeat(26)}`, number: 0 };
    await bounces(
      ['MAIL FROM:<>', /^250/],
      taken(from, /^250/),
      taken(`${local}@mail.shop.example`, /^250/),
      taken(`${local}@smtp.example.net`, /^550 5\.7\.1/),
      taken(`${local}@notshop.example`, /^550 5\.7\.1/),
      taken(`${returnPathLocal(service.platform.secrets, unknown)}@bounce.shop.example`, /^550 5\.7\.1/),
    );
  });
});

describe('a quoted local part', () => {
  test('is an address, and one with those that are spelled otherwise', async () => {
    const path = `/v2/email_relay_zones/${zone.id}/suppressions`;
    const gone = { email: '"gone for good"@receiver.example' };
    expect((await service.call('POST', path, { body: gone })).body).toMatchObject(gone);
    await session(
      ['MAIL FROM:<"john doe"@shop.example> SIZE=100', /^250/],
      ...['"john"@Receiver.example', 'john@receiver.example', '"jo\\hn"@receiver.example'].map((address): Step => [
        `RCPT TO:<${address}>`,
        /^250/,
      ]),
      ['RCPT TO:<"john..doe"@receiver.example>', /^250/],
      ['RCPT TO:<"Gone for\\ good"@receiver.example>', /^250/],
      ['RCPT TO:<"john>doe"@receiver.example>', /^553/],
      ['RCPT TO:<"john@elsewhere.example"@receiver.example>', /^553/],
      ['RCPT TO:<john doe@receiver.example>', /^501/],
      ['RCPT TO:<"john"doe@receiver.example>', /^501/],
      ['RCPT TO:<"john doe@receiver.example>', /^501/],
      ['RCPT TO:<john..doe@receiver.example>', /^501/],
      [`RCPT TO:<"${'x y'.repeat(30)}"@receiver.example>`, /^553/],
      ['DATA', /^354/],
      ['From: "john doe"@shop.example\r\nSubject: quoted\r\n\r\nx\r\n.', /^250/],
    );
    await receiver.mailTo('"john..doe"@receiver.example');
    const rows = await service.sql(`select d.recipient, d.status, m.header_from, m.sender from email_deliveries d
      join email_messages m on m.id = d.message_id where m.subject = 'quoted' order by d.number`);
    const common = { header_from: '"john doe"@shop.example', sender: '"john doe"@shop.example' };
    expect(rows).toMatchObject([
      { ...common, recipient: 'john@receiver.example' },
      { ...common, recipient: '"john..doe"@receiver.example' },
      { ...common, recipient: '"Gone for good"@receiver.example', status: 'suppressed' },
    ]);
  });
});

test('a postmaster without a domain is the one of this host', async () => {
  await session(...[MAIL, ['RCPT TO:<Postmaster>', /^250/] as const, ['DATA', /^354/] as const], [
    'From: a@shop.example\r\n\r\nx\r\n.',
    /^250/,
  ]);
  expect((await receiver.mailTo('Postmaster@smtp.example.net')).raw).toContain('From: a@shop.example');
});
