// A deleted DNS zone: its answers stop, and come back with its records and keys; the name may be claimed meanwhile.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { binCalls } from '../support/bin_calls';
import { startDnsParent, type DnsParent } from '../support/dns/dns_parent';
import { freePort } from '../support/processes/free_port';
import { fileNeeds } from '../support/runner/programs';
import { startService, type TestService } from '../support/service';
import { waitFor } from '../support/wait_for';
import { withConfig } from '../support/config';

fileNeeds('named', 'dig');

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
const run = promisify(execFile);
let service: TestService;
let parent: DnsParent;
let port: number;
const bin = binCalls(() => service);

beforeAll(async () => {
  port = await freePort();
  parent = await startDnsParent('example.com', await freePort());
  service = await startService({
    worker: true,
    settings: {
      ...{ DNS_PORT: String(port), RETENTION_OF_DELETED_DAYS: '7', QUOTAS: '{"dns_zones": 6}' },
      // For sending domains.
      SMTP_PORTS: String(await freePort()),
      ...withConfig({ dnsRoots: [parent.address] }),
    },
  });
});
afterAll(async () => {
  await service?.close();
  await parent?.close();
});

let count = 0;
const newName = (): string => `kept${(count += 1)}.example.com`;
const RECORDS = [
  { type: 'A', value: '192.0.2.7', ttl: 120, comment: 'front' },
  { type: 'MX', value: 'mail.example.net', priority: 10 },
  { type: 'CAA', flags: 0, tag: 'issue', value: 'ca.example.net' },
  { type: 'SRV', name: '_sip._tcp', value: 'sip.example.net', priority: 1, weight: 2, port: 5060 },
];

async function zoneWithRecords(name = newName(), options = {}): Promise<any> {
  const made = await service.call('POST', '/v2/dns_zones', { body: { name }, ...options });
  expect([made.status, made.text]).toEqual([201, expect.anything()]);
  for (const body of RECORDS)
    expect((await service.call('POST', `/v2/dns_zones/${made.body.id}/records`, { body, ...options })).status).toBe(
      201,
    );
  return made.body;
}

const zoneOf = async ({ id }: any, options = {}): Promise<any> =>
  (await service.call('GET', `/v2/dns_zones/${id}`, options)).body;
const recordsOf = async ({ id }: any): Promise<any[]> =>
  (await service.call('GET', `/v2/dns_zones/${id}/records?limit=100`)).body.data;
const place = ({ id }: any): string => `/v2/dns_zones/${id}`;

/** Status and values. */
async function dig(name: string, type = 'A'): Promise<string> {
  const at = ['@127.0.0.1', '-p', String(port), '+tries=1', '+time=2', '+noall', '+comments', '+answer'];
  const { stdout } = await run('dig', [...at, name, type]);
  const values = stdout.split('\n').filter((line) => line.startsWith(`${name}.`));
  return [/status: (\w+)/.exec(stdout)?.[1], ...values.map((line) => line.split(/\s+/).slice(4).join(' ')).sort()].join(
    ' ',
  );
}
const untilAnswer = (expected: string, name: string, type?: string): Promise<unknown> =>
  waitFor(`${name} is answered with ${expected}`, async () => (await dig(name, type)) === expected);
const serialOf = async (name: string): Promise<number> => Number((await dig(name, 'SOA')).split(' ')[3]);

