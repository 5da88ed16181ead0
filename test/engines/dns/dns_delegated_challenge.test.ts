/** @tier heavy @quarter 3 @covers jobs/domains/certificate */
// The wildcard of all applications where another provider has the zone of the domain: its owner delegates the name of
// the challenge alone. Ordered of pebble, which asks our name server.
import { X509Certificate } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { findServedCertificate } from '../../../models/domains/certificate';
import { withConfig } from '../../support/config';
import { startDnsParent, type DnsParent } from '../../support/dns/dns_parent';
import { openPebble, type Pebble } from '../../support/ingress/pebble';
import { freePort } from '../../support/processes/free_port';
import { fileNeeds } from '../../support/runner/programs';
import { startService, type TestService } from '../../support/service';
import { waitFor } from '../../support/wait_for';

fileNeeds('pebble', 'openssl', 'named');
jest.setTimeout(90_000);
const WILDCARD = '*.apps.example.com';
const CHALLENGE = '_acme-challenge.apps.example.com';

let service: TestService;
let parent: DnsParent;
let pebble: Pebble;
let dnsPort: number;

beforeAll(async () => {
  dnsPort = await freePort();
  parent = await startDnsParent('example.com', await freePort());
  // No HTTP challenge could succeed: nobody listens there.
  pebble = await openPebble({ httpPort: 1, dns: `127.0.0.1:${dnsPort}`, validSeconds: 604_800 });
  await pebble.start();
  service = await startService({
    worker: true,
    settings: {
      ...{ DNS_PORT: String(dnsPort), ...withConfig({ dnsRoots: [parent.address] }), DNS_DOMAIN: 'dns.example.com' },
      ...{ APPS_DOMAIN: 'apps.example.com', INGRESS_TLS_PORT: String(await freePort()) },
      ...{ ACME_DIRECTORY: pebble.directory, ACME_CA_FILE: pebble.caFile },
    },
  });
});
afterAll(async () => {
  await service?.close();
  await pebble?.close();
  await parent?.close();
});

async function stateOf(id: string): Promise<{ chain: string | null; reason: string | null; soon: boolean }> {
  const [row] = await service.sql<{ chain: string | null; reason: string | null; soon: boolean }>(
    `select chain, reason, next_at < now() + interval '1 minute' as soon from certificates where id = $1`,
    [id],
  );
  return row ?? { chain: null, reason: null, soon: true };
}

test('without the delegation nothing is ordered, and nothing is wrong', async () => {
  await waitFor('the first look', async () => !(await stateOf(WILDCARD)).soon, 30_000);
  expect(await stateOf(WILDCARD)).toMatchObject({ chain: null, reason: null });
  expect(await service.sql('select 1 from certificate_orders')).toEqual([]);
});

test('once the name of the challenge is delegated here, one certificate serves all applications', async () => {
  await parent.delegate(CHALLENGE, ['ns1.dns.example.com']);
  // For so long the answer of before is kept.
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  await service.sql('update certificates set next_at = now() where id = $1', [WILDCARD]);
  await service.call('POST', '/v2/applications', { body: { name: 'shop' } });
  await waitFor('the wildcard', async () => (await stateOf(WILDCARD)).chain !== null, 30_000).catch(async (error) => {
    throw new Error(`${error.message}: ${JSON.stringify(await service.sql('select id, reason from certificates'))}`);
  });
  const { database, secrets } = service.platform;
  const served = await findServedCertificate(database, secrets, 'any.apps.example.com');
  expect(new X509Certificate(served?.chain ?? '').subjectAltName).toBe(`DNS:${WILDCARD}`);
  // Names below it waited for it.
  expect(await service.sql('select hostname, outcome from certificate_orders')).toEqual([
    { hostname: WILDCARD, outcome: 'issued' },
  ]);
});

test('the challenge is taken back, and nobody can have a zone of its name', async () => {
  const resolver = new Resolver({ timeout: 1_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${dnsPort}`]);
  await waitFor('the end of the challenge', async () => {
    const failure = await resolver.resolveTxt(CHALLENGE).catch(({ code }: NodeJS.ErrnoException) => code);
    return failure === 'EREFUSED';
  });
  expect((await service.call('POST', '/v2/dns_zones', { body: { name: CHALLENGE } })).status).toBe(422);
});
