// Operations: importDnsZone, exportDnsZone.
// Zone files as other servers write them: what is taken otherwise than it is written is noted, and what cannot be taken
// is listed (docs/contract/resources.md §12.2).
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../support/processes/free_port';
import { startService, type Answer, type TestService } from '../support/service';
import { needs } from '../support/runner/programs';

type Body = Answer['body'];

const run = promisify(execFile);
let service: TestService;

beforeAll(async () => {
  service = await startService({ settings: { DNS_PORT: String(await freePort()), QUOTAS: '{"dns_zones": 1000}' } });
});
afterAll(() => service?.close());

let count = 0;

async function newZone(name = `file${(count += 1)}.example.com`): Promise<Body> {
  const made = await service.call('POST', '/v2/dns_zones', { body: { name } });
  expect([made.status, made.text]).toEqual([201, expect.anything()]);
  return made.body;
}

async function imported(zone: Body, zone_file: string, more: object = {}): Promise<Body> {
  const answer = await service.call('POST', `/v2/dns_zones/${zone.id}/import`, { body: { zone_file, ...more } });
  expect([answer.status, answer.text]).toEqual([200, expect.anything()]);
  return answer.body;
}

const short = ({ name, type, value, ttl }: Body): string => `${name} ${ttl ?? '-'} ${type} ${value}`;
const shortAll = ({ records }: Body): string[] => records.map(short).sort();

test('names below the root as origin are those of the zone, its apex too', async () => {
  const zone = await newZone();
  const { name } = zone;
  const file = `$ORIGIN .
$TTL 300
${name} IN SOA ns.example.net. h.example.net. ( 1 2 3 4 5 )
 NS ns.example.net.
 MX 10 mail.${name}
 A 192.0.2.1
www.${name} CNAME ${name}
$ORIGIN sub.${name}.
a A 192.0.2.2
$ORIGIN .
b.${name} MX 0 .
`;
  const result = await imported(zone, file);
  expect(result.errors).toEqual([]);
  expect(shortAll(result)).toEqual([
    '@ 300 A 192.0.2.1',
    `@ 300 MX mail.${name}`,
    'a.sub 300 A 192.0.2.2',
    'b 300 MX .',
    `www 300 CNAME ${name}`,
  ]);
});

test('TTLs that a record cannot have become the nearest one, with a note', async () => {
  const file = `$TTL 604800
a A 192.0.2.1
b 0 A 192.0.2.2
c 30s A 192.0.2.3
d 1w2d A 192.0.2.4
e 300 A 192.0.2.5
`;
  const result = await imported(await newZone(), file);
  expect(result.errors).toEqual([]);
  expect(result.notes.map(({ line, message }: Body) => `${line}: ${message}`)).toEqual([
    '1: The TTL 604800 is not from 60 to 86400: 86400.',
    '3: The TTL 0 is not from 60 to 86400: 60.',
    '4: The TTL 30 is not from 60 to 86400: 60.',
    '5: The TTL 777600 is not from 60 to 86400: 86400.',
  ]);
  const ttls = result.records.map(({ name, ttl }: Body) => `${name} ${ttl}`).sort();
  expect(ttls).toEqual(['a 86400', 'b 60', 'c 60', 'd 86400', 'e 300']);
});

test('without any TTL, that of negative answers is the default', async () => {
  const file = `@ IN SOA ns.example.net. h.example.net. 1 7200 3600 1209600 900
a A 192.0.2.1
`;
  expect(shortAll(await imported(await newZone(), file))).toEqual(['a 900 A 192.0.2.1']);
});

test('$GENERATE is listed as not supported, and what is around it is taken', async () => {
  const result = await imported(await newZone(), 'a A 192.0.2.1\n$GENERATE 1-20 h$ A 192.0.2.$\nb A 192.0.2.2\n');
  expect(result.errors).toEqual([{ line: 2, message: expect.stringContaining('$GENERATE is not supported') }]);
  expect(shortAll(result)).toEqual(['a - A 192.0.2.1', 'b - A 192.0.2.2']);
});

test('escapes are what they stand for', async () => {
  const file = '\\052.x A 192.0.2.1\n\\119ww A 192.0.2.2\n\\_dmarc TXT x\n\\@ A 192.0.2.3\na\\.b A 192.0.2.4\n';
  const result = await imported(await newZone(), file);
  expect(result.errors.map(({ line }: Body) => line)).toEqual([5]);
  expect(shortAll(result)).toEqual(['*.x - A 192.0.2.1', '@ - A 192.0.2.3', '_dmarc - TXT x', 'www - A 192.0.2.2']);
});

