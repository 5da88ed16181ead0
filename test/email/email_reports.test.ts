// What comes back to the return path of a message, in the forms of several mail systems, and what it says of a
// recipient.
import { createTransport } from 'nodemailer';
import { mailReport, openMailBench, type MailBench } from '../support/email/mail';
import { startMailReceiver, type MailReceiver, type ReceivedMail } from '../support/email/mail_receiver';
import { freePort } from '../support/processes/free_port';
import type { Answer, TestService } from '../support/service';
import { retryCheck } from '../support/wait_for';

type Body = Answer['body'];

let bench: MailBench;
let service: TestService;
let receiver: MailReceiver;
let port: number;
let mxPort: number;
let zone: Body;

beforeAll(async () => {
  receiver = await startMailReceiver();
  [port, mxPort] = [await freePort(), await freePort()];
  bench = await openMailBench({
    worker: true,
    settings: { SMTP_PORTS: String(port), MX_PORT: String(mxPort), SMTP_URL: `smtp://127.0.0.1:${receiver.port}` },
  });
  ({ service } = bench);
  zone = await bench.relayZone('reports', await bench.verified('shop.example'));
});

afterAll(async () => {
  await bench.close();
  await receiver.close();
});

type Outcome = 'delivered' | 'bounced' | 'suppressed' | 'complained';

interface Case {
  says: string;
  outcome: Outcome;
  /** @param to the recipient of the message that comes back */
  report(to: string, mail: ReceivedMail): string;
}

const group = (to: string, action: string, status: string, diagnostic = ''): string =>
  [
    ...[`Final-Recipient: rfc822; ${to}`, `Action: ${action}`, `Status: ${status}`],
    ...(diagnostic ? [`Diagnostic-Code: smtp; ${diagnostic}`] : []),
  ].join('\r\n');

const dsn = (...groups: string[]): string =>
  mailReport('delivery-status', ['Reporting-MTA: dns; x', ...groups].join('\r\n\r\n'), 'Subject: Hello\r\n\r\nHi.');

/** The part of the report in another encoding. */
function encoded(report: string, type: string, encoding: 'base64' | 'quoted-printable', charset = ''): string {
  const start = report.indexOf(`Content-Type: message/${type}\r\n\r\n`);
  const body = start + `Content-Type: message/${type}\r\n\r\n`.length;
  const end = report.indexOf('\r\n--cut', body);
  const text = report.slice(body, end);
  const bytes = Buffer.from(text, charset === 'utf-16le' ? 'utf16le' : 'utf8');
  const content =
    encoding === 'base64'
      ? (bytes.toString('base64').match(/.{1,76}/g) ?? []).join('\r\n')
      : text
          .replaceAll('=', '=3D')
          .replace(/(.{60})(?=.)/g, '$1=\r\n')
          .replaceAll(':', '=3A');
  const kind = `Content-Type: message/${type}${charset && `; charset=${charset}`}`;
  const head = `${kind}\r\nContent-Transfer-Encoding: ${encoding}`;
  return `${report.slice(0, start)}${head}\r\n\r\n${content}${report.slice(end)}`;
}

const text = (from: string, body: string, more: readonly string[] = []): string =>
  [`From: ${from}`, 'Subject: Returned mail', ...more, 'Content-Type: text/plain', '', ...body.split('\n'), ''].join(
    '\r\n',
  );

const unknown = '550 5.1.1 <x>: Recipient address rejected: User unknown';

