// The dashboard of a service with rows of every kind.
import { SAMPLE_SETTINGS } from '../builds/sample_repository';
import { startDnsServer } from '../dns/dns_server';
import { startService, type TestService } from '../service';
import { openWorld, type World } from '../world';
import { dashboardOf, newPerson, type Window } from './chromium';

interface WorldDashboard {
  service: TestService;
  world: World;
  /** Of the owner, who has signed in. */
  window: Window;
}

/**
 * Around the tests of a file: the dashboard of a service whose world has rows of every kind. Names are resolved by a
 * DNS server of the test.
 */
export function worldDashboard(use: (opened: WorldDashboard) => void | Promise<void>): void {
  let service: TestService;
  dashboardOf(
    async () => {
      const dns = await startDnsServer();
      service = await startService({ settings: { ...SAMPLE_SETTINGS, DNS_RESOLVERS: dns.address } });
      await newPerson(service, 'owner@example.org', 'owner');
      await service.sql(`update users set is_operator = true where email = 'owner@example.org'`, []);
      return {
        url: service.url,
        async close() {
          await service.close();
          await dns.close();
        },
      };
    },
    (window) => use({ service, world: openWorld(service), window }),
  );
}