test('names beyond ASCII become punycode', async () => {
  const zone = await newZone('bücher.example.com');
  const result = await imported(zone, 'straße A 192.0.2.1\nwww.bücher.example.com. CNAME straße\n😀 A 192.0.2.2\n');
  expect(result.errors).toEqual([{ line: 3, message: expect.stringContaining('emoji') }]);
  expect(shortAll(result)).toEqual([
    'www - CNAME xn--strae-oqa.xn--bcher-kva.example.com',
    'xn--strae-oqa - A 192.0.2.1',
  ]);
});

const notesOf = ({ notes }: Body): string[] => notes.map(({ line, message }: Body) => `${line}: ${message}`);

test('a CNAME of the apex becomes ALIAS, and a record that was proxied is noted', async () => {
  const zone = await newZone();
  const { name } = zone;
  // As Cloudflare exports it, with a SOA whose name has no dot.
  const file = `;; SOA Record
${name}\t3600\tIN\tSOA\tada.ns.example.net. dns.example.net. 2050891861 10000 2400 604800 3600

;; NS Records
${name}.\t86400\tIN\tNS\tada.ns.example.net.

;; CNAME Records
${name}.\t300\tIN\tCNAME\tshop.example.net. ; cf_tags=cf-proxied:true
www.${name}.\t300\tIN\tCNAME\tshop.example.net. ; cf_tags=cf-proxied:false

;; HTTPS Records
${name}.\t300\tIN\tHTTPS\t1 . alpn="h3,h2" ipv4hint="192.0.2.1"
`;
  const result = await imported(zone, file);
  expect([result.errors, result.skipped, shortAll(result)]).toEqual([
    [],
    2,
    ['@ 300 ALIAS shop.example.net', '@ 300 HTTPS 1 . alpn=h3,h2 ipv4hint=192.0.2.1', 'www 300 CNAME shop.example.net'],
  ]);
  expect(notesOf(result)).toEqual([
    `8: The CNAME record of ${name} was proxied: its value is answered from now on, and clients connect to it ` +
      'directly.',
    `8: The CNAME record of ${name} became ALIAS: the apex of a zone cannot have a CNAME.`,
  ]);
  expect(await imported(zone, file)).toMatchObject({ created: 0, updated: 0, skipped: 5 });
});

test('names that seem to lack their dot are noted', async () => {
  const zone = await newZone();
  const { name } = zone;
  const file = `www.${name} A 192.0.2.1
mail CNAME shop.example.net
sub CNAME a.b
_sip._tls.@ SRV 0 0 443 sip.example.net.
$ORIGIN ${name}
x A 192.0.2.2
$ORIGIN .
y.${name} A 192.0.2.3
`;
  const result = await imported(zone, file);
  expect(notesOf(result)).toEqual([
    `1: The name www.${name} has no dot at its end, so it became www.${name}.${name}.`,
    `2: The value shop.example.net has no dot at its end, so it became shop.example.net.${name}.`,
    `5: The origin ${name} has no dot at its end, so it became ${name}.${name}.`,
  ]);
  expect(result.records.map((record: Body) => record.name)).toEqual([
    ...[`www.${name}`, 'mail', 'sub', '_sip._tls', `x.${name}`, 'y'],
  ]);
});

