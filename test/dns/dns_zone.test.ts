// Operations: listDnsZones.
// DNS zones: fields, rules, and what the name server of the host answers for them (docs/contract/resources.md §12.1).
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { startDnsParent, type DnsParent } from '../support/dns/dns_parent';
import { freePort } from '../support/processes/free_port';
import { startService, type Answer, type TestService } from '../support/service';
import { fileNeeds } from '../support/runner/programs';
import { withConfig } from '../support/config';

fileNeeds('named', 'dig');

type Body = Answer['body'];

const run = promisify(execFile);

let service: TestService;
let parent: DnsParent;
let port: number;

beforeAll(async () => {
  port = await freePort();
  parent = await startDnsParent('example.com', await freePort());
  service = await startService({
    worker: true,
    settings: { DNS_PORT: String(port), ...withConfig({ dnsRoots: [parent.address] }) },
  });
});

afterAll(async () => {
  await service.close();
  await parent.close();
});

let serial = 0;
const newName = (): string => `zone${(serial += 1)}.example.com`;

async function created(name = newName()): Promise<Body> {
  const made = await service.call('POST', '/v2/dns_zones', { body: { name } });
  expect([made.status, made.text]).toEqual([201, expect.anything()]);
  return made.body;
}

const addRecord = (zone: string, body: object): Promise<Body> =>
  service.call('POST', `/v2/dns_zones/${zone}/records`, { body });

/** The answers of dig, line by line. */
async function dig(...args: string[]): Promise<string[]> {
  const { stdout } = await run('dig', ['@127.0.0.1', '-p', String(port), '+short', '+tries=1', '+time=2', ...args]);
  return stdout.trim().split('\n').filter(Boolean).sort();
}

