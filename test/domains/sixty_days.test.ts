/** @tier heavy @quarter 2 @covers drivers/certificates jobs/domains/certificate models/domains/certificate */
// Sixty days with certificates that live for six: names of the platform, the wildcard of its applications, a default
// host name of its own and a custom domain, asked for all the time. Days pass by moving what is stored into the past;
// the authority suggests times of renewal in that time.
import { setTimeout as sleep } from 'node:timers/promises';
import { OWN, openPlatformSite, passTime, type PlatformSite } from '../support/ingress/platform_site';
import { needs } from '../support/runner/programs';
import { startService, type TestService } from '../support/service';
import { waitFor } from '../support/wait_for';

jest.setTimeout(900_000);

const STEP_HOURS = 12;
const LIFE_DAYS = 6;
const DAYS = 60;
const WILDCARD = '*.apps.example.com';

const { describe: described } = needs('pebble', 'openssl', 'named');

described('with an authority', () => {
  let site: PlatformSite;
  let service: TestService;
  let names: string[];
  /** Certificates of their own; the application has that of the wildcard. */
  let ordered: string[];

  beforeAll(async () => {
    site = await openPlatformSite(LIFE_DAYS * 86_400);
    service = await startService({ worker: true, settings: site.settings });
    const served = await site.furnish((method, path, options) => service.call(method, path, options));
    names = [...OWN, ...Object.values(served)];
    ordered = [...OWN, WILDCARD, served.cdn as string, served.domain as string];
  });
  afterAll(async () => {
    await service?.close();
    await site?.close();
  });

  const pass = (hours: number): Promise<void> => passTime(service, site.authority, hours);

  const lacking = (): Promise<{ id: string }[]> =>
    service.sql(
      `select id from certificates where id = any($1) and (chain is null or expires_at <= now()) order by id`,
      [ordered],
    );

  test('all names are served without a gap, and with no more orders than needed', async () => {
    await waitFor('the first certificates', async () => (await lacking()).length === 0, 120_000);
    await pass(0);
    const [problems, serials] = [[] as string[], new Map<string, Set<string>>()];
    let watching = true;
    const watch = (async () => {
      while (watching) {
        for (const name of names)
          await site.serial(name).then(
            (serial) => serials.set(name, (serials.get(name) ?? new Set()).add(serial)),
            (error: NodeJS.ErrnoException) => problems.push(`${name}: ${error.code ?? error.message}`),
          );
        await sleep(50);
      }
    })();
    try {
      for (let hours = 0; hours < DAYS * 24; hours += STEP_HOURS) {
        // An hour without the authority, in the middle, when renewals are due.
        if (hours === (DAYS * 24) / 2) {
          site.authority.isAway = true;
          for (let quarter = 0; quarter < 4; quarter += 1) await pass(0.25);
          site.authority.isAway = false;
        }
        await pass(STEP_HOURS);
        expect(await lacking()).toEqual([]);
      }
    } finally {
      watching = false;
      await watch;
    }
    expect([...new Set(problems)]).toEqual([]);
    const orders = await service.sql<{ hostname: string; count: number; failed: number }>(
      `select hostname, count(*)::int as count, count(*) filter (where outcome <> 'issued')::int as failed
        from certificate_orders group by 1`,
    );
    const all = await service.sql<{ id: string }>('select id from certificates where chain is not null order by id');
    expect(all.map(({ id }) => id)).toEqual([...ordered].sort());
    // Two thirds of six days, a day earlier or later as the authority suggests; one more for the first.
    for (const { hostname, count, failed } of orders) {
      expect([hostname, failed]).toEqual([hostname, 0]);
      expect(count).toBeGreaterThanOrEqual(Math.floor(DAYS / 5));
      expect(count).toBeLessThanOrEqual(DAYS / 3 + 1);
    }
    expect(orders.map(({ hostname }) => hostname).sort()).toEqual([...ordered].sort());
    expect(site.authority.placed).toBe(orders.reduce((sum, { count }) => sum + count, 0));
  });
});
