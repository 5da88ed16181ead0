// No open relay: who may send what to whom, and the answer of SMTP to everybody else.
import { createTransport, type Transporter } from 'nodemailer';
import { freePort } from '../support/processes/free_port';
import { openMailBench, type MailBench } from '../support/email/mail';
import { startMailReceiver, type MailReceiver } from '../support/email/mail_receiver';
import type { Answer, TestService } from '../support/service';
import { smtpDialogue } from '../support/email/smtp_dialogue';
import { withConfig } from '../support/config';

type Body = Answer['body'];
type Step = [string, RegExp];

let bench: MailBench;
let service: TestService;
let receiver: MailReceiver;
let port: number;
let tlsPort: number;
let mxPort: number;
let domain: Body;
let zone: Body;

beforeAll(async () => {
  receiver = await startMailReceiver();
  [port, tlsPort, mxPort] = [await freePort(), await freePort(), await freePort()];
  bench = await openMailBench({
    worker: true,
    settings: {
      SMTP_PORTS: `${port},${tlsPort}/tls`,
      MX_PORT: String(mxPort),
      SMTP_URL: `smtp://127.0.0.1:${receiver.port}`,
      ...withConfig({ mailSizeMb: 1 }),
    },
  });
  ({ service } = bench);
  domain = await bench.verified('shop.example');
  zone = await newZone('first');
});

afterAll(async () => {
  await bench.close();
  await receiver.close();
});

const newZone = (name: string, body: object = {}): Promise<Body> => bench.relayZone(name, domain, body);

const HELLO: Step = ['EHLO client.example', /^250/];
const plain = ({ smtp_username: user, smtp_password: password }: Body): string =>
  Buffer.from(`\0${user}\0${password}`).toString('base64');
const login = (of: Body, answer = /^235/): Step => [`AUTH PLAIN ${plain(of)}`, answer];

describe('before anybody has logged in', () => {
  test.each<[string, boolean, Step[]]>([
    ['no login without TLS', false, [['AUTH PLAIN AGEAYg==', /^538|^530/]]],
    ['no login by LOGIN without TLS', false, [['AUTH LOGIN', /^538|^530/]]],
    ['no mail without TLS', false, [['MAIL FROM:<a@shop.example>', /^530/]]],
    ['no mail without a login', true, [['MAIL FROM:<a@shop.example>', /^530/]]],
    ['no recipient without a login', true, [['RCPT TO:<a@shop.example>', /^530/]]],
    ['no data without a login', true, [['DATA', /^530/]]],
    ['no login of nobody', true, [['AUTH PLAIN AGEAYg==', /^535 5\.7\.8/]]],
    ['no login by methods that are not offered', true, [['AUTH CRAM-MD5', /^504/]]],
    ['no login with what is no base64', true, [['AUTH PLAIN !!!!', /^5\d\d/]]],
    ['no names of users', true, [['VRFY root', /^252|^502/]]],
    ['no lists', true, [['EXPN all', /^500|^502/]]],
    ['nobody who says that another server logged in', true, [['XCLIENT LOGIN=root', /^550|^500/]]],
    ['a bare line feed ends the session', true, [['NOOP\nNOOP', /^500 5\.5\.2/]]],
  ])('%s', async (_name, tls, steps) => {
    await smtpDialogue({ port, tls }, [HELLO, ...steps]);
  });

  test('a wrong password of a zone, and the password of another one', async () => {
    const other = await newZone('other');
    const swapped = { smtp_username: zone.smtp_username, smtp_password: other.smtp_password };
    await smtpDialogue({ port, tls: true }, [HELLO, login(swapped, /^535 5\.7\.8/)]);
    const gone = await newZone('gone');
    await service.call('DELETE', `/v2/email_relay_zones/${gone.id}`);
    await smtpDialogue({ port, tls: true }, [HELLO, login(gone, /^535 5\.7\.8/)]);
  });
});