async function untilServed(expected: string[], ...args: string[]): Promise<void> {
  for (let turn = 0; turn < 100; turn += 1) {
    if (JSON.stringify(await dig(...args).catch(() => [])) === JSON.stringify(expected)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(await dig(...args)).toEqual(expected);
}

describe('creation', () => {
  it('answers everything that is promised', async () => {
    const zone = await created('promised.example.org');
    expect(zone).toMatchObject({
      id: expect.stringMatching(/^dnz_/),
      name: 'promised.example.org',
      default_ttl: 3600,
      soa: { email: 'hostmaster@promised.example.org', refresh: 7200, retry: 3600, expire: 1209600, minimum: 3600 },
      name_servers: [expect.stringMatching(/^ns1\.\w{6}\.dns\./), expect.stringMatching(/^ns2\.\w{6}\.dns\./)],
      record_count: 2,
      dnssec_status: 'disabled',
      status: 'pending',
      delegation: { state: 'unknown', observed_name_servers: [] },
    });
    expect((await service.call('GET', `/v2/dns_zones/${zone.id}/records`)).body.data).toHaveLength(2);
  });

  it.each(['com', 'co.uk', 'localhost', 'a..example.com'])('refuses the name %s', async (name) => {
    const answer = await service.call('POST', '/v2/dns_zones', { body: { name } });
    expect([answer.status, answer.body.errors?.[0]?.field]).toEqual([422, 'name']);
  });

  it('refuses the same name twice in a project, and lets another project claim it', async () => {
    const { name } = await created();
    expect((await service.call('POST', '/v2/dns_zones', { body: { name } })).body.code).toBe('domain_taken');
    const other = await service.newProject();
    const claim = await service.call('POST', `/v2/projects/${other.id}/dns_zones`, { body: { name } });
    expect(claim.status).toBe(201);
  });

  it('is refused with engine_unavailable where the operator has switched the name server off', async () => {
    const off = await startService({ settings: { DNS_PORT: '0' } });
    try {
      const answer = await off.call('POST', '/v2/dns_zones', { body: { name: 'off.example.com' } });
      expect([answer.status, answer.body.code]).toEqual([409, 'engine_unavailable']);
      expect(answer.body.detail).toContain('DNS_PORT');
    } finally {
      await off.close();
    }
  });
});

describe('the name server', () => {
  it('answers for a new zone, for its records, and no longer for a deleted one', async () => {
    const zone = await created();
    await untilServed(zone.name_servers.map((name: string) => `${name}.`).sort(), zone.name, 'NS');
    await addRecord(zone.id, { type: 'A', name: 'www', value: '192.0.2.10' });
    await untilServed(['192.0.2.10'], `www.${zone.name}`, 'A');
    await service.call('DELETE', `/v2/dns_zones/${zone.id}`);
    await untilServed([], `www.${zone.name}`, 'A');
  });

  it('serves changed SOA values with a higher serial', async () => {
    const zone = await created();
    const changed = await service.call('PATCH', `/v2/dns_zones/${zone.id}`, {
      body: { soa: { email: 'dns.team@example.org', minimum: 120 } },
    });
    expect(changed.body.soa).toMatchObject({ email: 'dns.team@example.org', minimum: 120, refresh: 7200 });
    expect(changed.body.serial).toBeGreaterThan(zone.serial);
    const [server] = zone.name_servers;
    const soa = `${server}. dns\\.team.example.org. ${changed.body.serial} 7200 3600 1209600 120`;
    await untilServed([soa], zone.name, 'SOA');
  });

  it('serves none of several pending claims, and the one that is left when the others are deleted', async () => {
    const zone = await created();
    await untilServed(zone.name_servers.map((name: string) => `${name}.`).sort(), zone.name, 'NS');
    const other = await service.newProject();
    const options = { key: other.key, project: other.id };
    const claim = (await service.call('POST', '/v2/dns_zones', { ...options, body: { name: zone.name } })).body;
    await untilServed([], zone.name, 'NS');
    await service.call('DELETE', `/v2/dns_zones/${zone.id}`);
    await untilServed(claim.name_servers.map((name: string) => `${name}.`).sort(), zone.name, 'NS');
  });
});

describe('delegation', () => {
  const verify = (id: string): Promise<Body> => service.call('POST', `/v2/dns_zones/${id}/verify`);

  it('makes a zone active once the parent zone lists its name servers', async () => {
    const zone = await created();
    await parent.delegate(zone.name, zone.name_servers);
    const { body } = await verify(zone.id);
    expect(body).toMatchObject({ status: 'active', status_reason: null, last_checked_at: expect.any(String) });
    expect(body.delegation).toEqual({ state: 'delegated', observed_name_servers: [...zone.name_servers].sort() });
  });

  it('says what the parent zone says otherwise', async () => {
    const zone = await created();
    expect((await verify(zone.id)).body).toMatchObject({ status: 'pending', delegation: { state: 'not_delegated' } });
    await parent.delegate(zone.name, ['ns1.elsewhere.example.net']);
    const elsewhere = (await verify(zone.id)).body;
    expect(elsewhere).toMatchObject({ status: 'pending', delegation: { state: 'elsewhere' } });
    expect(elsewhere.status_reason).toContain('ns1.elsewhere.example.net');
    await parent.delegate(zone.name, ['ns1.elsewhere.example.net', zone.name_servers[0]]);
    expect((await verify(zone.id)).body).toMatchObject({ status: 'active', delegation: { state: 'partial' } });
  });

  it('keeps a zone active for 24 hours after its delegation went elsewhere', async () => {
    const zone = await created();
    await parent.delegate(zone.name, zone.name_servers);
    await verify(zone.id);
    await parent.delegate(zone.name, ['ns1.elsewhere.example.net']);
    expect((await verify(zone.id)).body.status).toBe('active');
    await service.sql(`update dns_zones set elsewhere_since = now() - interval '25 hours' where id = $1`, [zone.id]);
    expect((await verify(zone.id)).body.status).toBe('moved');
  });

  it('decides which of two claims is served, and blocks later ones', async () => {
    const first = await created();
    const other = await service.newProject();
    const options = { key: other.key, project: other.id };
    const second = (await service.call('POST', '/v2/dns_zones', { ...options, body: { name: first.name } })).body;
    await parent.delegate(first.name, second.name_servers);
    const verified = await service.call('POST', `/v2/dns_zones/${second.id}/verify`, options);
    expect(verified.body).toMatchObject({ status: 'active' });
    await untilServed(second.name_servers.map((name: string) => `${name}.`).sort(), first.name, 'NS');
    const third = await service.newProject();
    const late = { key: third.key, project: third.id };
    for (const name of [first.name, `below.${first.name}`]) {
      const refused = await service.call('POST', '/v2/dns_zones', { ...late, body: { name } });
      expect([refused.status, refused.body.code]).toEqual([409, 'domain_taken']);
    }
  });

  it('answers provider_error where no server of the parent answers', async () => {
    const silent = await startService({
      settings: { DNS_PORT: String(await freePort()), ...withConfig({ dnsRoots: [`127.0.0.1:${await freePort()}`] }) },
    });
    try {
      const zone = (await silent.call('POST', '/v2/dns_zones', { body: { name: 'silent.example.com' } })).body;
      const verified = await silent.call('POST', `/v2/dns_zones/${zone.id}/verify`);
      expect([verified.status, verified.body.code]).toEqual([502, 'provider_error']);
    } finally {
      await silent.close();
    }
  });
});
