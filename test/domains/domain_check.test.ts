// Whether the records of a custom domain are there: asked for at once, and by the loop.
import { setTimeout as sleep } from 'node:timers/promises';
import { mintId } from '../../core/ids';
import { domainsOf, INGRESS, instruction, IPV4, IPV6 } from '../support/dns/domains';
import { startService } from '../support/service';
import { application, dns, domains, service, setUpDomainChecks } from '../support/dns/domain_check_cases';

setUpDomainChecks();

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
