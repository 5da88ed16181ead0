// Custom domains as lists show them, and their removal.
import { startDnsServer, type DnsServer } from '../support/dns/dns_server';
import { domainsOf, domainsPath, INGRESS, IPV4, IPV6, type Domains } from '../support/dns/domains';
import { startService, type TestService } from '../support/service';

let dns: DnsServer;
let service: TestService;
let domains: Domains;
let application: string;

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

describe('list and remove', () => {
  test('pages, sorts and filters', async () => {
    const listed = await domains.newApplication('listed');
    const names = ['c.list.example', 'a.list.example', 'b.list.example', 'list.example'];
    for (const name of names) await domains.added(name, listed);
    await service.sql(`update domains set status = 'active' where hostname = 'b.list.example'`);
    const get = async (query: string) => (await service.call('GET', `${domainsPath(listed)}?${query}`)).body;
    const hostnames = async (query: string): Promise<string[]> =>
      (await get(query)).data.map((one: { hostname: string }) => one.hostname);
    expect(await hostnames('')).toEqual([...names].reverse());
    expect(await hostnames('sort=created_at')).toEqual(names);
    expect(await hostnames('sort=hostname')).toEqual([...names].sort());
    expect(await hostnames('sort=-hostname')).toEqual([...names].sort().reverse());
    expect(await hostnames('status=active')).toEqual(['b.list.example']);
    expect(await hostnames('hostname=A.list.example')).toEqual(['a.list.example']);
    expect(await hostnames('hostname=nonsense')).toEqual([]);
    expect((await get('status=nonsense')).code).toBe('invalid_query_parameter');
    const walked: string[] = [];
    let cursor = '';
    do {
      const page = await get(`sort=hostname&limit=3${cursor}`);
      walked.push(...page.data.map((one: { hostname: string }) => one.hostname));
      cursor = page.next_cursor ? `&cursor=${page.next_cursor}` : '';
    } while (cursor);
    expect(walked).toEqual([...names].sort());
  });

  test('removal hides at once', async () => {
    const domain = await domains.added('www.removed.example', application);
    const path = domainsPath(application, domain.id);
    expect((await service.call('DELETE', path, { headers: { 'If-Match': '"9-0"' } })).body.code).toBe(
      'precondition_failed',
    );
    expect((await service.call('DELETE', path, { headers: { 'If-Match': '"1-0"' } })).status).toBe(204);
    expect((await service.call('DELETE', path)).status).toBe(404);
    expect((await domains.verify(domain)).status).toBe(404);
    expect(await domains.find('www.removed.example', application)).toBeUndefined();
  });

  test('every change is in the activity', async () => {
    const own = await domains.newApplication('audited');
    const target = await domains.newApplication('audited-target');
    const domain = await domains.added('www.audited.example', own);
    await domains.verified(domain);
    await domains.move(domain, { application_id: target });
    await service.call('DELETE', domainsPath(target, domain.id));
    const rows = await service.sql(
      'select action, resource_type, resource_name from activity where resource_id = $1 order by id',
      [domain.id],
    );
    expect(rows).toEqual(
      ['domain.added', 'domain.checked', 'domain.moved', 'domain.removed'].map((action) => ({
        action,
        resource_type: 'domain',
        resource_name: 'www.audited.example',
      })),
    );
  });
});
