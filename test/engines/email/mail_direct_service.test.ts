/** @tier heavy @quarter 4 @covers engines/mail server/agents/mail/mail.ts */
// Mail straight to the servers of its recipients, from submission on: found by MX, judged as receivers do.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createTransport } from 'nodemailer';
import { issueServerCertificate, newAuthority } from '../../../drivers/certificates/authority';
import { startDnsServer, type DnsServer } from '../../support/dns/dns_server';
import { freePort } from '../../support/processes/free_port';
import { openMailBench, type Instruction, type MailBench } from '../../support/email/mail';
import { startMailReceiver, type MailReceiver } from '../../support/email/mail_receiver';
import { judgeByOpendkim } from '../../support/email/opendkim';
import { retryCheck } from '../../support/wait_for';
import { withConfig } from '../../support/config';

jest.setTimeout(120_000);

/** Addresses of loopback that no other test has: port 443 of one of them serves the policies. */
const NETWORK = `127.${1 + Math.floor(Math.random() * 250)}.${1 + Math.floor(Math.random() * 250)}`;
const isRoot = process.getuid?.() === 0;
const canMount = isRoot && spawnSync('unshare', ['--mount', 'true']).status === 0;

let bench: MailBench;
let receiver: MailReceiver;
let certified: MailReceiver;
let port: number;
let zone: { id: string; smtp_username: string; smtp_password: string };
let directory: string;
let keys: Instruction[];
let site: { key: string; certificate: string };

beforeAll(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'mail-direct-service-'));
  const authority = await newAuthority('Test');
  writeFileSync(path.join(directory, 'ca.pem'), authority.certificate);
  const mx = await issueServerCertificate(authority, ['mx.sts.example']);
  site = await issueServerCertificate(authority, ['mta-sts.sts.example', 'mta-sts.uncertified.example']);
  receiver = await startMailReceiver();
  certified = await startMailReceiver({
    ...{ host: `${NETWORK}.3`, port: receiver.port, tls: { key: mx.key, cert: mx.certificate } },
  });
  port = await freePort();
  bench = await openMailBench({
    worker: true,
    settings: {
      ...{ SMTP_PORTS: String(port), MAIL_MODE: 'direct', ...withConfig({ mailDirectPort: receiver.port }) },
      ...{ ALLOW_PRIVATE_ADDRESSES: '1', OUTBOUND_CA_FILE: path.join(directory, 'ca.pem') },
      MAIL_SPF: 'ip4:192.0.2.1',
    },
  });
  const domain = await bench.verified('direct.example');
  zone = await bench.relayZone('direct', domain);
  keys = domain.dns_records.filter(({ purpose }: Instruction) => purpose === 'dkim');
  leads('there.example', '127.0.0.1');
});

afterAll(async () => {
  await bench?.close();
  await receiver?.close();
  await certified?.close();
  rmSync(directory, { recursive: true });
});

/** Mail for the domain goes to a server at the address. */
function leads(domain: string, address: string): void {
  bench.dns.set(domain, 'MX', [`10 mx.${domain}`]);
  bench.dns.set(`mx.${domain}`, address.includes(':') ? 'AAAA' : 'A', [address]);
}

async function send(...to: string[]): Promise<void> {
  const client = createTransport({
    ...{ host: '127.0.0.1', port, tls: { rejectUnauthorized: false } },
    auth: { user: zone.smtp_username, pass: zone.smtp_password },
  });
  await client.sendMail({ from: 'Shop <a@direct.example>', to, subject: 'Grüße', html: '<p>Hällo</p>' });
  client.close();
}

interface Delivery {
  status: string;
  last_response: string;
  attempts: number;
  /** Seconds to the next attempt. */
  pause: number;
}

const deliveryTo = async (address: string): Promise<Delivery | undefined> =>
  (
    await bench.service.sql<Delivery>(
      `select status, last_response, attempts, extract(epoch from next_at - now())::float8 as pause
       from email_deliveries where recipient = $1 and not claimed`,
      [address],
    )
  )[0];

test('a server found by its MX gets the message over TLS, and judges it well', async () => {
  await send('jo@there.example');
  const mail = await receiver.mailTo('jo@there.example');
  expect(mail.secure).toBe(true);
  expect(await receiver.judge(mail, bench.dns.address)).toEqual({
    ...{ spf: 'pass', dkim: ['ed25519-sha256 pass', 'rsa-sha256 pass'], dmarc: 'pass' },
  });
  await retryCheck(async () => expect(await deliveryTo('jo@there.example')).toMatchObject({ status: 'delivered' }));
});

test('a server over IPv6, and one behind another that is away', async () => {
  const six = await startMailReceiver({ host: '::1', port: receiver.port }).catch(() => null);
  leads('six.example', '::1');
  bench.dns.set('two.example', 'MX', ['5 mx.away.example', '10 mx.there.example']);
  bench.dns.set('mx.away.example', 'A', [`${NETWORK}.99`]);
  await send('jo@six.example', 'jo@two.example');
  expect(await receiver.mailTo('jo@two.example')).toMatchObject({ secure: true });
  // A machine without IPv6 has shown as much as it can.
  if (!six) return;
  expect(await six.mailTo('jo@six.example')).toMatchObject({ secure: true });
  await six.close();
});

