// From SMTP submission to a signed message at the receiver, and what comes back.
import { simpleParser } from 'mailparser';
import { createTransport, type Transporter } from 'nodemailer';
import { returnPathLocal } from '../../core/mail/mail_reference';
import { freePort } from '../support/processes/free_port';
import { mailReport as report, openMailBench, type MailBench } from '../support/email/mail';
import { startMailReceiver, type MailReceiver } from '../support/email/mail_receiver';
import type { Answer, TestService } from '../support/service';
import { retryCheck } from '../support/wait_for';

type Body = Answer['body'];

let bench: MailBench;
let service: TestService;
let receiver: MailReceiver;
let port: number;
let mxPort: number;
let domain: Body;
let zone: Body;

beforeAll(async () => {
  receiver = await startMailReceiver();
  [port, mxPort] = [await freePort(), await freePort()];
  bench = await openMailBench({
    worker: true,
    settings: {
      SMTP_PORTS: String(port),
      MX_PORT: String(mxPort),
      MAIL_SPF: 'ip4:192.0.2.1',
      SMTP_URL: `smtp://127.0.0.1:${receiver.port}`,
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

const transport = ({ smtp_username: user, smtp_password: pass }: Body): Transporter =>
  createTransport({ host: '127.0.0.1', port, auth: { user, pass }, tls: { rejectUnauthorized: false } });

async function send(mail: object, from: Body = zone): Promise<void> {
  const client = transport(from);
  await client.sendMail({ from: 'Shop <hello@shop.example>', subject: 'Hello', text: 'Hi.\n', ...mail });
  client.close();
}

const suppressions = async (of: Body = zone): Promise<Body[]> =>
  (await service.call('GET', `/v2/email_relay_zones/${of.id}/suppressions`)).body.data;

async function counted(metric: string, of: Body = zone): Promise<number> {
  const { body } = await service.call('GET', `/v2/email_relay_zones/${of.id}/metrics?metrics=${metric}`);
  return body.series.flatMap(({ points }: Body) => points).reduce((sum: number, { value }: Body) => sum + value, 0);
}

test('a message arrives with SPF, both signatures of DKIM and DMARC in order', async () => {
  await send({ to: 'jo@receiver.example', bcc: 'hidden@receiver.example', html: '<p>Hällo</p>' });
  const mail = await receiver.mailTo('jo@receiver.example');
  expect(await receiver.judge(mail, bench.dns.address)).toEqual({
    spf: 'pass',
    dkim: ['ed25519-sha256 pass', 'rsa-sha256 pass'],
    dmarc: 'pass',
  });
  expect(mail.from).toMatch(/^b-[0-9a-z]{26}-0-[0-9a-f]{16}@bounce\.shop\.example$/);
  expect(mail.secure).toBe(true);
  const hidden = await receiver.mailTo('hidden@receiver.example');
  expect(hidden.raw).not.toContain('hidden@receiver.example');
  await retryCheck(async () => expect([await counted('sent'), await counted('delivered')]).toEqual([2, 2]));
});

test('a From that somebody adds breaks the signatures', async () => {
  await send({ to: 'eve@receiver.example' });
  const mail = await receiver.mailTo('eve@receiver.example');
  const forged = { ...mail, raw: `From: Boss <boss@bank.example>\r\n${mail.raw}` };
  expect((await receiver.judge(forged, bench.dns.address)).dkim).toEqual(['ed25519-sha256 fail', 'rsa-sha256 fail']);
});

test('an address that does not exist is suppressed, and one that refuses is not', async () => {
  await send({ to: ['hard-1@receiver.example', 'policy-1@receiver.example'] });
  await retryCheck(async () => expect(await counted('bounced')).toBe(2));
  expect(await suppressions()).toMatchObject([
    { email: 'hard-1@receiver.example', reason: 'bounce', detail: expect.stringContaining('5.1.1') },
  ]);
  const tried = receiver.tried('hard-1@receiver.example');
  await send({ to: 'Hard-1@receiver.example' });
  await retryCheck(async () => expect(await counted('suppressed')).toBe(1));
  expect(receiver.tried('hard-1@receiver.example')).toBe(tried);
});

test('a server that says later is asked again', async () => {
  await send({ to: 'greylisted-1@receiver.example' });
  await retryCheck(async () => {
    const [row] =
      await service.sql(`select status, attempts, last_response, next_at > now() + interval '1 minute' as waits
      from email_deliveries where recipient = 'greylisted-1@receiver.example'`);
    const last_response = expect.stringContaining('4.7.1');
    expect(row).toEqual({ status: 'queued', attempts: 1, last_response, waits: true });
  });
  await service.sql(`update email_deliveries set next_at = now() where recipient = 'greylisted-1@receiver.example'`);
  expect((await receiver.mailTo('greylisted-1@receiver.example')).raw).toContain('Hello');
});

async function bounce(to: string, raw: string): Promise<void> {
  const client = createTransport({ host: '127.0.0.1', port: mxPort, tls: { rejectUnauthorized: false } });
  await client.sendMail({ envelope: { from: '', to: [to] }, raw });
  client.close();
}

test('a bounce that comes back later, and a complaint, reach the suppression list', async () => {
  await send({ to: ['late@receiver.example', 'angry@receiver.example', 'away@receiver.example'] });
  const late = await receiver.mailTo('late@receiver.example');
  const angry = await receiver.mailTo('angry@receiver.example');
  const away = await receiver.mailTo('away@receiver.example');
  await retryCheck(async () =>
    expect(
      await service.sql(`select 1 from email_deliveries where recipient = 'away@receiver.example'
      and status = 'delivered'`),
    ).toHaveLength(1),
  );
  const failed = 'Final-Recipient: rfc822; late@receiver.example\r\nAction: failed\r\nStatus: 5.1.1\r\n';
  await bounce(late.from, report('delivery-status', `Reporting-MTA: dns; x\r\n\r\n${failed}`, 'Subject: x\r\n\r\nx'));
  const abuse = 'Feedback-Type: abuse\r\nVersion: 1\r\nUser-Agent: x/1';
  await bounce('abuse@smtp.example.net', report('feedback-report', abuse, angry.raw));
  const delayed = failed.replace('failed', 'delayed').replace('late@', 'away@');
  await bounce(away.from, report('delivery-status', `Reporting-MTA: dns; x\r\n\r\n${delayed}`, 'x: y\r\n\r\nx'));
  await bounce(away.from, 'From: away@receiver.example\r\nSubject: On holiday\r\n\r\nBack soon.\r\n');
  await retryCheck(async () => expect(await counted('complained')).toBe(1));
  const listed = (await suppressions()).map(({ email, reason }) => [email, reason]);
  expect(listed).toEqual(
    expect.arrayContaining([
      ['late@receiver.example', 'bounce'],
      ['angry@receiver.example', 'complaint'],
    ]),
  );
  expect(listed.map(([email]) => email)).not.toContain('away@receiver.example');
});

test('a bounce that is faster than the end of its own delivery ends the message', async () => {
  await send({ to: 'full-fast@receiver.example' });
  const states = (): Promise<Body[]> =>
    service.sql(`select d.message_id, d.number, d.status, d.attempts, m.finished_at is not null as finished,
        exists (select 1 from email_bodies b where b.message_id = m.id) as kept
      from email_deliveries d join email_messages m on m.id = d.message_id
      where d.recipient = 'full-fast@receiver.example'`);
  await retryCheck(async () => expect(await states()).toMatchObject([{ status: 'queued', attempts: 1, kept: true }]));
  const [{ message_id, number }] = (await states()) as [{ message_id: string; number: number }];
  const local = returnPathLocal(service.platform.secrets, { message_id, number });
  const failed = 'Final-Recipient: rfc822; x\r\nAction: failed\r\nStatus: 5.1.1\r\n';
  const back = report('delivery-status', `Reporting-MTA: dns; x\r\n\r\n${failed}`, 'x: y\r\n\r\nx');
  await bounce(`${local}@bounce.shop.example`, back);
  expect(await states()).toMatchObject([{ status: 'bounced', finished: true, kept: false }]);
});

test('links and pictures count, and lead nowhere but where they were made for', async () => {
  await service.call('PATCH', `/v2/email_domains/${domain.id}`, {
    body: { open_tracking: true, click_tracking: true },
  });
  const html =
    '<html><body><p>Hällo <a href="https://shop.example/?a=1&amp;b=2">x</a><a href="mailto:a@b.example">y</a></p></body></html>';
  await send({ to: 'tracked@receiver.example', html, headers: { 'List-Unsubscribe': '<https://shop.example/u>' } });
  await send({ to: 'plain@receiver.example', text: 'https://shop.example/' });
  const mail = await receiver.mailTo('tracked@receiver.example');
  expect((await receiver.judge(mail, bench.dns.address)).dkim).toEqual(['ed25519-sha256 pass', 'rsa-sha256 pass']);
  expect(mail.raw).toContain('List-Unsubscribe: <https://shop.example/u>');
  expect((await receiver.mailTo('plain@receiver.example')).raw).toContain('https://shop.example/');
  const parsed = await simpleParser(mail.raw);
  const text = String(parsed.html);
  expect(text).toContain('Hällo');
  expect(text).toContain('href="mailto:a@b.example"');
  const [, link = ''] = /href="(http:[^"]+)"/.exec(text) ?? [];
  const [, picture = ''] = /src="(http:[^"]+)"/.exec(text) ?? [];
  const get = (url: string): Promise<Response> => fetch(url.replaceAll('&amp;', '&'), { redirect: 'manual' });
  await retryCheck(async () =>
    expect(
      await service.sql(`select 1 from email_deliveries
    where recipient = 'tracked@receiver.example' and status = 'delivered'`),
    ).toHaveLength(1),
  );
  const clicked = await get(link);
  expect([clicked.status, clicked.headers.get('location')]).toEqual([302, 'https://shop.example/?a=1&b=2']);
  await get(link);
  expect((await get(picture)).headers.get('content-type')).toBe('image/gif');
  const elsewhere = link.replace(/[^/]+$/, Buffer.from('https://evil.example/').toString('base64url'));
  expect((await get(elsewhere)).status).toBe(404);
  await retryCheck(async () => expect([await counted('clicked'), await counted('opened')]).toEqual([1, 1]));
  await service.call('PATCH', `/v2/email_domains/${domain.id}`, {
    body: { open_tracking: false, click_tracking: false },
  });
});

test('a zone whose mail comes back too often is suspended, and says why', async () => {
  const bad = await newZone('bad');
  await send({ to: Array.from({ length: 25 }, (_, index) => `hard-${100 + index}@receiver.example`) }, bad);
  const path = `/v2/email_relay_zones/${bad.id}`;
  await retryCheck(async () => expect((await service.call('GET', path)).body.status).toBe('suspended'));
  expect((await service.call('GET', path)).body.status_reason).toMatch(
    /of 2[0-5] recipients within 24 hours do not exist/,
  );
  await expect(send({ to: 'jo@receiver.example' }, bad)).rejects.toMatchObject({ responseCode: 550 });
  expect((await service.call('PATCH', path, { body: { enabled: true } })).body.status).toBe('suspended');
  // A step that has begun before reads and writes the times of before, so a day passes until no step does.
  const past = `update email_deliveries set ended_at = ended_at - interval '25 hours'
    where email_relay_zone_id = $1 and ended_at > now() - interval '24 hours'`;
  const due = `update email_relay_zones set suspended_at = now() - interval '25 hours', next_at = now()
    where id = $1 and status = 'suspended' and lease_until is null`;
  await retryCheck(async () => {
    await service.sql(past, [bad.id]);
    await service.sql(due, [bad.id]);
    expect((await service.call('GET', path)).body.status).toBe('active');
  });
});

test('the pages of the operator list messages, for names of this machine only', async () => {
  const list = await fetch(`${service.adminUrl}/mail`);
  const text = await list.text();
  expect(list.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(text).toContain('jo@receiver.example');
  expect(text).not.toContain('<p>H');
  const [, id] = /href="\/mail\/(eml_\w+)"/.exec(text) ?? [];
  expect(await (await fetch(`${service.adminUrl}/mail/${id}`)).text()).toContain('# DKIM: ');
});
