// Mail straight to the servers of its recipients: which of them, over which TLS (RFC 5321 §5.1, RFC 7505, RFC 8461).
import { createServer, type Server } from 'node:https';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { issueServerCertificate, newAuthority, type KeyedCertificate } from '../../../drivers/certificates/authority';
import { dnsQuestions } from '../../../core/protocols/dns';
import { parsePolicy, stsPolicies } from '../../../engines/mail/mta_sts';
import { directRoute, type DirectParts, type Route } from '../../../engines/mail/route';
import { openTransport, type HopResult } from '../../../engines/mail/transport';
import { openOutbound } from '../../../core/outbound';
import { startDnsServer, type DnsServer } from '../../support/dns/dns_server';
import { startMailReceiver, type MailReceiver } from '../../support/email/mail_receiver';

const transport = openTransport('client.example');
let dns: DnsServer;
let authority: KeyedCertificate;
let receiver: MailReceiver;
let certified: MailReceiver;
let policies: Server;
let policyText = '';
let asked = 0;
let directory: string;
let parts: DirectParts;

beforeAll(async () => {
  dns = await startDnsServer();
  authority = await newAuthority('Test');
  const mx = await issueServerCertificate(authority, ['mx.sts.example']);
  receiver = await startMailReceiver();
  certified = await startMailReceiver({
    ...{ host: '127.0.0.3', port: receiver.port, tls: { key: mx.key, cert: mx.certificate } },
  });
  const site = await issueServerCertificate(authority, ['mta-sts.sts.example', 'mta-sts.wrong.example']);
  policies = createServer({ key: site.key, cert: site.certificate }, (request, response) => {
    asked += 1;
    response.writeHead(request.url === '/.well-known/mta-sts.txt' ? 200 : 404).end(policyText);
  });
  await new Promise<void>((resolve) => policies.listen(0, '127.0.0.1', resolve));
  directory = mkdtempSync(join(tmpdir(), 'mail-direct-'));
  writeFileSync(join(directory, 'ca.pem'), authority.certificate);
  parts = newParts();
});

afterAll(async () => {
  transport.close();
  await receiver.close();
  await certified.close();
  policies.closeAllConnections();
  policies.close();
  await dns.close();
  rmSync(directory, { recursive: true });
});

function newParts(): DirectParts {
  const questions = dnsQuestions({ resolvers: [dns.address] });
  const outbound = openOutbound({
    ...{ isAllowed: () => true, hostsFile: false, resolvers: [dns.address], caFile: join(directory, 'ca.pem') },
  });
  const port = (policies.address() as AddressInfo).port;
  return {
    ...{ dns: questions, isAllowed: () => true, policyOf: stsPolicies({ dns: questions, outbound, port }) },
    ...{ port: receiver.port, ca: authority.certificate },
  };
}

const route = (domain: string, changed: Partial<DirectParts> = {}): Promise<Route> =>
  directRoute(domain, { ...parts, ...changed });
const hostsOf = (found: Route): string[] => (found.kind === 'hops' ? found.hops.map(({ host }) => host) : [found.kind]);

async function deliver(domain: string): Promise<HopResult> {
  const found = await route(domain);
  if (found.kind !== 'hops') throw new Error(found.response);
  let last: HopResult | null = null;
  for (const hop of found.hops) {
    const content = (): Readable => Readable.from([Buffer.from('Subject: x\r\n\r\nx\r\n')]);
    last = await transport.send(hop, {
      ...{ from: 'a@client.example', to: `jo@${domain}`, size: 20, content, needsUtf8: false },
      isEightBit: () => Promise.resolve(false),
    });
    if (!last.isUnreachable) break;
  }
  return last as HopResult;
}

test('exchanges are asked in the order of preference, equal ones in any, over IPv4 and IPv6', async () => {
  dns.set('order.example', 'MX', ['20 last.example', '5 a.example', '5 b.example', '10 second.example']);
  for (const [name, address] of Object.entries({ a: 11, b: 12, second: 13, last: 14 }))
    dns.set(`${name}.example`, 'A', [`127.0.0.${address}`]);
  dns.set('second.example', 'AAAA', ['::1']);
  const orders = new Set<string>();
  for (let count = 0; count < 40; count += 1) orders.add(hostsOf(await route('order.example')).join(' '));
  const rest = '127.0.0.13 ::1 127.0.0.14';
  expect([...orders].sort()).toEqual([`127.0.0.11 127.0.0.12 ${rest}`, `127.0.0.12 127.0.0.11 ${rest}`]);
});

test('a server that is away leads to the next one; without an MX the domain itself is asked', async () => {
  dns.set('fallback.example', 'MX', ['5 away.example', '10 there.example']);
  dns.set('away.example', 'A', ['127.0.0.2']);
  dns.set('there.example', 'A', ['127.0.0.1']);
  expect(await deliver('fallback.example')).toMatchObject({ kind: 'delivered' });
  expect(await receiver.mailTo('jo@fallback.example')).toMatchObject({ secure: true });
  dns.set('bare.example', 'A', ['127.0.0.1']);
  expect(await deliver('bare.example')).toMatchObject({ kind: 'delivered' });
});