const cases: Case[] = [
  {
    says: 'another recipient has failed, and ours was relayed',
    outcome: 'delivered',
    report: (to) => dsn(group(to, 'relayed', '2.0.0'), group('z@elsewhere.example', 'failed', '5.1.1', unknown)),
  },
  ...['delivered', 'expanded', 'delayed'].map((action): Case => ({
    says: `ours was ${action}`,
    outcome: 'delivered',
    report: (to) => dsn(group('z@elsewhere.example', 'failed', '5.1.1', unknown), group(to, action, '5.1.1')),
  })),
  {
    says: 'ours has failed, and another was delivered',
    outcome: 'suppressed',
    report: (to) => dsn(group('z@elsewhere.example', 'delivered', '2.0.0'), group(to, 'failed', '5.1.1', unknown)),
  },
  {
    says: 'failed, in base64',
    outcome: 'suppressed',
    report: (to) => encoded(dsn(group(to, 'failed', '5.1.1', unknown)), 'delivery-status', 'base64'),
  },
  {
    says: 'failed, in base64 and UTF-16',
    outcome: 'suppressed',
    report: (to) => encoded(dsn(group(to, 'failed', '5.1.1', unknown)), 'delivery-status', 'base64', 'utf-16le'),
  },
  {
    says: 'failed, quoted-printable',
    outcome: 'suppressed',
    report: (to) => encoded(dsn(group(to, 'failed', '5.1.1', unknown)), 'delivery-status', 'quoted-printable'),
  },
  {
    says: 'failed as spam, with the general status 5.1.1 of the reporter',
    outcome: 'bounced',
    report: (to) => dsn(group(to, 'failed', '5.1.1', '550 Message rejected as spam')),
  },
  {
    says: 'the time is over, and the mailbox was full',
    outcome: 'bounced',
    report: (to) => dsn(group(to, 'failed', '4.4.7', '452 4.2.2 Mailbox full')),
  },
  {
    says: 'refused after DATA, as Postfix writes it',
    outcome: 'bounced',
    report: (to) =>
      dsn(group(to, 'failed', '5.1.1', '550 5.1.1 User unknown')).replace(
        'Sorry.',
        `<${to}>: host mx.example[192.0.2.1] said: 550 5.1.1 User unknown\r\n    (in reply to end of DATA command)`,
      ),
  },
  {
    says: 'the recipient forwards to a mailbox that does not exist',
    outcome: 'bounced',
    report: () => dsn(group('z@elsewhere.example', 'failed', '5.1.1', unknown)),
  },
  {
    says: 'Microsoft 365, in German',
    outcome: 'suppressed',
    report: (to) =>
      dsn(
        group(
          to,
          'failed',
          '5.1.10',
          '550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup',
        ),
      ).replace('Sorry.', 'Fehler bei der Nachrichtenzustellung an folgende Empf=E4nger.'),
  },
  {
    says: 'qmail',
    outcome: 'suppressed',
    report: (to) =>
      text(
        'MAILER-DAEMON@mx.example',
        `Hi. This is the qmail-send program at mx.example.\nI'm afraid I wasn't able to deliver your message to the ` +
          `following addresses.\nThis is a permanent error; I've given up. Sorry it didn't work out.\n\n<${to}>:\n` +
          'Sorry, no mailbox here by that name. (#5.1.1)\n\n--- Below this line is a copy of the message.\n\nHi.',
      ),
  },
  {
    says: 'qmail, about another recipient',
    outcome: 'bounced',
    report: () =>
      text(
        'MAILER-DAEMON@mx.example',
        'Hi. This is the qmail-send program at mx.example.\nThis is a permanent error.\n\n<z@elsewhere.example>:\n' +
          'Sorry, no mailbox here by that name. (#5.1.1)\n\n--- Below this line is a copy of the message.\n',
      ),
  },
  {
    says: 'Exim',
    outcome: 'suppressed',
    report: (to) =>
      text(
        'Mail Delivery System <Mailer-Daemon@mx.example>',
        'A message that you sent could not be delivered to one or more of its recipients. This is a permanent error. ' +
          `The following address(es) failed:\n\n  ${to}\n    Unrouteable address\n\n` +
          '------ This is a copy of the message, including all the headers. ------\n\nHi.',
        [`X-Failed-Recipients: ${to}`],
      ),
  },
  {
    says: 'Exim, after DATA',
    outcome: 'bounced',
    report: (to) =>
      text(
        'Mail Delivery System <Mailer-Daemon@mx.example>',
        `The following address(es) failed:\n\n  ${to}\n    host mx.example [192.0.2.1]\n    SMTP error from ` +
          'remote mail server after end of data:\n    550 User unknown\n',
        [`X-Failed-Recipients: ${to}`],
      ),
  },
  {
    says: 'Exim, a delay',
    outcome: 'delivered',
    report: (to) =>
      text(
        'Mail Delivery System <Mailer-Daemon@mx.example>',
        'This message was created automatically. A message has not yet been delivered to one or more recipients.\n\n' +
          `  ${to}\n    Delay reason: 450 4.1.1 User unknown\n`,
      ),
  },
  {
    says: 'a notice that quotes the answer of a server',
    outcome: 'suppressed',
    report: (to) =>
      text(
        'MAILER-DAEMON@yahoo.example',
        `Sorry, we were unable to deliver your message.\n\n<${to}>:\n550: User unknown\n`,
      ),
  },
  {
    says: 'a vacation responder that quotes an answer',
    outcome: 'delivered',
    report: (to) =>
      text(to, 'I am away. My old address answers 550 5.1.1 User unknown.', ['Auto-Submitted: auto-replied']),
  },
  {
    says: 'a complaint in base64',
    outcome: 'complained',
    report: (_, mail) =>
      encoded(
        mailReport('feedback-report', 'Feedback-Type: abuse\r\nVersion: 1\r\nUser-Agent: x/1', mail.raw),
        'feedback-report',
        'base64',
      ),
  },
  {
    says: 'the opposite of a complaint',
    outcome: 'delivered',
    report: (_, mail) => mailReport('feedback-report', 'Feedback-Type: not-spam\r\nVersion: 1', mail.raw),
  },
];

