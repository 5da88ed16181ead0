// The loop looks for the records of a custom domain until they are there.
import { setTimeout as sleep } from 'node:timers/promises';
import {
  domainsOf,
  domainsPath,
  INGRESS,
  instruction,
  IPV4,
  type DomainBody,
  type Domains,
} from '../support/dns/domains';
import { startService, type TestService } from '../support/service';
import { dns, setUpDomainChecks } from '../support/dns/domain_check_cases';

setUpDomainChecks();

describe('the loop', () => {
  let working: TestService;
  let ours: Domains;
  let own: string;

  beforeAll(async () => {
    working = await startService({
      worker: true,
      settings: { ...INGRESS, INGRESS_IPS: IPV4, DNS_RESOLVERS: dns.address },
    });
    ours = domainsOf(working, dns);
    own = await ours.newApplication('loop');
  });

  afterAll(() => working?.close());

  /** Lets time pass: shifts the clocks of a domain and makes it due. */
  const shift = (id: string, sets: string): Promise<unknown[]> =>
    working.sql(`update domains set ${sets}, next_at = now() where id = $1`, [id]);

  async function until(hostname: string, expected: object): Promise<DomainBody> {
    for (let turn = 0; turn < 100; turn += 1) {
      const domain = await ours.find(hostname, own);
      try {
        expect(domain).toMatchObject(expected);
        return domain as DomainBody;
      } catch {
        await sleep(100);
      }
    }
    throw new Error(
      `${hostname} does not become ${JSON.stringify(expected)}: ${JSON.stringify(await ours.find(hostname, own))}`,
    );
  }

  const nextInSeconds = async (id: string): Promise<number> =>
    (
      await working.sql<{ s: number }>(
        'select extract(epoch from next_at - last_checked_at)::float8 as s from domains where id = $1',
        [id],
      )
    )[0]?.s ?? 0;

  test('finds the records by itself, and looks often at first', async () => {
    const domain = await ours.added('www.found.example', own);
    await until(domain.hostname, { status: 'pending', last_checked_at: expect.any(String) });
    const soon = await nextInSeconds(domain.id);
    expect(soon > 55 && soon < 70).toBe(true);
    domain.dns_instructions.forEach(ours.obey);
    await shift(domain.id, `created_at = now() - interval '2 hours'`);
    const active = await until(domain.hostname, { status: 'active', verified_at: expect.any(String) });
    expect(active.updated_at > domain.updated_at).toBe(true);
    const later = await nextInSeconds(domain.id);
    expect(later > 3500 && later < 4000).toBe(true);
  });

  test('gives up after 72 hours without records, and takes it back when they come', async () => {
    const domain = await ours.added('www.late.example', own);
    await shift(domain.id, `created_at = now() - interval '71 hours 59 minutes'`);
    await until(domain.hostname, { status: 'pending', status_reason: expect.stringContaining('was not found') });
    await shift(domain.id, `created_at = now() - interval '72 hours'`);
    await until(domain.hostname, { status: 'failed', status_reason: expect.stringContaining('was not found') });
    domain.dns_instructions.forEach(ours.obey);
    await shift(domain.id, 'attempts = 0');
    await until(domain.hostname, { status: 'active', status_reason: null });
  });

  test('an active domain survives a gap, but not 72 hours', async () => {
    const domain = await ours.added('www.gap.example', own);
    domain.dns_instructions.forEach(ours.obey);
    await shift(domain.id, 'attempts = 0');
    const active = await until(domain.hostname, { status: 'active' });
    dns.set(domain.hostname, 'CNAME', []);
    await shift(domain.id, 'attempts = 0');
    await until(domain.hostname, {
      status: 'active',
      status_reason: expect.stringContaining('CNAME'),
      verified_at: active.verified_at,
    });
    ours.obey(instruction(domain, 'routing'));
    await shift(domain.id, `missing_since = now() - interval '73 hours'`);
    await until(domain.hostname, { status: 'active', status_reason: null });
    dns.set(domain.hostname, 'CNAME', []);
    await shift(domain.id, `missing_since = now() - interval '73 hours'`);
    await until(domain.hostname, { status: 'failed', verified_at: active.verified_at });
    expect((await ours.verified(domain)).status).toBe('failed');
    ours.obey(instruction(domain, 'routing'));
    expect((await ours.verified(domain)).status).toBe('active');
    expect(await working.sql('select missing_since from domains where id = $1', [domain.id])).toEqual([
      { missing_since: null },
    ]);
  });

  test('a DNS without an answer proves nothing', async () => {
    const domain = await ours.added('www.outage.example', own);
    domain.dns_instructions.forEach(ours.obey);
    await shift(domain.id, 'attempts = 0');
    const active = await until(domain.hostname, { status: 'active' });
    dns.fail(instruction(domain, 'ownership').name);
    await shift(domain.id, `missing_since = now() - interval '100 hours'`);
    await sleep(2_000);
    expect(await ours.find(domain.hostname, own)).toEqual(active);
    expect(await working.sql('select next_at > now() as waits from domains where id = $1', [domain.id])).toEqual([
      { waits: true },
    ]);
  });

  test('a removed domain is torn down, and its name is free again', async () => {
    const domain = await ours.added('www.again.example', own);
    await working.call('DELETE', domainsPath(own, domain.id));
    for (
      let turn = 0;
      turn < 50 && (await working.sql('select 1 from domains where id = $1', [domain.id])).length;
      turn += 1
    )
      await sleep(100);
    expect((await ours.add('www.again.example', own)).status).toBe(201);
  });

  test('an application takes its domains along', async () => {
    const leaving = await ours.newApplication('leaving');
    await ours.added('www.leaving.example', leaving);
    expect((await working.call('DELETE', `/v2/applications/${leaving}`)).status).toBe(204);
    for (
      let turn = 0;
      turn < 100 && (await working.sql('select 1 from applications where id = $1', [leaving])).length;
      turn += 1
    )
      await sleep(100);
    expect(await working.sql('select 1 from applications where id = $1', [leaving])).toEqual([]);
    expect((await ours.add('www.leaving.example', own)).status).toBe(201);
  });
});
