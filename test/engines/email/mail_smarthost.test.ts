/** @tier heavy @quarter 4 @covers engines/mail jobs/email/mail/mail_loop.ts */
// Postfix of Debian as the smarthost: what the platform hands over, and what comes back from it.
import { createTransport } from 'nodemailer';
import { freePort } from '../../support/processes/free_port';
import { openMailBench, type MailBench } from '../../support/email/mail';
import { startMailReceiver, type MailReceiver } from '../../support/email/mail_receiver';
import { retryCheck } from '../../support/wait_for';
import { hasPostfix, startPostfix, type Postfix } from '../../support/email/postfix';

jest.setTimeout(120_000);

const refusals: Record<string, [number, string]> = {
  'rcpt listed': [550, 'Blocked - see https://www.spamhaus.org/query/ip/192.0.2.1'],
  'rcpt gone': [550, '5.1.1 User unknown'],
  'data filtered': [550, '5.1.1 User unknown'],
  'data spam': [554, '5.7.1 Message rejected as spam'],
};

const withPostfix = hasPostfix ? describe : describe.skip;

withPostfix('Postfix as the smarthost (needs postfix, as root)', () => {
  let bench: MailBench;
  let receiver: MailReceiver;
  let postfix: Postfix;
  let port: number;
  let zone: { id: string; smtp_username: string; smtp_password: string };

  beforeAll(async () => {
    receiver = await startMailReceiver({
      refuse: (address, stage) => refusals[`${stage} ${address.split('@', 1)[0]}`],
    });
    const [mxPort, relayPort] = [await freePort(), await freePort()];
    port = await freePort();
    postfix = await startPostfix({
      ...{ port: relayPort, relayhost: `[127.0.0.1]:${receiver.port}` },
      // As the MX of the return path would lead there.
      transports: { 'bounce.relayed.example': `[127.0.0.1]:${mxPort}` },
      settings: { virtual_alias_maps: 'inline:{ forwards@receiver.example=gone@receiver.example }' },
    });
    bench = await openMailBench({
      worker: true,
      settings: {
        ...{ SMTP_PORTS: String(port), MX_PORT: String(mxPort), SMTP_URL: `smtp://127.0.0.1:${relayPort}` },
        MAIL_SPF: 'ip4:192.0.2.1',
      },
    });
    const domain = await bench.verified('relayed.example');
    const made = await bench.service.call('POST', '/v2/email_relay_zones', {
      body: { name: 'relayed', email_domain_ids: [domain.id] },
    });
    zone = made.body;
  });

  afterAll(async () => {
    await bench?.close();
    await postfix?.close();
    await receiver?.close();
  });

  async function send(to: string, more: object = {}): Promise<void> {
    const client = createTransport({
      ...{ host: '127.0.0.1', port, tls: { rejectUnauthorized: false } },
      auth: { user: zone.smtp_username, pass: zone.smtp_password },
    });
    await client.sendMail({ from: 'Shop <a@relayed.example>', to, subject: 'Grüße', text: 'Hällo.\n', ...more });
    client.close();
  }

  test('hands mail over with its signatures whole, and keeps the id that Postfix gives it', async () => {
    await send('jo@receiver.example', { html: '<p>Hällo</p>', attachments: [{ filename: 'a.bin', content: 'x\0y' }] });
    const mail = await receiver.mailTo('jo@receiver.example', 30_000);
    expect(await receiver.judge(mail, bench.dns.address)).toEqual({
      ...{ spf: 'pass', dkim: ['ed25519-sha256 pass', 'rsa-sha256 pass'], dmarc: 'pass' },
    });
    await retryCheck(async () => {
      const [row] = await bench.service.sql(`select status, last_response from email_deliveries
        where recipient = 'jo@receiver.example'`);
      const [, id = ''] = /queued as (\w+)/.exec(row.last_response) ?? [];
      expect([row.status, id]).toEqual(['delivered', expect.stringMatching(/^\w{6,}$/)]);
      expect(mail.raw).toMatch(new RegExp(`id ${id}\\b`));
      expect(postfix.log()).toMatch(new RegExp(`${id}: to=<jo@receiver.example>.* status=sent`));
    });
  });

  test('what Postfix gives back reaches the suppression list', async () => {
    await send('hard-9@receiver.example');
    await retryCheck(async () => {
      const { body } = await bench.service.call('GET', `/v2/email_relay_zones/${zone.id}/suppressions`);
      expect(body.data).toMatchObject([
        { email: 'hard-9@receiver.example', reason: 'bounce', detail: expect.stringContaining('5.1.1') },
      ]);
    }, 30_000);
    expect(postfix.queued()).toBe(0);
  });

  test('what Postfix gives back for other reasons does not', async () => {
    const recipients = ['listed', 'forwards', 'filtered', 'spam'].map((local) => `${local}@receiver.example`);
    for (const to of recipients) await send(to);
    await retryCheck(async () => {
      const rows = await bench.service.sql(
        `select recipient, last_response, rejection from email_deliveries
          where status = 'bounced' and recipient = any($1) order by recipient`,
        [recipients],
      );
      expect(rows).toEqual([
        {
          recipient: 'filtered@receiver.example',
          last_response: expect.stringContaining('5.1.1'),
          rejection: 'unclear',
        },
        { recipient: 'forwards@receiver.example', last_response: expect.stringContaining('5.1.1'), rejection: 'other' },
        {
          recipient: 'listed@receiver.example',
          last_response: expect.stringContaining('spamhaus'),
          rejection: 'other',
        },
        { recipient: 'spam@receiver.example', last_response: expect.stringContaining('5.7.1'), rejection: 'other' },
      ]);
    }, 30_000);
    const { body } = await bench.service.call('GET', `/v2/email_relay_zones/${zone.id}/suppressions`);
    expect(body.data.map(({ email }: { email: string }) => email)).toEqual(['hard-9@receiver.example']);
  });

  test('leading dots and lines of bytes come through with their signatures', async () => {
    const text = `.\r\n..two\r\n${'long '.repeat(150)}\r\nÄ\r\n.`;
    await send('dots@receiver.example', { text, textEncoding: 'base64' });
    const mail = await receiver.mailTo('dots@receiver.example', 30_000);
    expect((await receiver.judge(mail, bench.dns.address)).dkim).toEqual(['ed25519-sha256 pass', 'rsa-sha256 pass']);
  });
});