test('what is not supported is listed by its line, and the rest is taken', async () => {
  const digest = '49fd46e6c4b45c55d4ac69cbd3cd34ac1afe51de49fd46e6c4b45c55d4ac69cb';
  const file = `a A 192.0.2.1
$INCLUDE other.zone
b HINFO "PC" "NetBSD"
c TYPE65280 \\# 1 00
d TYPE65 \\# 3 000100
e A \\# 4 c0000202
f A \\# 4 c00002
g HTTPS 1 . color=red
h DS 1 13 2 ${digest}
i DS 1 13 ( 2
  ${digest} ) ; beside its NS
i NS ns1.example.net.
@ DS 1 13 2 ${digest}
z A 192.0.2.3`.replaceAll('\\\\', '\\');
  const result = await imported(await newZone(), file.replaceAll('\n', '\r\n'));
  expect(result.errors.map(({ line, message }: Body) => `${line}: ${message}`)).toEqual([
    '2: $INCLUDE is not supported. Import the other file too.',
    '3: The type HINFO is not supported.',
    '4: The type TYPE65280 is not supported.',
    expect.stringMatching(/^7: The value of the A record must have as many bytes/),
    '8: The value of the HTTPS record must have known parameters, or key0 to key65534, not color.',
    '9: The DS record of h: the name has no NS records, so it is not delegated.',
    expect.stringMatching(/^13: .*at the registrar/),
  ]);
  expect(shortAll(result)).toEqual([
    ...['a - A 192.0.2.1', 'd - HTTPS 1 .', 'e - A 192.0.2.2'],
    ...[`i - DS 1 13 2 ${digest.toUpperCase()}`, 'i - NS ns1.example.net', 'z - A 192.0.2.3'],
  ]);
});

const STRINGS = [
  ['two strings', '"v=DKIM1; k=rsa" "p=abc"', '"v=DKIM1; k=rsa" "p=abc"'],
  ['one', '"v=spf1 -all"', 'v=spf1 -all'],
  ['an empty one', '"a" ""', '"a" ""'],
  ['bytes that are no text', '"caf\\233"', '"caf\\233"'],
  ['one that is too long', `"${'x'.repeat(300)}"`, 'x'.repeat(300)],
  ['words', 'a b', '"a" "b"'],
  ['a quotation mark', '"\\"a\\""', '"\\"a\\""'],
];

test.each(STRINGS)('the strings of a TXT record stay as they are: %s', async (_, text, value) => {
  const zone = await newZone();
  const { records } = await imported(zone, `t TXT ${text}\n`);
  expect(records.map((record: Body) => record.value)).toEqual([value]);
  const { zone_file } = (await service.call('GET', `/v2/dns_zones/${zone.id}/export`)).body;
  expect(await imported(zone, zone_file)).toMatchObject({ created: 0, updated: 0, errors: [] });
  // The value is the same for whoever writes the record.
  const body = { type: 'TXT', name: 't', value };
  expect((await service.call('POST', `/v2/dns_zones/${zone.id}/records`, { body })).body.code).toBe('already_exists');
});

test('zones of a part of a network have slashes (RFC 2317)', async () => {
  const zone = await newZone('0/25.2.0.192.in-addr.arpa');
  const above = await newZone('2.0.192.in-addr.arpa');
  const result = await imported(zone, '$ORIGIN 0/25.2.0.192.in-addr.arpa.\n1 PTR host.example.net.\n');
  expect(shortAll(result)).toEqual(['1 - PTR host.example.net']);
  const lines = '0/25 NS ns1.example.net.\n1 CNAME 1.0/25\n';
  expect(shortAll(await imported(above, lines))).toEqual([
    '0/25 - NS ns1.example.net',
    '1 - CNAME 1.0/25.2.0.192.in-addr.arpa',
  ]);
  const refused = await service.call('POST', '/v2/dns_zones', { body: { name: '0/25.example.com' } });
  expect([refused.status, refused.body.errors?.[0]?.field]).toEqual([422, 'name']);
});

needs('named-compilezone').test('what named-compilezone writes imports as the same records', async () => {
  const zone = await newZone();
  const directory = mkdtempSync(path.join(tmpdir(), 'zone-file-'));
  try {
    const [file, out] = [path.join(directory, 'zone'), path.join(directory, 'out')];
    const text = `$TTL 604800
@ IN SOA ns.example.net. h.example.net. 1 7200 3600 1209600 3600
@ IN NS ns.example.net.
@ MX 0 .
*.x TXT "a" "b"
_s._tcp SRV 0 0 0 .
host 60 A 192.0.2.1
`;
    writeFileSync(file, text);
    const ours = shortAll(await imported(zone, text, { dry_run: true }));
    expect(ours).toHaveLength(4);
    for (const style of ['relative', 'full']) {
      await run('named-compilezone', ['-i', 'none', '-k', 'ignore', '-s', style, '-o', out, zone.name, file]);
      const theirs = await imported(zone, readFileSync(out, 'utf8'), { dry_run: true });
      expect([style, theirs.errors, shortAll(theirs)]).toEqual([style, [], ours]);
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
});
