/** @tier heavy @quarter 4 @covers engines/mail server/agents/mail/mail.ts jobs/email/mail/mail_loop.ts */
// Mail under SIGKILL, and from clients of others.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createTransport } from 'nodemailer';
import { freePort } from '../../support/processes/free_port';
import { openMailBench, type MailBench } from '../../support/email/mail';
import { startMailReceiver, type MailReceiver } from '../../support/email/mail_receiver';
import { endPrograms, startProgram, type Program } from '../../support/processes/program';
import { retryCheck } from '../../support/wait_for';
import { withConfig } from '../../support/config';

jest.setTimeout(240_000);

const run = promisify(execFile);
const MIB = 1024 * 1024;

let bench: MailBench;
let receiver: MailReceiver;
let program: Program;
let port: number;
let zone: { smtp_username: string; smtp_password: string };

/** Works for the bench, on its database and with its keys. */
async function start(settings: Record<string, string> = { SMTP_URL: `smtp://127.0.0.1:${receiver.port}` }) {
  const { platform, dataDir } = bench.service;
  program = startProgram({
    ...{ DATABASE_URL: platform.databaseUrl, PLATFORM_DATA_DIR: dataDir, SMTP_PORTS: String(port) },
    ...{ DNS_RESOLVERS: bench.dns.address, SMTP_HOST: 'smtp.example.net' },
    ...{ MAIL_SPF: 'ip4:192.0.2.1', LOG_LEVEL: 'info', ...settings },
  });
  await program.ready();
}

beforeAll(async () => {
  [port, receiver] = [await freePort(), await startMailReceiver()];
  bench = await openMailBench({ settings: { MAIL_SPF: 'ip4:192.0.2.1' } });
  const domain = await bench.verified('killed.example');
  const made = await bench.service.call('POST', '/v2/email_relay_zones', {
    body: { name: 'killed', email_domain_ids: [domain.id] },
  });
  zone = made.body;
  await start();
});

afterAll(async () => {
  await endPrograms();
  await bench.close();
  await receiver.close();
});

test('nothing that was acknowledged is lost when the process is killed', async () => {
  const acknowledged: string[] = [];
  let serial = 0;
  for (let round = 0; round < 2; round += 1) {
    const client = createTransport({
      ...{ host: '127.0.0.1', port, pool: true, maxConnections: 4, tls: { rejectUnauthorized: false } },
      auth: { user: zone.smtp_username, pass: zone.smtp_password },
    });
    let stopped = false;
    const send = async (): Promise<void> => {
      while (!stopped) {
        const to = `r${(serial += 1)}@receiver.example`;
        // Small messages are rows, larger ones are files.
        const text = 'x\n'.repeat(serial % 2 ? 500 : 20_000);
        await client.sendMail({ from: 'a@killed.example', to, subject: to, text }).then(
          () => acknowledged.push(to),
          () => sleep(20),
        );
      }
    };
    const senders = Array.from({ length: 8 }, send);
    await sleep(1_500 + round * 700);
    const enough = 30 * (round + 1);
    await retryCheck(() => Promise.resolve(expect(acknowledged.length).toBeGreaterThan(enough)), 30_000);
    program.signal('SIGKILL');
    await program.ended;
    stopped = true;
    await Promise.all(senders);
    client.close();
    await start();
  }
  expect(acknowledged.length).toBeGreaterThan(50);
  await retryCheck(async () => {
    const arrived = new Set(receiver.mails.map(({ to }) => to));
    expect(acknowledged.filter((to) => !arrived.has(to))).toEqual([]);
  }, 60_000);
  // Whoever got a message twice can tell: it has the same Message-ID.
  const ids = new Map<string, Set<string>>();
  for (const { to, raw } of receiver.mails) {
    const id = /^Message-ID: (.*)$/im.exec(raw)?.[1] ?? '';
    ids.set(to, (ids.get(to) ?? new Set()).add(id));
  }
  expect([...ids.values()].filter((each) => each.size > 1)).toEqual([]);
});

