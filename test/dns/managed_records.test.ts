// Custom domains that set themselves up: their records in the zone of the project, made, kept and removed with them.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { startDnsParent, type DnsParent } from '../support/dns/dns_parent';
import { startDnsServer, type DnsServer } from '../support/dns/dns_server';
import { domainsOf, domainsPath, INGRESS, IPV4, type DomainBody, type Domains } from '../support/dns/domains';
import { freePort } from '../support/processes/free_port';
import { startService, type Answer, type TestService } from '../support/service';
import { fileNeeds } from '../support/runner/programs';
import { withConfig } from '../support/config';

fileNeeds('named', 'dig');

type Body = Answer['body'];
const run = promisify(execFile);

let service: TestService;
let parent: DnsParent;
let resolver: DnsServer;
let domains: Domains;
let application: string;
let port: number;

beforeAll(async () => {
  port = await freePort();
  parent = await startDnsParent('example.com', await freePort());
  resolver = await startDnsServer();
  service = await startService({
    worker: true,
    settings: {
      ...INGRESS,
      INGRESS_IPS: IPV4,
      DNS_PORT: String(port),
      ...withConfig({ dnsRoots: [parent.address] }),
      DNS_RESOLVERS: resolver.address,
    },
  });
  domains = domainsOf(service, resolver);
  application = await domains.newApplication('shop');
});

afterAll(async () => {
  await service?.close();
  await parent?.close();
  await resolver?.close();
});

async function newZone(name: string): Promise<Body> {
  return (await service.call('POST', '/v2/dns_zones', { body: { name } })).body;
}

async function delegated(name: string): Promise<Body> {
  const zone = await newZone(name);
  await parent.delegate(name, zone.name_servers);
  expect((await service.call('POST', `/v2/dns_zones/${zone.id}/verify`)).body.status).toBe('active');
  return zone;
}

const recordsOf = async (zone: Body): Promise<Body[]> =>
  (await service.call('GET', `/v2/dns_zones/${zone.id}/records?limit=100`)).body.data;
const managedOf = async (zone: Body, owner: { id: string }): Promise<string[]> =>
  (await recordsOf(zone)).filter((one) => one.managed_by?.id === owner.id).map((one) => `${one.type} ${one.name}`);
const addRecord = (zone: Body, body: object): Promise<Answer> =>
  service.call('POST', `/v2/dns_zones/${zone.id}/records`, { body });

