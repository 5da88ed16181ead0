// Whether the records of a custom domain are there: asked for at once, and by the loop.
import { setTimeout as sleep } from 'node:timers/promises';
import { mintId } from '../core/ids';
import { startDnsServer, type DnsServer } from './support/dns_server';
import {
  domainsOf,
  domainsPath,
  INGRESS,
  instruction,
  IPV4,
  IPV6,
  type DomainBody,
  type Domains,
} from './support/domains';
import { startService, type TestService } from './support/service';

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

describe('verify', () => {
  test('needs the routing and the proof of ownership', async () => {
    const domain = await domains.added('www.both.example', application);
    const nothing = await domains.verified(domain);
    expect(nothing).toMatchObject({ status: 'pending', last_checked_at: expect.any(String), verified_at: null });
    expect(nothing.status_reason).toBe(
      'The CNAME record of www.both.example was not found. The TXT record of ' +
        '_platform-verification.www.both.example was not found.',
    );
    domains.obey(instruction(domain, 'ownership'));
    const owned = await domains.verified(domain);
    expect(owned.status).toBe('pending');
    expect([instruction(owned, 'ownership').status, instruction(owned, 'routing').status]).toEqual([
      'verified',
      'pending',
    ]);
    domains.obey(instruction(domain, 'routing'));
    const active = await domains.verified(domain);
    expect(active).toMatchObject({ status: 'active', status_reason: null });
    expect(active.verified_at).toBe(active.last_checked_at);
    expect(instruction(active, 'routing')).toMatchObject({
      status: 'verified',
      observed_values: ['ingress.example.net'],
    });
    expect(await domains.find('www.both.example', application)).toEqual(active);
    expect((await domains.verified(domain)).verified_at).toBe(active.verified_at);
  });

  test('routing alone proves nothing', async () => {
    const domain = await domains.added('www.routed.example', application);
    domains.obey(instruction(domain, 'routing'));
    dns.set(instruction(domain, 'ownership').name, 'TXT', ['somebody else', 'nul \u0000 inside']);
    const answer = await domains.verified(domain);
    expect(answer.status).toBe('pending');
    expect(instruction(answer, 'ownership')).toMatchObject({
      status: 'failed',
      observed_values: ['nul \ufffd inside', 'somebody else'],
    });
    expect(answer.status_reason).toBe('The TXT record of _platform-verification.www.routed.example has another value.');
  });

  test('shows a CNAME that leads elsewhere', async () => {
    const domain = await domains.added('www.elsewhere.example', application);
    domains.obey(instruction(domain, 'ownership'));
    dns.set('www.elsewhere.example', 'CNAME', ['other.example.org']);
    dns.set('other.example.org', 'A', ['198.51.100.7']);
    const answer = await domains.verified(domain);
    expect(answer.status).toBe('pending');
    expect(instruction(answer, 'routing')).toMatchObject({ status: 'failed', observed_values: ['other.example.org'] });
  });

  test('takes a chain of CNAMEs, or plain addresses, that end at the ingress', async () => {
    const chained = await domains.added('www.chained.example', application);
    const plain = await domains.added('www.plain.example', application);
    for (const domain of [chained, plain]) domains.obey(instruction(domain, 'ownership'));
    dns.set('www.chained.example', 'CNAME', ['chained.example']);
    dns.set('chained.example', 'A', [IPV4]);
    dns.set('www.plain.example', 'AAAA', [IPV6]);
    expect((await domains.verified(chained)).status).toBe('active');
    expect((await domains.verified(plain)).status).toBe('active');
  });

  test('an apex points to the addresses, and to no other', async () => {
    const domain = await domains.added('apex.example', application);
    expect(domain.type).toBe('apex');
    expect([instruction(domain, 'routing', 'A').value, instruction(domain, 'routing', 'AAAA').value]).toEqual([
      IPV4,
      IPV6,
    ]);
    expect(domain.dns_instructions).toHaveLength(3);
    domains.obey(instruction(domain, 'ownership'));
    dns.set('apex.example', 'A', [IPV4, '198.51.100.7']);
    const stranger = await domains.verified(domain);
    expect([stranger.status, instruction(stranger, 'routing', 'A').status]).toEqual(['pending', 'failed']);
    dns.set('apex.example', 'A', [IPV4]);
    dns.set('apex.example', 'AAAA', ['2001:db8:0:0::99']);
    expect((await domains.verified(domain)).status).toBe('pending');
    dns.set('apex.example', 'AAAA', []);
    const active = await domains.verified(domain);
    expect([
      active.status,
      instruction(active, 'routing', 'A').status,
      instruction(active, 'routing', 'AAAA').status,
    ]).toEqual(['active', 'verified', 'pending']);
    dns.set('apex.example', 'AAAA', ['2001:0db8:0::10']);
    expect(instruction(await domains.verified(domain), 'routing', 'AAAA').status).toBe('verified');
  });

  test('a wildcard also shows the record of its certificate', async () => {
    const domain = await domains.added('*.star.example', application);
    expect(instruction(domain, 'routing')).toMatchObject({
      type: 'CNAME',
      name: '*.star.example',
      value: 'ingress.example.net',
    });
    expect(instruction(domain, 'ownership').name).toBe('_platform-verification.star.example');
    expect(instruction(domain, 'certificate')).toMatchObject({
      type: 'CNAME',
      name: '_acme-challenge.star.example',
      value: expect.stringMatching(/^[0-9a-f]{32}\.acme\.ingress\.example\.net$/),
    });
    domains.obey(instruction(domain, 'routing'));
    domains.obey(instruction(domain, 'ownership'));
    const active = await domains.verified(domain);
    expect([active.status, instruction(active, 'certificate').status]).toEqual(['active', 'pending']);
    domains.obey(instruction(domain, 'certificate'));
    expect(instruction(await domains.verified(domain), 'certificate').status).toBe('verified');
  });

  test('answers 502 and changes nothing when the DNS gives no answer', async () => {
    const domain = await domains.added('www.servfail.example', application);
    domains.obey(instruction(domain, 'routing'));
    domains.obey(instruction(domain, 'ownership'));
    const active = await domains.verified(domain);
    dns.fail(instruction(domain, 'ownership').name);
    const { status, body } = await domains.verify(domain);
    expect([status, body.code, body.retryable]).toEqual([502, 'provider_error', true]);
    expect(await domains.find('www.servfail.example', application)).toEqual(active);
  });

  test('waits for a silent DNS 5 s at most, and locks nothing meanwhile', async () => {
    const domain = await domains.added('www.silent.example', application);
    dns.ignore('www.silent.example');
    const started = Date.now();
    const waiting = domains.verify(domain);
    await sleep(300);
    const open = await service.sql<{ open: number }>(
      `select count(*)::int as open from pg_stat_activity where datname = current_database()
        and state = 'idle in transaction'`,
    );
    expect(open).toEqual([{ open: 0 }]);
    const target = await domains.newApplication('silent-target');
    expect((await domains.move(domain, { application_id: target })).status).toBe(200);
    expect((await waiting).status).toBe(404);
    expect((await domains.verify({ id: domain.id, application_id: target })).body.code).toBe('provider_error');
    expect(Date.now() - started).toBeLessThan(12_000);
  });

  test('does not raise the version, and makes a step of the loop void that asked earlier', async () => {
    const domain = await domains.added('www.fenced.example', application);
    await service.sql(
      `update domains set lease_owner = 'worker', lease_until = now() + interval '1 minute', fence = 7 where id = $1`,
      [domain.id],
    );
    const { headers } = await domains.verify(domain);
    expect(headers.get('etag')).toBe('"1-1"');
    expect(await service.sql('select fence, lease_owner, version from domains where id = $1', [domain.id])).toEqual([
      { fence: 8, lease_owner: null, version: 1 },
    ]);
  });

  test('404 for what is not there', async () => {
    const other = await domains.newApplication('not-its');
    const domain = await domains.added('www.notits.example', application);
    expect((await domains.verify({ id: domain.id, application_id: other })).status).toBe(404);
    expect((await domains.verify({ id: mintId('dom'), application_id: application })).status).toBe(404);
  });
});

test('without known addresses an apex has to lead where the ingress leads', async () => {
  const nowhere = await startService({ settings: { ...INGRESS, DNS_RESOLVERS: dns.address } });
  try {
    const theirs = domainsOf(nowhere, dns);
    const domain = await theirs.added('flat.example', await theirs.newApplication('flat'));
    expect(instruction(domain, 'routing')).toMatchObject({
      type: 'ALIAS',
      name: 'flat.example',
      value: 'ingress.example.net',
    });
    theirs.obey(instruction(domain, 'ownership'));
    dns.set('ingress.example.net', 'A', ['192.0.2.77']);
    dns.set('flat.example', 'A', ['192.0.2.78']);
    const wrong = await theirs.verified(domain);
    expect([wrong.status, instruction(wrong, 'routing').status]).toEqual(['pending', 'failed']);
    dns.set('flat.example', 'A', ['192.0.2.77']);
    const active = await theirs.verified(domain);
    expect([active.status, instruction(active, 'routing').status]).toEqual(['active', 'verified']);
  } finally {
    await nowhere.close();
  }
});

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