test('swaks, msmtp and smtplib of Python hand mail in, and it is signed', async () => {
  await run('swaks', [
    ...['--server', '127.0.0.1', '--port', String(port), '--tls', '--auth', 'LOGIN', '--timeout', '20'],
    ...['--auth-user', zone.smtp_username, `--auth-password=${zone.smtp_password}`],
    ...['--from', 'a@killed.example', '--to', 'swaks@receiver.example'],
  ]);
  const script = `import smtplib, ssl, sys
from email.message import EmailMessage
c = ssl.create_default_context()
c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
m = EmailMessage()
m['From'] = 'Zoë <a@killed.example>'
m['To'] = 'python@receiver.example'; m['Subject'] = 'Grüße'
m.set_content('.dots\\n..and 8 bits: ä\\n')
m.add_attachment(b'\\x00\\xff' * 1000, maintype='application', subtype='octet-stream')
s = smtplib.SMTP('127.0.0.1', ${port})
s.starttls(context=c)
s.login(sys.argv[1], sys.argv[2]); s.send_message(m); s.quit()`;
  await run('python3', ['-c', script, zone.smtp_username, zone.smtp_password]);
  const msmtp = run('msmtp', [
    ...['--host=127.0.0.1', `--port=${port}`, '--tls=on', '--tls-starttls=on', '--tls-certcheck=off', '--auth=plain'],
    ...[`--user=${zone.smtp_username}`, `--passwordeval=echo ${zone.smtp_password}`, '--file=/dev/null'],
    ...['--from=a@killed.example', 'msmtp@receiver.example'],
  ]);
  msmtp.child.stdin?.end('From: a@killed.example\nTo: msmtp@receiver.example\nSubject: x\n\n.\nx\n');
  await msmtp;
  for (const to of ['swaks@receiver.example', 'msmtp@receiver.example', 'python@receiver.example']) {
    const mail = await receiver.mailTo(to);
    expect(await receiver.judge(mail, bench.dns.address)).toEqual({
      ...{ spf: 'pass', dkim: ['ed25519-sha256 pass', 'rsa-sha256 pass'], dmarc: 'pass' },
    });
  }
});

describe.each(['smarthost', 'direct'])('attachments of 25 MB (%s)', (mode) => {
  const bytes = randomBytes(25 * MIB);

  async function send(to: string): Promise<void> {
    const client = createTransport({
      ...{ host: '127.0.0.1', port, tls: { rejectUnauthorized: false } },
      auth: { user: zone.smtp_username, pass: zone.smtp_password },
    });
    const attachments = [{ filename: 'a', content: bytes }];
    await client.sendMail({ from: 'a@killed.example', to, text: 'x', attachments });
    client.close();
  }

  const memory = (): number =>
    Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${program.pid}/status`, 'utf8'))?.[1]) / 1024;

  test('arrive byte for byte, with good signatures, in constant memory', async () => {
    if (mode === 'direct') {
      bench.dns.set('receiver.example', 'MX', ['10 mx.receiver.example']);
      bench.dns.set('mx.receiver.example', 'A', ['127.0.0.1']);
      program.signal('SIGTERM');
      await program.ended;
      await start({ MAIL_MODE: mode, ...withConfig({ mailDirectPort: receiver.port }), ALLOW_PRIVATE_ADDRESSES: '1' });
    }
    await send(`${mode}@receiver.example`);
    const mail = await receiver.mailTo(`${mode}@receiver.example`, 60_000);
    expect((await receiver.judge(mail, bench.dns.address)).dkim).toEqual(['ed25519-sha256 pass', 'rsa-sha256 pass']);
    // Not by a regular expression: over 34 MB the one of V8 may run out of stack.
    const [, part = ''] = mail.raw.split('filename=a');
    const base64 = part.slice(part.indexOf('\r\n\r\n'), part.indexOf('\r\n--'));
    expect(Buffer.from(base64, 'base64').equals(bytes)).toBe(true);
    const before = memory();
    let most = 0;
    const timer = setInterval(() => (most = Math.max(most, memory())), 20);
    for (const round of [1, 2, 3]) {
      const addresses = [1, 2].map((each) => `${mode}-${round}-${each}@receiver.example`);
      await Promise.all(addresses.map(send));
      await Promise.all(addresses.map((address) => receiver.mailTo(address, 60_000)));
    }
    clearInterval(timer);
    // Six messages of 34 MB each, two at a time, in and out: what grows is garbage on its way.
    expect(most - before).toBeLessThan(64);
  });
});
