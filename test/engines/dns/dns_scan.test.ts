/** @tier heavy @quarter 2 @covers models/dns/dns_zone */
// Taking over a domain: its present name server is asked for a transfer, and where it refuses, for common names.
import { startDnsParent, type DnsParent } from '../../support/dns/dns_parent';
import { startDnsServer, type DnsServer } from '../../support/dns/dns_server';
import { freePort } from '../../support/processes/free_port';
import { startPowerdns, type Powerdns } from '../../support/dns/powerdns';
import { startService, type Answer, type TestService } from '../../support/service';
import { withConfig } from '../../support/config';

jest.setTimeout(60_000);

let service: TestService;
let parent: DnsParent;
let resolver: DnsServer;
const present: Powerdns[] = [];

const DIGEST = '49fd46e6c4b45c55d4ac69cbd3cd34ac1afe51de49fd46e6c4b45c55d4ac69cb';

/** The present name server of a domain. The walk from the root has one port for all: it has an address of its own. */
async function serve(name: string, port: number, address: string, more: string): Promise<void> {
  const server = await startPowerdns([`local-address=${address}`, `local-port=${port}`, more]);
  present.push(server);
  const rrset = (owner: string, type: string, content: string): object => ({
    ...{ name: `${owner}.`, type, ttl: 300, records: [{ content, disabled: false }] },
  });
  const rrsets = [
    rrset(`seldom.${name}`, 'NS', 'ns.elsewhere.example.net.'),
    rrset(`www.${name}`, 'A', '192.0.2.1'),
    rrset(`_sip._udp.${name}`, 'SRV', '1 2 5060 sip.example.net.'),
    rrset(`seldom.${name}`, 'DS', `1 13 2 ${DIGEST}`),
    rrset(`www.${name}`, 'HTTPS', '1 . alpn=h3,h2 ipv4hint=192.0.2.1'),
    rrset(`_443._tcp.www.${name}`, 'TLSA', `3 1 1 ${DIGEST}`),
    rrset(`tel.${name}`, 'NAPTR', '1 2 "u" "E2U+sip" "!^(.*)$!sip:\\\\1@example.com!" .'),
    rrset(`ssh.${name}`, 'SSHFP', `4 2 ${DIGEST}`),
    rrset(`place.${name}`, 'LOC', '52 22 23.000 N 4 53 32.000 E 2.00m 1.00m 10000.00m 10.00m'),
    rrset(`old.${name}`, 'HINFO', '"PC" "NetBSD"'),
    rrset(`long.${name}`, 'TXT', `"${'x'.repeat(255)}" "${'y'.repeat(255)}"`),
  ];
  const nameservers = [`ns.${name.replace('.com', '.net')}.`];
  await server.call('POST', '/zones', { name: `${name}.`, kind: 'Native', nameservers, rrsets });
}

beforeAll(async () => {
  const port = await freePort();
  parent = await startDnsParent('example.com', port);
  await serve('open.example.com', port, '127.0.0.2', 'allow-axfr-ips=127.0.0.0/8');
  await serve('closed.example.com', port, '127.0.0.3', 'disable-axfr=yes');
  resolver = await startDnsServer({ 'ns.open.example.net A': ['127.0.0.2'], 'ns.closed.example.net A': ['127.0.0.3'] });
  await parent.delegate('open.example.com', ['ns.open.example.net']);
  await parent.delegate('closed.example.com', ['ns.closed.example.net']);
  service = await startService({
    settings: { ...withConfig({ dnsRoots: [parent.address] }), DNS_RESOLVERS: resolver.address },
  });
});
afterAll(async () => {
  await service?.close();
  for (const one of [parent, ...present]) await one?.close();
  await resolver?.close();
});

async function scanned(name: string): Promise<Answer['body']> {
  const zone = (await service.call('POST', '/v2/dns_zones', { body: { name } })).body;
  const answer = await service.call('POST', `/v2/dns_zones/${zone.id}/scan`);
  expect(answer.status).toBe(200);
  return answer.body;
}

const namesOf = ({ records }: Answer['body']): string[] =>
  records.map(({ type, name }: { type: string; name: string }) => `${name} ${type}`).sort();

test('every record is found by a transfer, name servers of the apex apart', async () => {
  const found = await scanned('open.example.com');
  const message = 'The HINFO record of old.open.example.com: the type or value is not supported.';
  expect(found.errors).toEqual([{ line: 0, message }]);
  const values = found.records.map(({ type, name, value }: Answer['body']) => `${name} ${type} ${value}`).sort();
  expect(values).toEqual([
    `_443._tcp.www TLSA 3 1 1 ${DIGEST.toUpperCase()}`,
    '_sip._udp SRV sip.example.net',
    `long TXT ${'x'.repeat(255)}${'y'.repeat(255)}`,
    'place LOC 52 22 23.000 N 4 53 32.000 E 2.00m 1.00m 10000.00m 10.00m',
    `seldom DS 1 13 2 ${DIGEST.toUpperCase()}`,
    'seldom NS ns.elsewhere.example.net',
    `ssh SSHFP 4 2 ${DIGEST.toUpperCase()}`,
    String.raw`tel NAPTR 1 2 "u" "E2U+sip" "!^(.*)$!sip:\\1@example.com!" .`,
    'www A 192.0.2.1',
    'www HTTPS 1 . alpn=h3,h2 ipv4hint=192.0.2.1',
  ]);
});

test('where that is refused, names that nobody knows stay hidden', async () => {
  expect(namesOf(await scanned('closed.example.com'))).toEqual(['_443._tcp.www TLSA', 'www A', 'www HTTPS']);
});
