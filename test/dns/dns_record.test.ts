// DNS records: rules by type, conflicts, batches, replacement, import and export (docs/contract/resources.md §12.2).
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../support/processes/free_port';
import { startService, type Answer, type TestService } from '../support/service';
import { TRICKY_ZONE_FILE } from '../support/dns/zone_files';
import { needs } from '../support/runner/programs';

type Body = Answer['body'];

const run = promisify(execFile);

let service: TestService;

beforeAll(async () => {
  service = await startService({ settings: { DNS_PORT: String(await freePort()), QUOTAS: '{"dns_zones": 1000}' } });
});

afterAll(() => service.close());

let serial = 0;

async function newZone(): Promise<{ id: string; name: string }> {
  const name = `records${(serial += 1)}.example.com`;
  const made = await service.call('POST', '/v2/dns_zones', { body: { name } });
  expect(made.status).toBe(201);
  return made.body;
}

const add = (zone: { id: string }, body: object): Promise<Answer> =>
  service.call('POST', `/v2/dns_zones/${zone.id}/records`, { body });
const list = async (zone: { id: string }): Promise<Body[]> =>
  (await service.call('GET', `/v2/dns_zones/${zone.id}/records?sort=created_at`)).body.data;
const short = ({ type, name, value, priority }: Body): string => [type, name, value, priority].join(' ').trim();

describe('values by type', () => {
  const GOOD = [
    { type: 'A', value: '192.0.2.1' },
    { type: 'AAAA', value: '2001:DB8:0::1', normal: '2001:db8::1' },
    { type: 'ALIAS', value: 'Target.example.net.', normal: 'target.example.net' },
    { type: 'CAA', value: 'ca.example.net', flags: 128, tag: 'issue' },
    { type: 'CNAME', name: 'alias', value: 'target.example.net' },
    { type: 'MX', value: 'mail.example.net', priority: 10 },
    { type: 'MX', value: '.', priority: 0 },
    { type: 'NS', name: 'sub', value: 'ns1.example.net' },
    { type: 'PTR', name: '1', value: 'host.example.net' },
    { type: 'SRV', name: '_sip._tcp', value: 'sip.example.net', priority: 1, weight: 2, port: 5060 },
    { type: 'TXT', value: `v=spf1 "quoted" \\ ${'x'.repeat(600)} ä` },
    { type: 'A', name: '*.wild', value: '192.0.2.1' },
  ];
  it.each(GOOD)('$type $value is taken', async ({ normal, ...body }) => {
    const zone = await newZone();
    const made = await add(zone, body);
    expect([made.status, made.body.value]).toEqual([201, normal ?? body.value]);
    const fqdn = !('name' in body) ? zone.name : `${body.name}.${zone.name}`;
    expect(made.body).toMatchObject({ name: 'name' in body ? body.name : '@', fqdn, is_protected: false });
  });

  const BAD: [string, object, string[]][] = [
    ['an IPv6 address in A', { type: 'A', value: '::1' }, ['value']],
    ['a name in AAAA', { type: 'AAAA', value: 'example.com' }, ['value']],
    ['a single label in CNAME', { type: 'CNAME', name: 'a', value: 'localhost' }, ['value']],
    ['CNAME at the apex', { type: 'CNAME', value: 'target.example.net' }, ['type']],
    ['MX without priority', { type: 'MX', value: 'mail.example.net' }, ['priority']],
    ['A with numbers', { type: 'A', value: '192.0.2.1', priority: 1, port: 2 }, ['priority', 'port']],
    ['SRV without numbers', { type: 'SRV', value: 'a.example.net' }, ['priority', 'weight', 'port']],
    ['CAA without tag', { type: 'CAA', value: 'ca.example.net', flags: 0 }, ['tag']],
    ['a wildcard in the middle', { type: 'A', name: 'a.*.b', value: '192.0.2.1' }, ['name']],
    ['a name with a space', { type: 'A', name: 'a b', value: '192.0.2.1' }, ['name']],
    ['an address in short form in MX', { type: 'MX', value: '10.1', priority: 1 }, ['value']],
    ['numbers that are no address in NS', { type: 'NS', name: 'a', value: '256.1.1.1' }, ['value']],
    ['a control character in TXT', { type: 'TXT', value: 'a\u0007b' }, ['value']],
    ['everything wrong at once', { type: 'MX', name: '-', value: '!' }, ['name', 'value', 'priority']],
  ];
  it.each(BAD)('%s is refused', async (_, body, fields) => {
    const refused = await add(await newZone(), body);
    expect([refused.status, refused.body.code]).toEqual([422, 'record_invalid']);
    expect(refused.body.record_errors.map(({ field }: { field: string }) => field)).toEqual(fields);
  });
});

