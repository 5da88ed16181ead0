/** @tier heavy @quarter 3 @covers drivers/certificates jobs/domains/certificate.ts */
// Certificates of wildcards by DNS-01 through the zone of the project: ordered of pebble, which asks our name server.
import { X509Certificate } from 'node:crypto';
import { findServedCertificate } from '../../../models/domains/certificate';
import { startDnsParent, type DnsParent } from '../../support/dns/dns_parent';
import { domainsPath } from '../../support/dns/domains';
import { freePort } from '../../support/processes/free_port';
import { openPebble, type Pebble } from '../../support/ingress/pebble';
import { needs } from '../../support/runner/programs';
import { startService, type Answer, type TestService } from '../../support/service';
import { withConfig } from '../../support/config';

const { describe: described } = needs('pebble', 'openssl', 'named');
jest.setTimeout(60_000);

described('with pebble', () => {
  let service: TestService;
  let parent: DnsParent;
  let pebble: Pebble;
  let zone: Answer['body'];
  let application: string;

  beforeAll(async () => {
    const port = await freePort();
    parent = await startDnsParent('example.com', await freePort());
    // No HTTP challenge could succeed: nobody listens there.
    pebble = await openPebble({ httpPort: 1, dns: `127.0.0.1:${port}`, validSeconds: 604_800 });
    await pebble.start();
    service = await startService({
      worker: true,
      settings: {
        ...{ DNS_PORT: String(port), ...withConfig({ dnsRoots: [parent.address] }), APPS_DOMAIN: 'apps.example.net' },
        ...{ ACME_DIRECTORY: pebble.directory, ACME_CA_FILE: pebble.caFile },
      },
    });
    application = (await service.call('POST', '/v2/applications', { body: { name: 'shop' } })).body.id;
    zone = (await service.call('POST', '/v2/dns_zones', { body: { name: 'shop.example.com' } })).body;
    await parent.delegate(zone.name, zone.name_servers);
    await service.call('POST', `/v2/dns_zones/${zone.id}/verify`);
  });
  afterAll(async () => {
    await service?.close();
    await pebble?.close();
    await parent?.close();
  });

  async function certificateOf(id: string): Promise<Answer['body']> {
    for (let turn = 0; turn < 300; turn += 1) {
      const { body } = await service.call('GET', domainsPath(application));
      const found = body.data.find((one: { id: string }) => one.id === id).certificate;
      if (['issued', 'failed'].includes(found.status)) return found;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error('no certificate within 30 seconds');
  }
  const add = async (body: object): Promise<Answer['body']> =>
    (await service.call('POST', domainsPath(application), { body })).body;

  test('one request: the records are made, the wildcard is active, and its certificate is issued', async () => {
    const domain = await add({ hostname: '*.shop.example.com' });
    expect(domain.status).toBe('active');
    expect(await certificateOf(domain.id)).toMatchObject({ status: 'issued', error: null });
    const { database, secrets } = service.platform;
    const served = await findServedCertificate(database, secrets, 'any.shop.example.com');
    expect(new X509Certificate(served?.chain ?? '').subjectAltName).toBe('DNS:*.shop.example.com');
    // The challenge was taken back.
    const records = (await service.call('GET', `/v2/dns_zones/${zone.id}/records`)).body.data;
    expect(records.filter(({ name }: { name: string }) => name.startsWith('_acme'))).toEqual([]);
  });

  test('a record of the user in the way of the challenge is named', async () => {
    const body = { type: 'CNAME', name: '_acme-challenge.sub', value: 'elsewhere.example.net' };
    await service.call('POST', `/v2/dns_zones/${zone.id}/records`, { body });
    const domain = await add({ hostname: '*.sub.shop.example.com' });
    const { status, error } = await certificateOf(domain.id);
    expect([status, error]).toEqual([
      'failed',
      expect.stringContaining('another record of _acme-challenge.sub.shop.example.com: CNAME elsewhere.example.net'),
    ]);
  });
});