async function until<T>(read: () => Promise<T>, expected: unknown): Promise<T> {
  for (let turn = 0; turn < 100; turn += 1) {
    const found = await read();
    try {
      expect(found).toEqual(expected);
      return found;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  const last = await read();
  expect(last).toEqual(expected);
  return last;
}

async function dig(...args: string[]): Promise<string[]> {
  const { stdout } = await run('dig', ['@127.0.0.1', '-p', String(port), '+short', '+tries=1', '+time=2', ...args]);
  return stdout.trim().split('\n').filter(Boolean).sort();
}

test('in a delegated zone, one request makes the records, and the domain is active at once', async () => {
  const zone = await delegated('one.example.com');
  const domain = await domains.added('shop.one.example.com', application);
  expect(domain).toMatchObject({ status: 'active', status_reason: null, dns: 'automatic' });
  expect(domain.dns_instructions.map(({ status }) => status)).toEqual(['verified', 'verified']);
  const made = (await recordsOf(zone)).filter(({ managed_by }) => managed_by);
  expect(made).toMatchObject([
    { type: 'TXT', name: '_platform-verification.shop', managed_by: { type: 'domain', id: domain.id } },
    { type: 'CNAME', name: 'shop', value: 'ingress.example.net', managed_by: { type: 'domain', id: domain.id } },
  ]);
  await until(() => dig('shop.one.example.com', 'CNAME'), ['ingress.example.net.']);
  const [certificate] = await service.sql('select domain_id from certificates where id = $1', [domain.hostname]);
  expect(certificate).toEqual({ domain_id: domain.id });
  // Nobody else changes them.
  for (const [method, body] of [
    ['PATCH', { value: 'elsewhere.example.net' }],
    ['DELETE', undefined],
  ] as const) {
    const refused = await service.call(method, `/v2/dns_zones/${zone.id}/records/${made[1]?.id}`, { body });
    expect([refused.status, refused.body.code]).toEqual([409, 'resource_protected']);
  }
  await service.call('DELETE', domainsPath(application, domain.id));
  expect(await managedOf(zone, domain)).toEqual([]);
  await until(() => dig('shop.one.example.com', 'CNAME'), []);
});

test('the apex of a zone gets an ALIAS, and a wildcard its own name', async () => {
  const zone = await delegated('apex.example.com');
  const apex = await domains.added('apex.example.com', application);
  expect([apex.status, apex.status_reason]).toEqual(['active', null]);
  expect((await managedOf(zone, apex)).sort()).toEqual(['ALIAS @', 'TXT _platform-verification']);
  const wildcard = await domains.added('*.apex.example.com', application);
  expect(wildcard.status).toBe('active');
  expect(wildcard.dns_instructions.map(({ purpose }) => purpose)).toEqual(['routing', 'ownership']);
  expect((await managedOf(zone, wildcard)).sort()).toEqual(['CNAME *', 'TXT _platform-verification']);
});

test('a record of the user is never changed, but named; once it is removed, the domain goes on by itself', async () => {
  const zone = await delegated('two.example.com');
  const own = (await addRecord(zone, { type: 'A', name: 'shop', value: '192.0.2.99' })).body;
  const domain = await domains.added('shop.two.example.com', application);
  expect(domain.status).toBe('pending');
  expect(domain.status_reason).toBe(
    'The zone two.example.com has another record of shop.two.example.com: A 192.0.2.99. ' +
      'Remove that record, then the platform creates the CNAME record.',
  );
  expect((await recordsOf(zone)).find(({ id }) => id === own.id)).toEqual(own);
  await service.call('DELETE', `/v2/dns_zones/${zone.id}/records/${own.id}`);
  await until(async () => (await domains.find(domain.hostname, application))?.status, 'active');
  expect((await managedOf(zone, domain)).sort()).toEqual(['CNAME shop', 'TXT _platform-verification.shop']);
});

test('a record of the user that says the same will do, and stays when the domain goes', async () => {
  const zone = await delegated('three.example.com');
  await addRecord(zone, { type: 'CNAME', name: 'shop', value: 'ingress.example.net' });
  const domain = await domains.added('shop.three.example.com', application);
  expect(domain.status).toBe('active');
  expect(await managedOf(zone, domain)).toEqual(['TXT _platform-verification.shop']);
  await service.call('DELETE', domainsPath(application, domain.id));
  expect((await recordsOf(zone)).map(({ name }) => name)).toContain('shop');
});

test('below a delegation to other name servers nothing is made', async () => {
  const zone = await delegated('four.example.com');
  await addRecord(zone, { type: 'NS', name: 'sub', value: 'ns.elsewhere.example.net' });
  const domain = await domains.added('shop.sub.four.example.com', application);
  expect(domain.status_reason).toContain('sub.four.example.com is delegated to other name servers');
  expect(await managedOf(zone, domain)).toEqual([]);
});

test('with `dns: manual` the zone is left alone', async () => {
  const zone = await delegated('five.example.com');
  const { body } = await service.call('POST', domainsPath(application), {
    body: { hostname: 'shop.five.example.com', dns: 'manual' },
  });
  expect([body.status, body.dns]).toEqual(['pending', 'manual']);
  expect(await managedOf(zone, body)).toEqual([]);
});

test('a zone that comes later, or is delegated later, is found', async () => {
  const domain: DomainBody = await domains.added('shop.six.example.com', application);
  expect(domain.status).toBe('pending');
  const zone = await newZone('six.example.com');
  await until(async () => (await managedOf(zone, domain)).length, 2);
  expect((await domains.find(domain.hostname, application))?.status).toBe('pending');
  await parent.delegate(zone.name, zone.name_servers);
  await service.call('POST', `/v2/dns_zones/${zone.id}/verify`);
  await until(async () => (await domains.find(domain.hostname, application))?.status, 'active');
  // A zone with a longer name takes over.
  const below = await newZone('shop.six.example.com');
  await until(() => managedOf(zone, domain), []);
  expect((await managedOf(below, domain)).sort()).toEqual(['ALIAS @', 'TXT _platform-verification']);
});

test('the application takes domains and their records along', async () => {
  const zone = await delegated('seven.example.com');
  const other = await domains.newApplication('going');
  const domain = await domains.added('shop.seven.example.com', other);
  expect((await managedOf(zone, domain)).length).toBe(2);
  const deleted = await service.call('DELETE', `/v2/applications/${other}`);
  expect(deleted.status).toBe(204);
  await until(() => managedOf(zone, domain), []);
});

test('a zone of another project is not touched', async () => {
  const zone = await delegated('eight.example.com');
  const other = await service.newProject();
  const options = { key: other.key, project: other.id };
  const theirs = await domains.newApplication('theirs', options);
  const domain = (await domains.add('shop.eight.example.com', theirs, options)).body;
  expect(domain.status).toBe('pending');
  expect(await managedOf(zone, domain)).toEqual([]);
});

test('a dry run leaves nothing', async () => {
  const zone = await delegated('nine.example.com');
  const answer = await service.call('POST', domainsPath(application), {
    body: { hostname: 'shop.nine.example.com' },
    headers: { 'Dry-Run': 'true' },
  });
  expect([answer.status, answer.body.status]).toEqual([201, 'active']);
  expect((await recordsOf(zone)).filter(({ managed_by }) => managed_by)).toEqual([]);
});