describe('whoever has logged in', () => {
  const session = (steps: Step[], of = zone): Promise<void> =>
    smtpDialogue({ port, tls: true }, [HELLO, login(of), ...steps]);

  test('sends from the verified domains of the zone only', async () => {
    await bench.created('pending.example');
    await bench.verified('unlisted.example');
    const own = ['a@shop.example', 'A@SHOP.EXAMPLE'];
    const strange = [
      'elsewhere.example',
      'sub.shop.example',
      'shop.example.net',
      'pending.example',
      'unlisted.example',
    ];
    await session([
      ...strange.map((name): Step => [`MAIL FROM:<a@${name}>`, /^550 5\.7\.1/]),
      ['MAIL FROM:<>', /^250/],
      ['RSET', /^250/],
      ['MAIL FROM:<shop.example>', /^5(50|53|01)/],
      ['MAIL FROM:<a@elsewhere.example@shop.example>', /^250|^501|^55\d/],
      ['RSET', /^250/],
      ...own.flatMap((address): Step[] => [
        [`MAIL FROM:<${address}>`, /^250/],
        ['RSET', /^250/],
      ]),
    ]);
  });

  test('sends to mailboxes at host names only', async () => {
    const refused = [
      ...['x%elsewhere.example@shop.example', 'elsewhere.example!x@shop.example'],
      ...['x@elsewhere.example@shop.example', '"x@elsewhere.example"@shop.example', 'x@[127.0.0.1]', 'x@[IPv6:::1]'],
      ...[
        'x@localhost',
        'x@127.0.0.1',
        'x@.example',
        'x@-.example',
        'x',
        '"x%y"@shop.example',
        `${'x'.repeat(65)}@y.example`,
      ],
    ];
    await session([
      ['MAIL FROM:<a@shop.example>', /^250/],
      ...refused.map((address): Step => [`RCPT TO:<${address}>`, /^(501|553)/]),
      ['DATA', /^503/],
      ['RCPT TO:<x@elsewhere.example>', /^250/],
      ['RCPT TO:<x@shop.example>', /^250/],
      // The route is ignored, as RFC 5321 appendix C has it; whoever has logged in may write to the mailbox anyway.
      ['RCPT TO:<@shop.example:x@elsewhere.example>', /^250/],
      ['RCPT TO:<x.y+z@sub.elsewhere.example>', /^250/],
    ]);
  });

  const from = (header: string): string => `${header}\r\n\r\nx\r\n.`;
  test.each<[string, string, RegExp]>([
    ['another domain', from('From: a@bank.example'), /^550 5\.7\.1/],
    ['a subdomain', from('From: a@sub.shop.example'), /^550 5\.7\.1/],
    ['two mailboxes, one of them elsewhere', from('From: a@shop.example, b@bank.example'), /^550 5\.7\.1/],
    ['a name that looks like an address', from('From: "a@shop.example" <b@bank.example>'), /^550 5\.7\.1/],
    ['a comment that looks like an address', from('From: b@bank.example (a@shop.example)'), /^550 5\.7\.1/],
    ['a group', from('From: shop.example: b@bank.example;'), /^550 5\.7\.1/],
    ['two fields', from('From: a@shop.example\r\nFrom: b@bank.example'), /^550 5\.6\.0/],
    [
      'two fields, one with a space before its colon',
      from('From: a@shop.example\r\nFrom : b@bank.example'),
      /^550 5\.6\.0/,
    ],
    ['no field', from('Subject: none'), /^550 5\.6\.0/],
    ['an empty field', from('From:'), /^550 5\.6\.0/],
    ['brackets that do not end', from('From: <a@shop.example'), /^550 5\.6\.0/],
    ['a Sender elsewhere', from('From: a@shop.example\r\nSender: b@bank.example'), /^550 5\.7\.1/],
    ['two Senders', from('From: a@shop.example\r\nSender: a@shop.example\r\nSender: b@bank.example'), /^550 5\.6\.0/],
    ['a line that is no field', from('From: a@shop.example\r\nnot a field'), /^550 5\.6\.0/],
    ['a bare LF', from('From: a@shop.example\r\n\r\nbare\nline'), /^550 5\.6\.0/],
    ['a bare CR', from('From: a@shop.example\r\n\r\nbare\rline'), /^550 5\.6\.0/],
    ['too many bytes', from(`From: a@shop.example\r\n\r\n${'x'.repeat(98)}\r\n`.padEnd(1_200_000, 'y')), /^552/],
    ['too large a header', from(`From: a@shop.example\r\nX: ${' y'.repeat(140_000)}`), /^552 5\.3\.4/],
  ])('does not hand in %s', async (_name, text, answer) => {
    const steps: Step[] = [
      ['MAIL FROM:<a@shop.example>', /^250/],
      ['RCPT TO:<x@elsewhere.example>', /^250/],
      ['DATA', /^354/],
    ];
    // The session goes on behind what was refused.
    await session([...steps, [text, answer], ...steps, [from('From: Shop <a@shop.example>'), /^250 2\.0\.0/]]);
  });

  test('says at once that a message is too large, where its size is declared', async () => {
    await session([['MAIL FROM:<a@shop.example> SIZE=2000000', /^552/]]);
  });
});