it.each(['CNAME', 'ALIAS'])('%s leads to another name than its own', async (type) => {
  const zone = await newZone();
  const refused = await add(zone, { type, name: 'www', value: `WWW.${zone.name}.` });
  expect(refused.body.record_errors).toMatchObject([{ field: 'value', code: 'invalid_format' }]);
});

describe('conflicts', () => {
  it('a CNAME stands alone', async () => {
    const zone = await newZone();
    await add(zone, { type: 'CNAME', name: 'www', value: 'a.example.net' });
    expect((await add(zone, { type: 'TXT', name: 'www', value: 'x' })).body.code).toBe('record_conflict');
    await add(zone, { type: 'A', name: 'api', value: '192.0.2.1' });
    const cname = { type: 'CNAME', name: 'api', value: 'a.example.net' };
    expect((await add(zone, cname)).body.code).toBe('record_conflict');
  });

  it('the same record twice is refused with the id of the first', async () => {
    const zone = await newZone();
    const first = await add(zone, { type: 'A', name: 'www', value: '192.0.2.1' });
    const twice = await add(zone, { type: 'A', name: 'WWW', value: '192.0.2.1', ttl: 60 });
    expect([twice.status, twice.body.code]).toEqual([409, 'already_exists']);
    expect(twice.body.resource_id).toBe(first.body.id);
  });

  it('name servers of the platform are protected', async () => {
    const zone = await newZone();
    const [protectedRecord] = (await list(zone)).filter(({ is_protected }) => is_protected);
    const place = `/v2/dns_zones/${zone.id}/records/${protectedRecord.id}`;
    expect((await service.call('DELETE', place)).body.code).toBe('resource_protected');
    expect((await service.call('PATCH', place, { body: { ttl: 60 } })).body.code).toBe('resource_protected');
  });

  it('a zone has at most 2000 records', async () => {
    const zone = await newZone();
    const record = (index: number): object => ({ type: 'A', name: `h${index}`, value: '192.0.2.1' });
    const records = Array.from({ length: 1998 }, (_, index) => record(index));
    const put = await service.call('PUT', `/v2/dns_zones/${zone.id}/records`, { body: { records } });
    expect([put.status, put.body.records.length]).toEqual([200, 2000]);
    const over = await add(zone, record(5000));
    expect([over.status, over.body.code]).toEqual([403, 'quota_exceeded']);
  });
});

describe('a batch', () => {
  it('deletes, updates and creates in this order, all or nothing', async () => {
    const zone = await newZone();
    const old = (await add(zone, { type: 'CNAME', name: 'www', value: 'a.example.net' })).body;
    const kept = (await add(zone, { type: 'A', name: 'api', value: '192.0.2.1' })).body;
    const place = `/v2/dns_zones/${zone.id}/records/batch`;
    const broken = await service.call('POST', place, {
      body: { delete: [old.id], create: [{ type: 'A', name: 'www', value: 'no address' }] },
    });
    expect(broken.body.record_errors).toEqual([expect.objectContaining({ index: 0, field: 'create.0.value' })]);
    const done = await service.call('POST', place, {
      body: {
        delete: [old.id],
        update: [{ id: kept.id, value: '192.0.2.2' }],
        create: [{ type: 'A', name: 'www', value: '192.0.2.3' }],
      },
    });
    expect(done.status).toBe(200);
    expect(done.body.deleted).toEqual([old.id]);
    expect([...done.body.updated, ...done.body.created].map(short)).toEqual(['A api 192.0.2.2', 'A www 192.0.2.3']);
    expect((await list(zone)).filter(({ is_protected }) => !is_protected).map(short)).toEqual([
      'A api 192.0.2.2',
      'A www 192.0.2.3',
    ]);
  });

  it('refuses ids of other zones', async () => {
    const record = (await add(await newZone(), { type: 'A', value: '192.0.2.1' })).body;
    const other = await newZone();
    const answer = await service.call('POST', `/v2/dns_zones/${other.id}/records/batch`, {
      body: { delete: [record.id] },
    });
    expect([answer.status, answer.body.code]).toEqual([422, 'reference_not_found']);
  });
});

