/** @tier heavy @quarter 2 @covers models/dns/dns_zone jobs/dns */
// Operations: createDnsZone, deleteDnsZone.
// A zone that is deleted and made again starts above its last serial: secondaries would keep the earlier one otherwise
// (RFC 1982).
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { startDnsParent, type DnsParent } from '../support/dns/dns_parent';
import { startBindSecondary, type Program } from '../support/dns/dns_programs';
import { freePort } from '../support/processes/free_port';
import { startPowerdns, type Powerdns } from '../support/dns/powerdns';

import { fileNeeds, needs } from '../support/runner/programs';
import { startService, type Answer, type TestService } from '../support/service';
import { withConfig } from '../support/config';

fileNeeds('dig', 'named');
jest.setTimeout(60_000);

type Body = Answer['body'];
const run = promisify(execFile);
/** More changes than seconds since the zone was made. */
const AHEAD = 1_000_000;

async function servedSerial(port: number, name: string): Promise<number> {
  const { stdout } = await run('dig', ['@127.0.0.1', '-p', String(port), '+short', '+tries=1', name, 'SOA']);
  return Number(stdout.split(' ')[2] ?? NaN);
}

async function until(read: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 20_000;
  while (!(await read().catch(() => false))) {
    if (Date.now() > end) throw new Error('not within 20 s');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const addRecord = (service: TestService, zone: Body, body: object, more = {}): Promise<Answer> =>
  service.call('POST', `/v2/dns_zones/${zone.id}/records`, { body, ...more });

describe('with the embedded name server', () => {
  const key = `transfer:${Buffer.alloc(32, 7).toString('base64')}`;
  let service: TestService;
  let port: number;
  let bind: Program;

  beforeAll(async () => {
    const at = await freePort();
    port = await freePort();
    const settings = { DNS_PORT: String(port), DNS_SECONDARIES: `127.0.0.1:${at}`, DNS_TRANSFER_KEY: key };
    service = await startService({ worker: true, settings });
    bind = await startBindSecondary({ port, zones: ['again.example.com'], key }, at);
  });
  afterAll(async () => {
    await bind?.close();
    await service?.close();
  });

  test('a zone that is deleted and made again is taken over by a secondary, in another project too', async () => {
    const name = 'again.example.com';
    const other = await service.newProject();
    let last = 0;
    for (const by of [{}, {}, { key: other.key }]) {
      const made = await service.call('POST', '/v2/dns_zones', { body: { name }, ...by });
      expect(made.status).toBe(201);
      await until(async () => (await servedSerial(port, name)) > last);
      await service.sql('update dns_zones set serial = serial + $2 where id = $1', [made.body.id, AHEAD]);
      expect((await addRecord(service, made.body, { type: 'A', value: '192.0.2.1' }, by)).status).toBe(201);
      const serial = async (): Promise<number> =>
        (await service.call('GET', `/v2/dns_zones/${made.body.id}`, by)).body.serial;
      for (const at of [port, bind.port]) await until(async () => (await servedSerial(at, name)) === (await serial()));
      last = await serial();
      expect(last).toBeGreaterThan(made.body.serial + AHEAD);
      expect((await service.call('DELETE', `/v2/dns_zones/${made.body.id}`, by)).status).toBe(204);
    }
  });

  test('only serials of the last 28 days are kept', async () => {
    await service.sql(`insert into dns_last_serials values ('old.example.com', 1, now() - interval '29 days')`);
    const { body } = await service.call('POST', '/v2/dns_zones', { body: { name: 'brief.example.com' } });
    await until(async () => (await servedSerial(port, 'brief.example.com')) > 0);
    await service.call('DELETE', `/v2/dns_zones/${body.id}`);
    const names = async (): Promise<string[]> =>
      (await service.sql('select name from dns_last_serials')).map((row: Body) => row.name);
    await until(async () => (await names()).includes('brief.example.com'));
    expect(await names()).not.toContain('old.example.com');
  });
});

const { describe: described } = needs('pdns_server');

described('with PowerDNS', () => {
  let server: Powerdns;
  let parent: DnsParent;
  let service: TestService;

  beforeAll(async () => {
    // Its caches would show serials of up to 20 s ago.
    server = await startPowerdns(['cache-ttl=0', 'query-cache-ttl=0', 'negquery-cache-ttl=0']);
    parent = await startDnsParent('example.com', await freePort());
    service = await startService({
      worker: true,
      settings: {
        POWERDNS_URL: server.url,
        POWERDNS_API_KEY: server.key,
        ...withConfig({ dnsRoots: [parent.address] }),
        DNS_PORT: '0',
      },
    });
  });
  afterAll(async () => {
    await service?.close();
    await parent?.close();
    await server?.close();
  });

  test('a zone that is deleted and made again starts above its last serial', async () => {
    const name = 'again.example.com';
    let last = 0;
    for (let turn = 0; turn < 2; turn += 1) {
      const { body: zone } = await service.call('POST', '/v2/dns_zones', { body: { name } });
      await until(async () => (await servedSerial(server.port, name)) > last);
      // PowerDNS counts from the date on: the second zone of a day would begin where the first one did.
      for (let change = 0; change < 3; change += 1) {
        const before = await servedSerial(server.port, name);
        await addRecord(service, zone, { type: 'A', name: `h${change}`, value: '192.0.2.1' });
        await until(async () => (await servedSerial(server.port, name)) > before);
      }
      last = await servedSerial(server.port, name);
      await service.call('DELETE', `/v2/dns_zones/${zone.id}`);
    }
  });
});