describe('a deleted DNS zone', () => {
  it('is not answered, and has the same records, name servers and keys after it was restored', async () => {
    const zone = await zoneWithRecords();
    const { name } = zone;
    await parent.delegate(name, zone.name_servers);
    expect((await service.call('POST', `${place(zone)}/verify`)).body.status).toBe('active');
    expect((await service.call('POST', `${place(zone)}/dnssec`)).status).toBe(202);
    await waitFor('it is signed', async () => (await dig(name, 'DNSKEY')).split(' ').length > 4);
    await untilAnswer('NOERROR 192.0.2.7', name);
    const [before, records, keys, serial] = [
      await zoneOf(zone),
      await recordsOf(zone),
      await dig(name, 'DNSKEY'),
      await serialOf(name),
    ];
    const entry = await bin.deleted(place(zone));
    expect(entry.resource).toEqual({ type: 'dns_zone', id: zone.id, name });
    await untilAnswer('REFUSED', name);
    expect((await service.call('GET', place(zone))).status).toBe(404);
    expect((await service.call('GET', `/v2/dns_records/${records[0].id}`)).status).toBe(404);
    expect(await bin.restored(entry)).toEqual([]);
    await untilAnswer('NOERROR 192.0.2.7', name);
    await untilAnswer(keys, name, 'DNSKEY');
    expect(await recordsOf(zone)).toEqual(records);
    const after = await zoneOf(zone);
    const moved = { serial: 0, updated_at: null, last_checked_at: null, delegation: null, status_reason: null };
    expect({ ...after, ...moved }).toEqual({ ...before, ...moved });
    // Secondaries take over a zone with a higher serial only.
    expect(await serialOf(name)).toBeGreaterThan(serial);
  });

  it('is not restored while the project has another zone of the name, or six others', async () => {
    const zone = await zoneWithRecords();
    const entry = await bin.deleted(place(zone));
    const other = (await service.call('POST', '/v2/dns_zones', { body: { name: zone.name } })).body;
    const taken = await bin.restore(entry);
    expect([taken.status, taken.body.code, taken.body.field]).toEqual([409, 'domain_taken', 'name']);
    await bin.purge(await bin.deleted(place(other)));
    const { data } = (await service.call('GET', '/v2/dns_zones')).body;
    const more = [];
    while (data.length + more.length < 6)
      more.push((await service.call('POST', '/v2/dns_zones', { body: { name: newName() } })).body);
    const refused = await bin.restore(entry);
    expect([refused.status, refused.body.code, refused.body.resource]).toEqual([403, 'quota_exceeded', 'dns_zones']);
    for (const { id } of more) await bin.purge(await bin.deleted(`/v2/dns_zones/${id}`));
    expect(await bin.restored(entry)).toEqual([]);
    await untilAnswer('NOERROR 192.0.2.7', zone.name);
    await bin.purge(await bin.deleted(place(zone)));
  });

  it('is not restored where another project has proven the name meanwhile', async () => {
    const them = await bin.stranger();
    const zone = await zoneWithRecords();
    await parent.delegate(zone.name, zone.name_servers);
    await service.call('POST', `${place(zone)}/verify`);
    const entry = await bin.deleted(place(zone));
    const theirs = await zoneWithRecords(zone.name, them);
    await parent.delegate(zone.name, theirs.name_servers);
    expect((await service.call('POST', `${place(theirs)}/verify`, them)).body.status).toBe('active');
    const taken = await bin.restore(entry);
    expect([taken.status, taken.body.code, taken.body.field]).toEqual([409, 'domain_taken', 'name']);
    await service.call('DELETE', place(theirs), them);
    expect(await bin.restored(entry)).toEqual([]);
    await bin.purge(await bin.deleted(place(zone)));
  });

  it('has to be delegated again where another project has claimed the name meanwhile', async () => {
    const them = await bin.stranger();
    const zone = await zoneWithRecords();
    await parent.delegate(zone.name, zone.name_servers);
    expect((await service.call('POST', `${place(zone)}/verify`)).body.status).toBe('active');
    const entry = await bin.deleted(place(zone));
    await parent.delegate(zone.name, ['ns1.example.net']);
    const theirs = await zoneWithRecords(zone.name, them);
    await untilAnswer('NOERROR 192.0.2.7', zone.name);
    expect(await bin.restored(entry)).toEqual([expect.stringContaining('Another project has claimed the name')]);
    // Neither of them is proven.
    await untilAnswer('REFUSED', zone.name);
    await parent.delegate(zone.name, zone.name_servers);
    expect((await service.call('POST', `${place(zone)}/verify`)).body.status).toBe('active');
    await untilAnswer('NOERROR 192.0.2.7', zone.name);
    await service.call('DELETE', place(theirs), them);
    await bin.purge(await bin.deleted(place(zone)));
  });

  it('keeps the records that the platform made for other resources, and drops those of what has gone', async () => {
    const zone = await zoneWithRecords();
    const domains = [`mail.${zone.name}`, `news.${zone.name}`];
    const [mail, news] = await Promise.all(
      domains.map(async (name) => (await service.call('POST', '/v2/email_domains', { body: { name } })).body),
    );
    expect([mail.id, news.id]).toEqual(['mail', 'news'].map(() => expect.stringMatching(/^emd_/)));
    const managed = async (owner: any): Promise<any[]> =>
      (await recordsOf(zone)).filter(({ managed_by }) => managed_by?.id === owner.id);
    await waitFor('both have records', async () =>
      (await Promise.all([mail, news].map(managed))).every(({ length }) => length > 0),
    );
    const [records, all] = [await managed(mail), (await zoneOf(zone)).record_count];
    const others = (await managed(news)).length;
    const entry = await bin.deleted(place(zone));
    await untilAnswer('REFUSED', zone.name);
    await bin.purge(await bin.deleted(`/v2/email_domains/${news.id}`));
    await service.call('POST', `/v2/email_domains/${mail.id}/verify`);
    expect(await bin.restored(entry)).toEqual([]);
    expect(await managed(mail)).toEqual(records);
    await waitFor('those of the other go', async () => (await managed(news)).length === 0);
    expect((await zoneOf(zone)).record_count).toBe(all - others);
    await bin.purge(await bin.deleted(`/v2/email_domains/${mail.id}`));
    await bin.purge(await bin.deleted(place(zone)));
  });

  it('leaves nothing after it was purged, and another zone of the name is answered', async () => {
    const zone = await zoneWithRecords();
    await untilAnswer('NOERROR 192.0.2.7', zone.name);
    const entry = await bin.deleted(place(zone));
    const next = (await service.call('POST', '/v2/dns_zones', { body: { name: zone.name } })).body;
    await service.call('POST', `${place(next)}/records`, { body: { type: 'A', value: '192.0.2.9' } });
    await untilAnswer('NOERROR 192.0.2.9', zone.name);
    expect((await bin.purge(entry)).status).toBe(204);
    await waitFor(
      'its row goes',
      async () => !(await service.sql('select 1 from dns_zones where id = $1', [zone.id])).length,
    );
    expect(await service.sql('select 1 from dns_records where dns_zone_id = $1', [zone.id])).toEqual([]);
    expect(await dig(zone.name)).toBe('NOERROR 192.0.2.9');
    await bin.purge(await bin.deleted(place(next)));
  });

  it('is restored once, or purged, by those who come at once', async () => {
    for (let round = 0; round < 3; round += 1) {
      const zone = await zoneWithRecords();
      const first = await bin.deleted(place(zone));
      expect(await bin.race(bin.restore(first), bin.restore(first))).toEqual([200, 404]);
      const second = await bin.deleted(place(zone));
      const [answer] = await Promise.all([bin.restore(second), bin.expire(second)]);
      if (answer.status === 200) {
        await untilAnswer('NOERROR 192.0.2.7', zone.name);
        await bin.purge(await bin.deleted(place(zone)));
      } else expect(answer.status).toBe(404);
      await untilAnswer('REFUSED', zone.name);
    }
  });
});