describe('replacement', () => {
  it('keeps what is the same, and the records of the platform', async () => {
    const zone = await newZone();
    const same = (await add(zone, { type: 'A', name: 'a', value: '192.0.2.1' })).body;
    await add(zone, { type: 'A', name: 'b', value: '192.0.2.1' });
    const records = [
      { type: 'A', name: 'a', value: '192.0.2.1', ttl: 120 },
      { type: 'TXT', name: 'c', value: 'new' },
    ];
    const put = await service.call('PUT', `/v2/dns_zones/${zone.id}/records`, { body: { records } });
    expect(put.status).toBe(200);
    const own = put.body.records.filter((record: Body) => !record.is_protected);
    expect(own.map(short)).toEqual(['A a 192.0.2.1', 'TXT c new']);
    expect(own[0]).toMatchObject({ id: same.id, ttl: 120 });
    expect((await service.call('GET', `/v2/dns_zones/${zone.id}`)).body.record_count).toBe(4);
  });
});

describe('zone files', () => {
  const FILE = `; a comment
$TTL 1h
@ IN SOA ns.old.example.net. hostmaster ( 2024010101 ; serial
   7200 3600 1209600 3600 )
@ IN NS ns.old.example.net.
@ 300 IN MX 10 mail
mail A 192.0.2.5
     AAAA 2001:db8::5
www CNAME @
txt TXT "a \\"quoted\\" part" " and \\065 second"
_sip._tcp SRV 0 5 5060 sip.example.net.
$ORIGIN deep.@ORIGIN@
host 1d IN A 192.0.2.6
caa.@ORIGIN@ CAA 0 issue "ca.example.net; policy=ev"
odd IN HINFO "PC" "NetBSD"
bad A 192.0.2.999
latin TXT caf\\233
`;

  it('are imported with line numbers for what is refused', async () => {
    const zone = await newZone();
    const zone_file = FILE.replaceAll('@ORIGIN@', `${zone.name}.`);
    const dry = await service.call('POST', `/v2/dns_zones/${zone.id}/import`, { body: { zone_file, dry_run: true } });
    expect([dry.status, dry.body.created, dry.body.records.length]).toEqual([200, 9, 9]);
    expect((await list(zone)).length).toBe(2);
    const done = await service.call('POST', `/v2/dns_zones/${zone.id}/import`, { body: { zone_file } });
    expect(done.body).toMatchObject({ created: 9, updated: 0, deleted: 0, skipped: 2, notes: [] });
    expect(done.body.errors.map(({ line }: { line: number }) => line)).toEqual([15, 16]);
    const texts = (await list(zone)).map(short);
    expect(texts).toContain('TXT txt "a \\"quoted\\" part" " and A second"');
    expect(texts).toContain('TXT latin.deep "caf\\233"');
    expect(texts).toContain('MX @ mail.' + zone.name + ' 10');
    expect(texts).toContain('CNAME www ' + zone.name);
  });

  it('come back as the same records after an export', async () => {
    const zone = await newZone();
    const text = 'ä"\\ ;()' + 'y'.repeat(300);
    await add(zone, { type: 'TXT', name: 't', value: text });
    await add(zone, { type: 'A', name: '*.w', value: '192.0.2.1', ttl: 60 });
    await add(zone, { type: 'SRV', name: '_a._tcp', value: '.', priority: 1, weight: 2, port: 3 });
    await add(zone, { type: 'CAA', value: 'mailto:sec@example.com', flags: 0, tag: 'iodef' });
    const { zone_file } = (await service.call('GET', `/v2/dns_zones/${zone.id}/export`)).body;
    const before = (await list(zone)).filter(({ is_protected }) => !is_protected);
    await service.call('PUT', `/v2/dns_zones/${zone.id}/records`, { body: { records: [] } });
    const done = await service.call('POST', `/v2/dns_zones/${zone.id}/import`, { body: { zone_file } });
    expect([done.body.created, done.body.errors]).toEqual([4, []]);
    const after = (await list(zone)).filter(({ is_protected }) => !is_protected);
    const plain = (record: Body): unknown => ({ ...record, id: null, created_at: null, updated_at: null });
    expect(after.map(plain)).toEqual(before.map(plain));
    expect((await service.call('GET', `/v2/dns_zones/${zone.id}/export`)).body.zone_file).toBe(zone_file);
  });

  needs('named-checkzone').test('are read as named-checkzone -D reads them', async () => {
    const zone = await newZone();
    const directory = mkdtempSync(path.join(tmpdir(), 'zone-file-'));
    const read = async (zone_file: string): Promise<string[]> => {
      const body = { zone_file, dry_run: true };
      const answer = await service.call('POST', `/v2/dns_zones/${zone.id}/import`, { body });
      expect([answer.status, answer.body.errors]).toEqual([200, []]);
      const shape = ({ name, type, ttl, value, priority, weight, port, flags, tag }: Body): unknown[] => [
        name,
        type,
        ttl ?? 3600,
        value,
        priority,
        weight,
        port,
        flags,
        tag,
      ];
      return answer.body.records.map((one: Body) => JSON.stringify(shape(one))).sort();
    };
    try {
      const [file, out] = [path.join(directory, 'zone'), path.join(directory, 'out')];
      const text = TRICKY_ZONE_FILE.replaceAll('@ORIGIN@', `${zone.name}.`);
      writeFileSync(file, text);
      await run('/usr/bin/named-checkzone', ['-i', 'none', '-k', 'ignore', '-D', '-o', out, zone.name, file]);
      const ours = await read(text);
      expect(ours).toHaveLength(10);
      expect(ours).toEqual(await read(readFileSync(out, 'utf8')));
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  needs('named-checkzone').test('are read by named-checkzone as we wrote them', async () => {
    const zone = await newZone();
    await add(zone, { type: 'TXT', name: 't', value: 'a;b "c" \\' });
    await add(zone, { type: 'MX', value: 'mail.example.net', priority: 5 });
    const { zone_file } = (await service.call('GET', `/v2/dns_zones/${zone.id}/export`)).body;
    const directory = mkdtempSync(path.join(tmpdir(), 'zone-file-'));
    try {
      const file = path.join(directory, 'zone');
      const soa = `@ IN SOA ns.example.net. h.example.net. 1 2 3 4 5\n@ IN NS ns.example.net.\n`;
      writeFileSync(file, zone_file.replace('$TTL 3600\n', `$TTL 3600\n${soa}`));
      const out = path.join(directory, 'out');
      await run('/usr/bin/named-checkzone', ['-D', '-o', out, zone.name, file]);
      expect(readFileSync(out, 'utf8')).toContain('"a;b \\"c\\" \\\\"');
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it.each([
    ['an open quotation mark', 'a TXT "open\n', 1],
    ['an open parenthesis', '\na TXT ( x\n', 2],
    ['an unknown directive', '$DATE 2024\n', 1],
    ['more entries than a zone could have twice', 'a A 192.0.2.1\n'.repeat(5_000), 4_001],
    ['words without end', `a TXT ${'"" '.repeat(100_001)}`, 1],
  ])('%s makes the file unreadable', async (_, zone_file, line) => {
    const answer = await service.call('POST', `/v2/dns_zones/${(await newZone()).id}/import`, { body: { zone_file } });
    expect([answer.status, answer.body.code, answer.body.line]).toEqual([422, 'zone_file_invalid', line]);
  });
});