const recipientOf = (index: number): string => `case-${index}@receiver.example`;

async function outcomes(): Promise<Outcome[]> {
  const rows = await service.sql(
    `select d.recipient, d.status, d.complained_at is not null as complained, s.id is not null as suppressed
      from email_deliveries d left join email_suppressions s on s.email = d.recipient
      where d.email_relay_zone_id = $1 and d.ended_at is not null`,
    [zone.id],
  );
  const byRecipient = new Map(rows.map((row: Body) => [row.recipient, row]));
  return cases.map((_, index) => {
    const row = byRecipient.get(recipientOf(index)) as Body;
    if (row?.complained) return 'complained';
    return row?.suppressed ? 'suppressed' : row?.status;
  });
}

test('a report counts for the recipient that it names, and for what it says', async () => {
  const client = createTransport({
    ...{ host: '127.0.0.1', port, tls: { rejectUnauthorized: false } },
    auth: { user: zone.smtp_username, pass: zone.smtp_password },
  });
  const to = cases.map((_, index) => recipientOf(index));
  await client.sendMail({ from: 'hello@shop.example', to, subject: 'Hello', text: 'Hi.\n' });
  client.close();
  await retryCheck(async () => expect(await outcomes()).toEqual(cases.map(() => 'delivered')));
  const back = createTransport({ host: '127.0.0.1', port: mxPort, tls: { rejectUnauthorized: false } });
  for (const [index, each] of cases.entries()) {
    const mail = await receiver.mailTo(recipientOf(index));
    const raw = each.report(recipientOf(index), mail);
    const address = each.outcome === 'complained' ? 'abuse@smtp.example.net' : mail.from;
    await back.sendMail({ envelope: { from: '', to: [address] }, raw });
  }
  back.close();
  const found = await outcomes();
  expect(cases.map(({ says }, index) => [says, found[index]])).toEqual(
    cases.map(({ says, outcome }) => [says, outcome]),
  );
});

test('an automatic answer goes out without a sender, and everything else with a return path', async () => {
  const client = createTransport({
    ...{ host: '127.0.0.1', port, tls: { rejectUnauthorized: false } },
    auth: { user: zone.smtp_username, pass: zone.smtp_password },
  });
  const sendNull = (to: string, head: string[], from = 'hello@shop.example'): Promise<unknown> =>
    client.sendMail({
      envelope: { from: '', to: [to] },
      raw: [`From: ${from}`, `To: ${to}`, 'Subject: Re: Hello', ...head, '', 'Away.', ''].join('\r\n'),
    });
  const receipt = 'Content-Type: multipart/report; report-type=disposition-notification; boundary=cut';
  await sendNull('vacation@receiver.example', ['Auto-Submitted: auto-replied']);
  await sendNull('receipt@receiver.example', [receipt]);
  await sendNull('newsletter@receiver.example', []);
  await expect(sendNull('x@receiver.example', [], 'hello@elsewhere.example')).rejects.toMatchObject({
    responseCode: 550,
  });
  client.close();
  const vacation = await receiver.mailTo('vacation@receiver.example');
  expect([vacation.from, (await receiver.mailTo('receipt@receiver.example')).from]).toEqual(['', '']);
  expect((await receiver.judge(vacation, bench.dns.address)).dmarc).toBe('pass');
  expect((await receiver.mailTo('newsletter@receiver.example')).from).toMatch(/^b-.*@bounce\.shop\.example$/);
});