test('a refusal for now is tried again, each time later; one for good, and a null MX, are final', async () => {
  bench.dns.set('null.example', 'MX', ['0 .']);
  await send('full@there.example', 'greylisted@there.example', 'hard@there.example', 'jo@null.example');
  await retryCheck(async () =>
    expect(await Promise.all(['full@there.example', 'hard@there.example', 'jo@null.example'].map(deliveryTo))).toEqual([
      expect.objectContaining({ status: 'queued', attempts: 1, last_response: expect.stringContaining('4.2.2') }),
      expect.objectContaining({ status: 'bounced', last_response: expect.stringContaining('5.1.1') }),
      expect.objectContaining({ status: 'bounced', last_response: expect.stringContaining('5.1.10') }),
    ]),
  );
  const first = (await deliveryTo('full@there.example'))?.pause ?? 0;
  await retryCheck(async () => expect((await deliveryTo('greylisted@there.example'))?.attempts).toBe(1));
  await bench.service.sql(`update email_deliveries set next_at = now() where status = 'queued'`);
  await receiver.mailTo('greylisted@there.example');
  await retryCheck(async () => expect(await deliveryTo('full@there.example')).toMatchObject({ attempts: 2 }));
  expect((await deliveryTo('full@there.example'))?.pause).toBeGreaterThan(first);
  const { body } = await bench.service.call('GET', `/v2/email_relay_zones/${zone.id}/suppressions`);
  const listed = body.data.map(({ email }: { email: string }) => email).sort();
  expect(listed).toEqual(['hard@there.example', 'jo@null.example']);
});

test('a recipient with letters beyond ASCII gets mail (RFC 6531)', async () => {
  await send('jürgen@there.example');
  const mail = await receiver.mailTo('jürgen@there.example');
  expect(await receiver.judge(mail, bench.dns.address)).toMatchObject({ dmarc: 'pass' });
});

test('to a server of ASCII only, such a domain goes in its ASCII form, and such a mailbox bounces', async () => {
  const ascii = await startMailReceiver({ host: `${NETWORK}.5`, port: receiver.port, hideSMTPUTF8: true });
  try {
    leads('xn--gre-6ka8l.example', `${NETWORK}.5`);
    await send('jo@grüße.example');
    await send('jürgen@grüße.example');
    expect((await ascii.mailTo('jo@grüße.example')).secure).toBe(true);
    await retryCheck(async () =>
      expect(await deliveryTo('jürgen@xn--gre-6ka8l.example')).toMatchObject({
        ...{ status: 'bounced', last_response: expect.stringContaining('5.6.7') },
      }),
    );
    expect(ascii.tried('jürgen@grüße.example')).toBe(0);
  } finally {
    await ascii.close();
  }
});

test('a destination that is away holds up its own mail only', async () => {
  leads('gone.example', `${NETWORK}.98`);
  await send('one@gone.example');
  await retryCheck(async () => expect(await deliveryTo('one@gone.example')).toMatchObject({ attempts: 1 }));
  // While it is left alone, nothing more is tried there.
  await send('two@gone.example', 'other@there.example');
  await receiver.mailTo('other@there.example');
  expect(await deliveryTo('two@gone.example')).toMatchObject({ status: 'queued', attempts: 0 });
});

const asRoot = isRoot ? test : test.skip;

(canMount ? test : test.skip)('OpenDKIM verifies each signature, and none of a changed message (as root)', async () => {
  let dns = null as DnsServer | null;
  // Another test may hold the port for a while, on all addresses.
  await retryCheck(async () => void (dns = await startDnsServer({}, { host: `${NETWORK}.53`, port: 53 })), 60_000);
  try {
    for (const { name, type, value } of keys) dns?.set(name, type, [value]);
    await send('judged@there.example');
    const { raw } = await receiver.mailTo('judged@there.example');
    const [rsa = '', ed25519AndRest = ''] = raw.split(/^(?=DKIM-Signature:)/m).filter(Boolean);
    const [, ed25519 = '', rest = ''] = /^(.+?\r\n)(?=\S)(.+)$/s.exec(ed25519AndRest) ?? [];
    for (const signature of [rsa, ed25519]) {
      const alone = signature + rest;
      expect([signature, await judgeByOpendkim(alone, `${NETWORK}.53`)]).toEqual([signature, '']);
      expect(await judgeByOpendkim(alone.replace('>H=', '>h='), `${NETWORK}.53`)).toMatch(/Bad signature/);
    }
  } finally {
    await dns?.close();
  }
});

// The policy of a domain is at port 443 of a host of its own (RFC 8461 §3.3).

asRoot('MTA-STS: an enforced policy is met, or nothing is sent (binds port 443, as root)', async () => {
  const policies: Server = createServer({ key: site.key, cert: site.certificate }, (request, response) => {
    const domain = String(request.headers.host).replace('mta-sts.', '');
    response.end(`version: STSv1\r\nmode: enforce\r\nmx: mx.${domain}\r\nmax_age: 86400\r\n`);
  });
  await new Promise<void>((resolve) => policies.listen(443, `${NETWORK}.4`, resolve));
  try {
    for (const [domain, address] of [
      ['sts.example', `${NETWORK}.3`],
      // The same port, with a certificate that nobody has signed.
      ['uncertified.example', '127.0.0.1'],
    ] as const) {
      leads(domain, address);
      bench.dns.set(`_mta-sts.${domain}`, 'TXT', ['v=STSv1; id=1;']);
      bench.dns.set(`mta-sts.${domain}`, 'A', [`${NETWORK}.4`]);
    }
    await send('jo@sts.example', 'jo@uncertified.example');
    expect(await certified.mailTo('jo@sts.example')).toMatchObject({ secure: true });
    await retryCheck(async () =>
      expect(await deliveryTo('jo@uncertified.example')).toMatchObject({
        ...{ status: 'queued', attempts: 1, last_response: expect.stringMatching(/certificate/i) },
      }),
    );
    expect(receiver.tried('jo@uncertified.example')).toBe(0);
  } finally {
    policies.closeAllConnections();
    policies.close();
  }
});