test('the server for bounces takes mail for return paths that were signed, and complaints', async () => {
  await smtpDialogue({ port: mxPort, tls: false }, [
    HELLO,
    ['AUTH PLAIN AGEAYg==', /^50\d/],
    ['MAIL FROM:<a@elsewhere.example>', /^250/],
    ['RCPT TO:<victim@elsewhere.example>', /^550 5\.7\.1/],
    ['RCPT TO:<a@shop.example>', /^550 5\.7\.1/],
    ['RCPT TO:<victim%elsewhere.example@smtp.example.net>', /^550 5\.7\.1/],
    ['RCPT TO:<b-01h455vb4pex5vsknk084sn02q-0-0123456789abcdef@bounce.shop.example>', /^550 5\.7\.1/],
    ['RCPT TO:<abuse@smtp.example.net>', /^250/],
  ]);
});

const transport = ({ smtp_username: user, smtp_password: pass }: Body): Transporter =>
  createTransport({ host: '127.0.0.1', port, auth: { user, pass }, tls: { rejectUnauthorized: false } });

async function send(mail: object, from: Body = zone): Promise<void> {
  const client = transport(from);
  await client.sendMail({ from: 'Shop <hello@shop.example>', subject: 'Hello', text: 'Hi.\n', ...mail });
  client.close();
}

test('a zone sends from its sources, within its day, and while it is enabled', async () => {
  const limited = await newZone('limited', { daily_limit: 2, allowed_sources: ['127.0.0.0/8'] });
  await send({ to: ['a@receiver.example', 'b@receiver.example'] }, limited);
  await expect(send({ to: 'c@receiver.example' }, limited)).rejects.toMatchObject({ responseCode: 452 });
  await service.call('PATCH', `/v2/email_relay_zones/${limited.id}`, { body: { daily_limit: null, enabled: false } });
  await expect(send({ to: 'c@receiver.example' }, limited)).rejects.toMatchObject({ responseCode: 550 });
  await service.call('PATCH', `/v2/email_relay_zones/${limited.id}`, {
    body: { enabled: true, allowed_sources: ['203.0.113.0/24'] },
  });
  await expect(send({ to: 'c@receiver.example' }, limited)).rejects.toMatchObject({ responseCode: 550 });
});

test('a rotated password ends the session that has logged in with the old one', async () => {
  const rotating = await newZone('rotating');
  const client = createTransport({
    ...{ host: '127.0.0.1', port, pool: true, maxConnections: 1, tls: { rejectUnauthorized: false } },
    auth: { user: rotating.smtp_username, pass: rotating.smtp_password },
  });
  const mail = { from: 'a@shop.example', to: 'x@receiver.example', text: 'x' };
  await client.sendMail(mail);
  const rotated = await service.call('POST', `/v2/email_relay_zones/${rotating.id}/credentials/rotate`);
  await expect(client.sendMail(mail)).rejects.toMatchObject({ responseCode: 535 });
  client.close();
  await send({ to: 'x@receiver.example' }, rotated.body);
});
