/** @tier heavy @quarter 2 @covers models/dns/dns_zone jobs/dns models/bin */
// A deleted DNS zone at the name servers of others: a secondary, which must take over the restored zone, and PowerDNS.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { binCalls } from '../support/bin_calls';
import { startBindSecondary, type Program } from '../support/dns/dns_programs';
import { startDnsParent, type DnsParent } from '../support/dns/dns_parent';
import { startPowerdns, type Powerdns } from '../support/dns/powerdns';
import { freePort } from '../support/processes/free_port';
import { fileNeeds, needs } from '../support/runner/programs';
import { startService, type TestService } from '../support/service';
import { waitFor } from '../support/wait_for';
import { withConfig } from '../support/config';

fileNeeds('dig', 'named');
jest.setTimeout(60_000);

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
const run = promisify(execFile);

/** Status, and the address or the serial. */
async function ask(port: number, name: string, type: 'A' | 'SOA'): Promise<[string, string]> {
  const { stdout } = await run('dig', ['@127.0.0.1', '-p', String(port), '+tries=1', name, type]);
  const [line = ''] = stdout.split('\n').filter((one) => one.startsWith(`${name}.`));
  return [/status: (\w+)/.exec(stdout)?.[1] ?? '', line.split(/\s+/)[type === 'A' ? 4 : 6] ?? ''];
}
const untilAddress = (port: number, name: string, address: string): Promise<unknown> =>
  waitFor(`${name} is ${address}`, async () => (await ask(port, name, 'A'))[1] === address);

async function zoneWith(service: TestService, name: string): Promise<any> {
  const { status, body } = await service.call('POST', '/v2/dns_zones', { body: { name } });
  expect(status).toBe(201);
  const record = { type: 'A', value: '192.0.2.1' };
  expect((await service.call('POST', `/v2/dns_zones/${body.id}/records`, { body: record })).status).toBe(201);
  return body;
}

describe('with a secondary of the embedded name server', () => {
  const key = `transfer:${Buffer.alloc(32, 7).toString('base64')}`;
  const name = 'kept.example.com';
  let service: TestService;
  let port: number;
  let bind: Program;
  const bin = binCalls(() => service);

  beforeAll(async () => {
    const at = await freePort();
    port = await freePort();
    service = await startService({
      worker: true,
      settings: {
        ...{ DNS_PORT: String(port), DNS_SECONDARIES: `127.0.0.1:${at}`, DNS_TRANSFER_KEY: key },
        RETENTION_OF_DELETED_DAYS: '7',
      },
    });
    bind = await startBindSecondary({ port, zones: [name], key }, at);
  });
  afterAll(async () => {
    await bind?.close();
    await service?.close();
  });

  test('the secondary takes over what is changed after the restore', async () => {
    const zone = await zoneWith(service, name);
    await untilAddress(bind.port, name, '192.0.2.1');
    for (let turn = 2; turn < 4; turn += 1) {
      const entry = await bin.deleted(`/v2/dns_zones/${zone.id}`);
      await waitFor('it is not answered', async () => (await ask(port, name, 'A'))[0] === 'REFUSED');
      expect(await bin.restored(entry)).toEqual([]);
      await untilAddress(port, name, '192.0.2.1');
      const [record] = (await service.call('GET', `/v2/dns_zones/${zone.id}/records?type=A`)).body.data;
      const value = `192.0.2.${turn}`;
      await service.call('PATCH', `/v2/dns_zones/${zone.id}/records/${record.id}`, { body: { value } });
      await untilAddress(bind.port, name, value);
      await service.call('PATCH', `/v2/dns_zones/${zone.id}/records/${record.id}`, { body: { value: '192.0.2.1' } });
      await untilAddress(bind.port, name, '192.0.2.1');
      expect(await ask(bind.port, name, 'SOA')).toEqual(await ask(port, name, 'SOA'));
    }
  });
});

const { describe: described } = needs('pdns_server');

described('with PowerDNS', () => {
  let server: Powerdns;
  let parent: DnsParent;
  let service: TestService;
  const bin = binCalls(() => service);

  beforeAll(async () => {
    // Its caches would show answers of up to 20 s ago.
    server = await startPowerdns(['cache-ttl=0', 'query-cache-ttl=0', 'negquery-cache-ttl=0']);
    parent = await startDnsParent('example.com', await freePort());
    service = await startService({
      worker: true,
      settings: {
        ...{ POWERDNS_URL: server.url, POWERDNS_API_KEY: server.key, DNS_PORT: '0', RETENTION_OF_DELETED_DAYS: '7' },
        ...withConfig({ dnsRoots: [parent.address] }),
      },
    });
  });
  afterAll(async () => {
    await service?.close();
    await parent?.close();
    await server?.close();
  });

  test('it answers no more, and answers the same with a higher serial after the restore', async () => {
    const name = 'kept.example.com';
    const zone = await zoneWith(service, name);
    await untilAddress(server.port, name, '192.0.2.1');
    const serial = async (): Promise<number> => Number((await ask(server.port, name, 'SOA'))[1]);
    const before = await serial();
    const entry = await bin.deleted(`/v2/dns_zones/${zone.id}`);
    await waitFor('it is not answered', async () => (await ask(server.port, name, 'A'))[0] === 'REFUSED');
    expect(await bin.restored(entry)).toEqual([]);
    await untilAddress(server.port, name, '192.0.2.1');
    expect(await serial()).toBeGreaterThan(before);
    await bin.purge(await bin.deleted(`/v2/dns_zones/${zone.id}`));
    await waitFor('it is not answered', async () => (await ask(server.port, name, 'A'))[0] === 'REFUSED');
    await waitFor('its row goes', async () => !(await service.sql('select 1 from dns_zones')).length);
  });
});
