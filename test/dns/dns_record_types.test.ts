// Operations: createDnsRecord, batchDnsRecords, importDnsZone, exportDnsZone.
// Records whose value is their whole RDATA: taken in one form, refused with the field, and the same after an export
// (docs/contract/resources.md §12.2).
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { NEEDED_RECORDS, RDATA_RECORDS } from '../support/dns/record_types';
import { freePort } from '../support/processes/free_port';
import { needs } from '../support/runner/programs';
import { startService, type Answer, type TestService } from '../support/service';

type Body = Answer['body'];

const run = promisify(execFile);
const DIGEST = '49fd46e6c4b45c55d4ac69cbd3cd34ac1afe51de49fd46e6c4b45c55d4ac69cb';
let service: TestService;

beforeAll(async () => {
  service = await startService({ settings: { DNS_PORT: String(await freePort()), QUOTAS: '{"dns_zones": 1000}' } });
});
afterAll(() => service?.close());

let count = 0;

async function newZone(): Promise<Body> {
  const made = await service.call('POST', '/v2/dns_zones', { body: { name: `types${(count += 1)}.example.com` } });
  expect(made.status).toBe(201);
  return made.body;
}

const add = (zone: Body, body: object): Promise<Answer> =>
  service.call('POST', `/v2/dns_zones/${zone.id}/records`, { body });
const short = ({ name, type, value }: Body): string => `${name} ${type} ${value}`;
const exported = async (zone: Body): Promise<string> =>
  (await service.call('GET', `/v2/dns_zones/${zone.id}/export`)).body.zone_file;

async function imported(zone: Body, zone_file: string, more: object = {}): Promise<Body> {
  const answer = await service.call('POST', `/v2/dns_zones/${zone.id}/import`, { body: { zone_file, ...more } });
  expect([answer.status, answer.text]).toEqual([200, expect.anything()]);
  return answer.body;
}

const NORMAL: [string, string, string][] = [
  [
    'HTTPS',
    ' 1  Svc.Example.NET.  alpn="h3,h2"   ipv4hint=192.0.2.1',
    '1 svc.example.net alpn=h3,h2 ipv4hint=192.0.2.1',
  ],
  ['HTTPS', '0 bücher.example.net', '0 xn--bcher-kva.example.net'],
  ['SVCB', '1 . port=53 mandatory=port', '1 . mandatory=port port=53'],
  ['TLSA', `DANE-EE spki SHA2-256 ( ${DIGEST.slice(0, 32)} ${DIGEST.slice(32)} )`, `3 1 1 ${DIGEST.toUpperCase()}`],
  ['SSHFP', `4 2 ${DIGEST}`, `4 2 ${DIGEST.toUpperCase()}`],
  ['NAPTR', '100 10 s SIP+D2U "" _sip._udp.example.net.', '100 10 "s" "SIP+D2U" "" _sip._udp.example.net'],
  ['LOC', '52 22 23 N 4 53 32 E 2', '52 22 23.000 N 4 53 32.000 E 2.00m 1.00m 10000.00m 10.00m'],
];

test.each(NORMAL)('%s %s has a normal form, and is one record in both', async (type, value, normal) => {
  const zone = await newZone();
  const made = await add(zone, { type, name: 'x', value });
  expect([made.status, made.body.value]).toEqual([201, normal]);
  expect((await add(zone, { type, name: 'x', value: normal })).body.code).toBe('already_exists');
});

const WRONG: [string, object, string, string][] = [
  ['an unknown parameter', { type: 'HTTPS', value: '1 . color=red' }, 'value', 'must have known parameters'],
  ['a single label', { type: 'HTTPS', value: '1 svc' }, 'value', 'must have a host name or a dot as its target'],
  ['an address as target', { type: 'SVCB', value: '1 192.0.2.1' }, 'value', 'must have a host name or a dot'],
  ['its own name as alias', { type: 'HTTPS', name: 'x', value: '0 x.@ZONE@' }, 'value', 'must be another name'],
  ['a short digest', { type: 'TLSA', name: '_443._tcp', value: '3 1 1 abcd' }, 'value', '32 bytes'],
  ['a comment', { type: 'LOC', value: '1 N 1 E 0 ; here' }, 'value', 'a semicolon in quotation marks only'],
  ['a line break', { type: 'SSHFP', value: `4 2\n${DIGEST}` }, 'value', 'without control characters'],
  ['an open quote', { type: 'NAPTR', value: '1 2 "s' }, 'value', 'both ends of quotes'],
  ['a priority', { type: 'HTTPS', value: '1 .', priority: 1 }, 'priority', 'is not for HTTPS records'],
  ['DS at the apex', { type: 'DS', value: `1 13 2 ${DIGEST}` }, 'type', 'at the registrar'],
];

