// A service whose DNS is a server of the test.
import { startDnsServer, type DnsServer } from './dns_server';
import { domainsOf, INGRESS, IPV4, IPV6, type Domains } from './domains';
import { startService, type TestService } from '../service';

export let dns: DnsServer;

export let service: TestService;

export let domains: Domains;

export let application: string;

/** To be called where tests are declared. */
export function setUpDomainChecks(): void {
  beforeAll(async () => {
    dns = await startDnsServer();
    service = await startService({
      settings: { ...INGRESS, INGRESS_IPS: `${IPV4},${IPV6}`, DNS_RESOLVERS: dns.address },
    });
    domains = domainsOf(service, dns);
    application = await domains.newApplication('shop');
  });
  afterAll(async () => {
    await service?.close();
    await dns?.close();
  });
}