test('a recipient over IPv6', async () => {
  const six = await startMailReceiver({ host: '::1', port: receiver.port }).catch(() => null);
  dns.set('six.example', 'MX', ['10 mx.six.example']);
  dns.set('mx.six.example', 'AAAA', ['::1']);
  expect(hostsOf(await route('six.example'))).toEqual(['::1']);
  // A machine without IPv6 has shown as much as it can.
  if (!six) return;
  expect(await deliver('six.example')).toMatchObject({ kind: 'delivered' });
  await six.close();
});

test('a null MX, and a name that does not exist, are final; a DNS that fails is not', async () => {
  dns.set('null.example', 'MX', ['0 .']);
  expect(await route('null.example')).toMatchObject({ kind: 'none', response: expect.stringContaining('5.1.10') });
  expect(await route('nowhere.example')).toMatchObject({ kind: 'none', response: expect.stringContaining('5.1.2') });
  dns.fail('failing.example');
  expect(await route('failing.example')).toMatchObject({ kind: 'later' });
  dns.set('half.example', 'MX', ['5 mx.failing.example', '10 there.example']);
  dns.fail('mx.failing.example');
  expect(hostsOf(await route('half.example'))).toEqual(['127.0.0.1']);
});

test('servers at addresses that are not public are left out', async () => {
  dns.set('inner.example', 'MX', ['5 metadata.example']);
  dns.set('metadata.example', 'A', ['169.254.169.254']);
  expect(await route('inner.example', { isAllowed: (address) => !address.startsWith('169.') })).toMatchObject({
    kind: 'none',
  });
});

const policy = (mode: string, mx: string): string =>
  `version: STSv1\r\nmode: ${mode}\r\nmx: ${mx}\r\nmax_age: 86400\r\n`;

test('MTA-STS: what a policy enforces gets certified TLS to the servers that it names, or nothing', async () => {
  dns.set('mta-sts.sts.example', 'A', ['127.0.0.1']);
  dns.set('_mta-sts.sts.example', 'TXT', ['v=STSv1; id=1;']);
  dns.set('sts.example', 'MX', ['5 other.example', '10 mx.sts.example']);
  dns.set('other.example', 'A', ['127.0.0.1']);
  dns.set('mx.sts.example', 'A', ['127.0.0.3']);
  policyText = policy('enforce', '*.sts.example');
  // The server that is preferred is not in the policy.
  const found = await route('sts.example');
  expect(found).toMatchObject({ hops: [{ host: '127.0.0.3', servername: 'mx.sts.example', tls: 'required' }] });
  expect(await deliver('sts.example')).toMatchObject({ kind: 'delivered' });
  expect(await certified.mailTo('jo@sts.example')).toMatchObject({ secure: true });
  expect(asked).toBe(1);
  // The same server without a certificate that is valid for its name.
  dns.set('mx.sts.example', 'A', ['127.0.0.1']);
  expect(await deliver('sts.example')).toMatchObject({ kind: 'later', isUnreachable: true });
  expect(receiver.tried('jo@sts.example')).toBe(0);
});

test('MTA-STS: a policy that is known holds while it cannot be fetched, and while its record is gone', async () => {
  dns.set('_mta-sts.sts.example', 'TXT', ['v=STSv1; id=2;']);
  policyText = 'nonsense';
  expect(await route('sts.example')).toMatchObject({ hops: [{ tls: 'required' }] });
  dns.set('_mta-sts.sts.example', 'TXT', []);
  expect(await route('sts.example')).toMatchObject({ hops: [{ tls: 'required' }] });
});

test('MTA-STS: no server of the policy is left, so the mail waits; a policy in testing hinders nothing', async () => {
  dns.set('mta-sts.wrong.example', 'A', ['127.0.0.1']);
  dns.set('_mta-sts.wrong.example', 'TXT', ['v=STSv1; id=7;']);
  dns.set('wrong.example', 'MX', ['10 there.example']);
  policyText = policy('enforce', 'mx.elsewhere.example');
  expect(await route('wrong.example')).toMatchObject({ kind: 'later', response: expect.stringContaining('MTA-STS') });
  parts = newParts();
  policyText = policy('testing', 'mx.elsewhere.example');
  expect(await route('wrong.example')).toMatchObject({ hops: [{ tls: 'opportunistic' }] });
});

test('a star of a policy stands for one label', () => {
  const parsed = parsePolicy(policy('enforce', '*.mail.example'));
  expect(
    ['a.mail.example', 'A.Mail.Example', 'a.b.mail.example', 'mail.example'].map((name) => parsed?.matches(name)),
  ).toEqual([true, true, false, false]);
  expect(parsePolicy('version: STSv2\nmode: none\nmax_age: 1')).toBeNull();
  expect(parsePolicy('version: STSv1\nmode: enforce')).toBeNull();
});
