/** @tier heavy @quarter 4 @covers drivers/powerdns */
// DNS zones over the API, with PowerDNS as the name server.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { startDnsParent, type DnsParent } from '../../support/dns/dns_parent';
import { freePort } from '../../support/processes/free_port';
import { startPowerdns, type Powerdns } from '../../support/dns/powerdns';
import { bytesOf, NEEDED_RECORDS, RDATA_RECORDS } from '../../support/dns/record_types';
import { startService, type Answer, type TestService } from '../../support/service';
import { needs } from '../../support/runner/programs';
import { withConfig } from '../../support/config';

const run = promisify(execFile);
const { describe: described } = needs('pdns_server');
jest.setTimeout(120_000);

described('with PowerDNS', () => {
  let server: Powerdns;
  let parent: DnsParent;
  let service: TestService;
  let zone: Answer['body'];

  beforeAll(async () => {
    server = await startPowerdns();
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

  async function dig(...args: string[]): Promise<string[]> {
    const { stdout } = await run('dig', ['@127.0.0.1', '-p', String(server.port), '+short', '+tries=1', ...args]);
    return stdout.trim().split('\n').filter(Boolean);
  }

  async function until(read: () => Promise<unknown>, expected: unknown): Promise<void> {
    for (let turn = 0; turn < 200; turn += 1) {
      if (JSON.stringify(await read().catch(() => null)) === JSON.stringify(expected)) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(await read()).toEqual(expected);
  }

  test('a zone and its records are answered by PowerDNS, with its serial', async () => {
    const made = await service.call('POST', '/v2/dns_zones', { body: { name: 'one.example.com' } });
    expect(made.status).toBe(201);
    zone = made.body;
    const path = `/v2/dns_zones/${zone.id}`;
    await service.call('POST', `${path}/records`, { body: { type: 'A', name: 'www', value: '192.0.2.7' } });
    await until(() => dig('www.one.example.com', 'A'), ['192.0.2.7']);
    const serial = async (): Promise<string | undefined> => (await dig('one.example.com', 'SOA')).join().split(' ')[2];
    await until(async () => String((await service.call('GET', path)).body.serial) === (await serial()), true);
    // The names of its name servers are answered too.
    await until(async () => (await dig(zone.name_servers[0].replace(/^ns1\.\w+\./, ''), 'NS')).length, 2);
  });

  test('PowerDNS away for a while: the API goes on, and the change is there afterwards', async () => {
    await server.stop();
    const added = await service.call('POST', `/v2/dns_zones/${zone.id}/records`, {
      body: { type: 'A', name: 'late', value: '192.0.2.8' },
    });
    expect(added.status).toBe(201);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await server.start();
    await until(() => dig('late.one.example.com', 'A'), ['192.0.2.8']);
  });

  test('a zone deleted behind our back is made again, with its records', async () => {
    await server.call('DELETE', '/zones/one.example.com.');
    expect(await dig('www.one.example.com', 'A')).toEqual([]);
    // What the five minutes between two looks at PowerDNS would do.
    await service.sql('update dns_zones set next_at = now() where id = $1', [zone.id]);
    await until(() => dig('www.one.example.com', 'A'), ['192.0.2.7']);
    await until(() => dig('late.one.example.com', 'A'), ['192.0.2.8']);
  });

  test('DNSSEC: what the API lists for the registrar validates', async () => {
    await parent.delegate(zone.name, zone.name_servers);
    await service.call('POST', `/v2/dns_zones/${zone.id}/verify`);
    const { body } = await service.call('POST', `/v2/dns_zones/${zone.id}/dnssec`);
    const [ds] = body.ds_records;
    const anchor = `trust-anchors { "one.example.com" static-ds ${ds.key_tag} 13 2 "${ds.digest}"; };`;
    const file = `${service.dataDir}/anchor`;
    await run('sh', ['-c', `printf '%s' '${anchor}' > ${file}`]);
    const delv = async (...question: string[]): Promise<boolean> => {
      const args = ['@127.0.0.1', '-p', String(server.port), '-a', file, '+root=one.example.com', ...question];
      return (await run('delv', args)).stdout.includes('fully validated');
    };
    await until(() => delv('www.one.example.com', 'A'), true);
    await until(() => delv('nothing.one.example.com', 'A'), true);
    expect((await service.call('DELETE', `/v2/dns_zones/${zone.id}/dnssec`)).status).toBe(204);
    await until(async () => (await dig('one.example.com', 'DNSKEY')).length, 0);
  });

  test('of two claims none is answered, and the one that is delegated as soon as that is seen', async () => {
    const name = 'claimed.example.com';
    const other = await service.newProject();
    const options = { key: other.key, project: other.id };
    const address = async (id: string, value: string, more: object): Promise<unknown> =>
      service.call('POST', `/v2/dns_zones/${id}/records`, { ...more, body: { type: 'A', value } });
    const first = (await service.call('POST', '/v2/dns_zones', { body: { name } })).body;
    await address(first.id, '192.0.2.1', {});
    await until(() => dig(name, 'A'), ['192.0.2.1']);
    const second = (await service.call('POST', '/v2/dns_zones', { ...options, body: { name } })).body;
    await address(second.id, '192.0.2.2', options);
    await until(() => dig(name, 'A'), []);
    await parent.delegate(name, second.name_servers);
    await service.call('POST', `/v2/dns_zones/${second.id}/verify`, options);
    await until(() => dig(name, 'A'), ['192.0.2.2']);
  });

  test('the strings of a text, the root as a target, and a zone with a slash', async () => {
    const slash = (await service.call('POST', '/v2/dns_zones', { body: { name: '0/25.2.0.192.in-addr.arpa' } })).body;
    const records = [
      { type: 'TXT', name: 'strings', value: '"a" "b"' },
      { type: 'MX', name: 'nomail', value: '.', priority: 0 },
    ];
    for (const body of records) await service.call('POST', `/v2/dns_zones/${zone.id}/records`, { body });
    await until(() => dig('strings.one.example.com', 'TXT'), ['"a" "b"']);
    await until(() => dig('nomail.one.example.com', 'MX'), ['0 .']);
    const pointer = { type: 'PTR', name: '1', value: 'host.example.net' };
    await service.call('POST', `/v2/dns_zones/${slash.id}/records`, { body: pointer });
    await until(() => dig('1.0/25.2.0.192.in-addr.arpa', 'PTR'), ['host.example.net.']);
    // Joined otherwise, it is another text.
    await service.call('PUT', `/v2/dns_zones/${zone.id}/records`, {
      body: {
        records: [
          { type: 'A', name: 'www', value: '192.0.2.7' },
          { type: 'TXT', name: 'strings', value: 'ab' },
        ],
      },
    });
    await until(() => dig('strings.one.example.com', 'TXT'), ['"ab"']);
    await service.call('DELETE', `/v2/dns_zones/${slash.id}`);
    await until(() => dig('1.0/25.2.0.192.in-addr.arpa', 'PTR'), []);
  });

  test('all types are answered as they were written, and nothing is written again', async () => {
    const path = `/v2/dns_zones/${zone.id}/records`;
    for (const body of [...NEEDED_RECORDS, ...RDATA_RECORDS])
      expect([body, (await service.call('POST', path, { body })).status]).toEqual([body, 201]);
    for (const { type, name } of RDATA_RECORDS) {
      const fqdn = `${name === '@' ? '' : `${name}.`}${zone.name}`;
      const values = RDATA_RECORDS.filter((one) => one.type === type && one.name === name).map(({ value }) => value);
      await until(async () => bytesOf(type, await dig(fqdn, type)), bytesOf(type, values));
    }
    const serial = async (): Promise<number> => (await server.call('GET', `/zones/${zone.name}.`)).serial;
    const before = await serial();
    await service.sql('update dns_zones set next_at = now() where id = $1', [zone.id]);
    const isDone = async (): Promise<boolean> =>
      (await service.sql('select next_at > now() as done from dns_zones where id = $1', [zone.id]))[0].done;
    await until(isDone, true);
    expect(await serial()).toBe(before);
  });

  test('a value that PowerDNS cannot read is named in status_reason, until it is removed', async () => {
    const path = `/v2/dns_zones/${zone.id}`;
    const body = { type: 'SVCB', name: 'odd', value: String.raw`1 . alpn="caf\233"` };
    const { id } = (await service.call('POST', `${path}/records`, { body })).body;
    const reason = async (): Promise<string> => (await service.call('GET', path)).body.status_reason ?? '';
    await until(async () => /refuses the zone: Record odd\.one\.example\.com\.\/SVCB/.test(await reason()), true);
    expect((await service.call('DELETE', `${path}/records/${id}`)).status).toBe(204);
    await until(async () => /refuses/.test(await reason()), false);
  });

  test('deleted, it is gone from PowerDNS', async () => {
    await service.call('DELETE', `/v2/dns_zones/${zone.id}`);
    await until(
      async () =>
        (await server.call('GET', '/zones')).some(({ name }: { name: string }) => name === 'one.example.com.'),
      false,
    );
  });
});
