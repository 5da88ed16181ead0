// Who a message says it is from: of the zone's verified domains, and readable in one way only.
import { buffer } from 'node:stream/consumers';
import { composeMessage } from '../../engines/mail/message/compose';
import { freePort } from '../support/processes/free_port';
import { openMailBench, type MailBench } from '../support/email/mail';
import { smtpDialogue } from '../support/email/smtp_dialogue';

let bench: MailBench;
let port = 0;
let login: string;

beforeAll(async () => {
  port = await freePort();
  bench = await openMailBench({ worker: true, settings: { SMTP_PORTS: String(port), MAIL_MODE: 'sink' } });
  const zone = await bench.relayZone('zone', await bench.verified('shop.example'));
  login = Buffer.from(`\0${zone.smtp_username}\0${zone.smtp_password}`).toString('base64');
});

afterAll(() => bench.close());

const utf8 = (text: string): string => Buffer.from(text).toString('latin1');

const sent = (header: string, answer: RegExp): Promise<void> =>
  smtpDialogue({ port, tls: true }, [
    ['EHLO client.example', /^250/],
    [`AUTH PLAIN ${login}`, /^235/],
    ['MAIL FROM:<a@shop.example>', /^250/],
    ['RCPT TO:<x@receiver.example>', /^250/],
    ['DATA', /^354/],
    [`${header}\r\n\r\nx\r\n.`, answer],
  ]);
const OWN = 'From: a@shop.example\r\n';

test.each([
  ['Resent-From', `${OWN}Resent-From: b@bank.example`, /^550 5\.7\.1/],
  ['Resent-Sender', `${OWN}Resent-Sender: b@bank.example`, /^550 5\.7\.1/],
  ['the second Resent-From', `${OWN}Resent-From: a@shop.example\r\nResent-From: b@bank.example`, /^550 5\.7\.1/],
  ['Resent-From with a space', `${OWN}Resent-From : b@bank.example`, /^550 5\.7\.1/],
  ['Resent-From that is folded', `${OWN}Resent-From:\r\n b@bank.example`, /^550 5\.7\.1/],
  ['an empty Resent-From', `${OWN}Resent-From: `, /^550 5\.6\.0/],
  ['Sender in a group', `${OWN}Sender: x: b@bank.example;`, /^550 5\.7\.1/],
  ['an empty Sender', `${OWN}Sender: `, /^550 5\.6\.0/],
  ['two mailboxes in Sender', `${OWN}Sender: a@shop.example, b@shop.example`, /^550 5\.6\.0/],
  ['a domain of encoded words', 'From: a@=?utf-8?q?shop.example?=', /^550 5\.6\.0/],
  ['an address of encoded words', 'From: =?utf-8?q?a=40shop.example?=', /^550 5\.6\.0/],
  ['an address in place of a name', 'From: b@bank.example <a@shop.example>', /^550 5\.7\.1/],
  ['a comment within an address', 'From: a@bank.example(@shop.example)', /^550 5\.7\.1/],
  ['a comment before the domain', 'From: a@(bank.example)shop.example', /^550 5\.6\.0/],
  ['a source route', 'From: <@bank.example:a@shop.example>', /^550 5\.6\.0/],
  ['a group named like an address', 'From: b@bank.example:a@shop.example;', /^550 5\.6\.0/],
  ['two pairs of brackets', 'From: <a@shop.example> <b@bank.example>', /^550 5\.6\.0/],
  ['text behind the brackets', 'From: <a@shop.example> b@bank.example', /^550 5\.6\.0/],
  ['a domain that only looks alike', `From: a@${utf8('ѕhop.example')}`, /^550 5\.7\.1/],
  ['bytes that are no text in an address', 'From: a@sh\xf6p.example', /^550 5\.6\.0/],
  ['an address literal', 'From: a@[192.0.2.1]', /^550 5\.7\.1/],
  ['a domain with a dot behind it', 'From: a@shop.example.', /^550 5\.6\.0/],
  ['a quoted domain', 'From: a@"shop.example"', /^550 5\.6\.0/],
])('%s is refused', async (_name, header, answer) => sent(header, answer));

test.each([
  ['Resent fields of its own', `${OWN}Resent-From: Jo <jo@shop.example>\r\nResent-Sender: a@shop.example`],
  ['its address as its name', 'From: a@shop.example <a@shop.example>'],
  ['a name with an address in quotes', 'From: "b@bank.example" <a@shop.example>'],
  ['a name of encoded words with an address', 'From: =?utf-8?q?b@bank.example?= <a@shop.example>'],
  ['a group of its own', 'From: Us: a@shop.example, "B, C" <b@shop.example>;'],
  ['comments', 'From: (x) A (y) <a@SHOP.example> (z)'],
  ['a quoted local part', 'From: "john doe"@shop.example'],
  ['brackets in a quoted local part', 'From: Jo <"a>b"@shop.example>'],
])('%s is taken', async (_name, header) => sent(header, /^250/));

test.each([
  ['a NUL in the header', `${OWN}Subject: a\0b`],
  ['an escape in the header', `${OWN}Subject: a\x1b[2Jb`],
  ['a form feed that some take for a line end', `${OWN}X: y\x0cFrom: b@bank.example`],
  ['a vertical tab', `${OWN}X: y\x0bFrom: b@bank.example`],
  ['a NUL in the body', `${OWN}\r\na\0b`],
  ['a NUL as the last byte', `${OWN}\r\na\r\n\0`],
])('%s is refused', async (_name, text) => sent(text, /^550 5\.6\.0/));

test('a quoted local part is one address in mail of the platform', async () => {
  const address = '"b@bank.example x"@receiver.example';
  const raw = await buffer(
    composeMessage({
      ...{ from: 'a@shop.example', recipients: [address], subject: 'x', text: 'x', html: '<p>x</p>' },
      messageId: '<1@x>',
    }),
  );
  expect(/^To: (.*)\r$/m.exec(raw.toString())?.[1]).toBe(`<${address}>`);
});