test.each(WRONG)('%s is refused', async (_, body, field, detail) => {
  const zone = await newZone();
  const given = JSON.parse(JSON.stringify(body).replace('@ZONE@', zone.name)) as object;
  const single = await add(zone, given);
  const expected = [422, 'record_invalid', [{ field, detail: expect.stringContaining(detail) }]];
  expect([single.status, single.body.code, single.body.record_errors]).toMatchObject(expected);
  const good = { type: 'A', name: 'good', value: '192.0.2.1' };
  const batch = { create: [good, given] };
  const { body: problem } = await service.call('POST', `/v2/dns_zones/${zone.id}/records/batch`, { body: batch });
  expect(problem.record_errors).toMatchObject([{ field: `create.1.${field}`, index: 1 }]);
});

test('a DS record is beside NS records, and they stay while it does', async () => {
  const zone = await newZone();
  const ds = { type: 'DS', name: 'below', value: `1 13 2 ${DIGEST}` };
  const ns = { type: 'NS', name: 'below', value: 'ns1.example.net' };
  const alone = await add(zone, ds);
  expect([alone.status, alone.body.code, alone.body.detail]).toEqual([
    ...[409, 'record_conflict', 'The name below has a DS record, so it needs NS records too.'],
  ]);
  const path = `/v2/dns_zones/${zone.id}/records`;
  const { created } = (await service.call('POST', `${path}/batch`, { body: { create: [ds, ns] } })).body;
  const [made, server] = created as [Body, Body];
  expect((await service.call('DELETE', `${path}/${server.id}`)).body.code).toBe('record_conflict');
  expect((await service.call('PATCH', `${path}/${server.id}`, { body: { name: 'other' } })).body.code).toBe(
    'record_conflict',
  );
  expect((await service.call('DELETE', `${path}/${made.id}`)).status).toBe(204);
  expect((await service.call('DELETE', `${path}/${server.id}`)).status).toBe(204);
});

test('a CNAME excludes them, an ALIAS at the apex does not', async () => {
  const zone = await newZone();
  expect((await add(zone, { type: 'ALIAS', value: 'target.example.net' })).status).toBe(201);
  expect((await add(zone, { type: 'HTTPS', value: '1 . alpn=h2' })).status).toBe(201);
  expect((await add(zone, { type: 'CNAME', name: 'www', value: 'target.example.net' })).status).toBe(201);
  for (const { type, value } of RDATA_RECORDS)
    expect([type, (await add(zone, { type, name: 'www', value })).body.code]).toEqual([type, 'record_conflict']);
});

describe('all types in one zone', () => {
  let zone: Body;
  beforeAll(async () => {
    zone = await newZone();
    const body = { records: [...NEEDED_RECORDS, ...RDATA_RECORDS] };
    const put = await service.call('PUT', `/v2/dns_zones/${zone.id}/records`, { body });
    expect([put.status, put.text]).toEqual([200, expect.anything()]);
  });

  test('come back as they were from an export, and from the form of unknown types (RFC 3597)', async () => {
    const zone_file = await exported(zone);
    const all = [...NEEDED_RECORDS, ...RDATA_RECORDS].map(short).sort();
    expect(await imported(zone, zone_file)).toMatchObject({ created: 0, updated: 0, errors: [], notes: [] });
    const other = await newZone();
    const result = await imported(other, zone_file.replaceAll(zone.name, other.name));
    expect([result.errors, result.records.map(short).sort()]).toEqual([[], all]);
    expect(await exported(other)).toBe(zone_file.replaceAll(zone.name, other.name));
  });

  needs('named-compilezone', 'ldns-read-zone', 'nsd-checkzone').test('other programs read the export', async () => {
    const directory = mkdtempSync(path.join(tmpdir(), 'record-types-'));
    try {
      const [file, raw, text] = ['zone', 'raw', 'text'].map((one) => path.join(directory, one)) as [
        string,
        string,
        string,
      ];
      const soa = '@ IN SOA ns.example.net. h.example.net. 1 7200 3600 1209600 3600\n@ IN NS ns.example.net.\n';
      // ALIAS is no type of a message.
      const lines = (await exported(zone)).replace('$TTL 3600\n', `$TTL 3600\n${soa}`).replace(/^.* ALIAS .*\n/gm, '');
      writeFileSync(file, lines);
      await run('ldns-read-zone', [file]);
      await run('nsd-checkzone', [zone.name, file]);
      const options = ['-i', 'none', '-k', 'ignore', '-F'];
      await run('named-compilezone', [...options, 'raw', '-o', raw, zone.name, file]);
      await run('named-compilezone', ['-f', 'raw', ...options, 'text', '-o', text, zone.name, raw]);
      const { stdout } = await run('cat', [text]);
      // With a TTL at each line.
      expect(await imported(zone, stdout)).toMatchObject({ created: 0, errors: [] });
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});

test('the catalog has each type, with whether the apex may have it', async () => {
  const { data } = (await service.call('GET', '/v2/dns_record_types')).body;
  const types = data.map(({ type, fields, apex_allowed }: Body) => `${type} ${fields.length} ${apex_allowed}`);
  expect(types).toEqual(expect.arrayContaining(['DS 0 false', 'HTTPS 0 true', 'SVCB 0 true', 'LOC 0 true']));
  expect(types).toEqual(expect.arrayContaining(['NAPTR 0 true', 'SSHFP 0 true', 'TLSA 0 false']));
});
