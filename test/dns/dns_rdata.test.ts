// The presentation format and the bytes of record types, against vectors of others: RFC 9460 appendix D, RFC 4034 §5.4,
// RFC 4255 §4, and tests of BIND and PowerDNS.
import { absoluteHostOf, presentationOf, unknownFormTokens } from '../../core/protocols/dns_records/presentation';
import {
  encodeRdata,
  formatRdata,
  InvalidRdata,
  tokenizeValue,
  type RdataType,
} from '../../core/protocols/dns_records/rdata';
import { typeOfWord } from '../../core/protocols/dns_records/types';

const encode = (type: RdataType, value: string): Buffer => encodeRdata(type, tokenizeValue(value), absoluteHostOf);
const FOO = '03666f6f076578616d706c6503636f6d00';
const FOO_ORG = '03666f6f076578616d706c65036f726700';
const ALPN_WIRE = `0010${FOO_ORG}0001000c08665c6f6f2c626172026832`;
const ALPN_TEXT = String.raw`16 foo.example.org alpn="f\\\\oo\\,bar,h2"`;
const URN = String.raw`"/urn:cid:.+@([^\\.]+\\.)(.*)$/\\2/i"`;
const URN_WIRE = '202f75726e3a6369643a2e2b40285b5e5c2e5d2b5c2e29282e2a29242f5c322f69';
const [AB32, D2_32] = ['ab'.repeat(32), 'd2'.repeat(32)];

/** Value, bytes, normal form where it is another one. */
const VECTORS: Record<string, [string, string, string?][]> = {
  SVCB: [
    ['0 foo.example.com.', `0000${FOO}`, '0 foo.example.com'],
    ['1 .', '000100'],
    ['16 foo.example.com. port=53', `0010${FOO}000300020035`, '16 foo.example.com port=53'],
    ['1 foo.example.com key667=hello', `0001${FOO}029b000568656c6c6f`],
    [String.raw`1 foo.example.com key667="hello\210qoo"`, `0001${FOO}029b000968656c6c6fd2716f6f`],
    [
      ...(['1 foo.example.com ipv6hint="2001:db8::1,2001:db8::53:1"'] as const),
      `0001${FOO}0006002020010db800000000000000000000000120010db8000000000000000000530001`,
      '1 foo.example.com ipv6hint=2001:db8::1,2001:db8::53:1',
    ],
    [
      ...(['16 foo.example.org. ( alpn=h2,h3-19 mandatory=ipv4hint,alpn ipv4hint=192.0.2.1 )'] as const),
      `0010${FOO_ORG}0000000400010004000100090268320568332d313900040004c0000201`,
      '16 foo.example.org mandatory=alpn,ipv4hint alpn=h2,h3-19 ipv4hint=192.0.2.1',
    ],
    [String.raw`16 foo.example.org. alpn="f\\\\oo\\,bar,h2"`, ALPN_WIRE, ALPN_TEXT],
    [String.raw`16 foo.example.org. alpn=f\\\092oo\092,bar,h2`, ALPN_WIRE, ALPN_TEXT],
    [String.raw`1 . key1="\002h2" key2`, '0001000001000302683200020000', '1 . alpn=h2 no-default-alpn'],
    ['1 . alpn=h2 dohpath=/q{?dns}', '00010000010003026832000700082f717b3f646e737d'],
  ],
  HTTPS: [['1 . ech="ZWdnIQ==" alpn=h3', '000100000100030268330005000465676721', '1 . alpn=h3 ech=ZWdnIQ==']],
  LOC: [
    [
      ...(['42 21 54 N 71 06 18 W -24m 30m', '0033161389172dd070be15f000988d20'] as const),
      '42 21 54.000 N 71 6 18.000 W -24.00m 30.00m 10000.00m 10.00m',
    ],
    [
      ...(['32 7 19 S 116 2 25 E 0', '00121613791b7d2898e6486800989680'] as const),
      '32 7 19.000 S 116 2 25.000 E 0.00m 1.00m 10000.00m 10.00m',
    ],
  ],
  NAPTR: [
    [`100 10 "" "" ${URN} .`, `0064000a0000${URN_WIRE}00`],
    ['1 2 u x "" foo.example.com.', `000100020175017800${FOO}`, '1 2 "u" "x" "" foo.example.com'],
  ],
  DS: [
    [
      ...(['60485 5 1 ( 2BB183AF5F22588179A53B0A 98631FAD1A292118 )'] as const),
      'ec4505012bb183af5f22588179a53b0a98631fad1a292118',
      '60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118',
    ],
    [`1 ECDSAP256SHA256 2 ${AB32}`, `00010d02${AB32}`, `1 13 2 ${AB32.toUpperCase()}`],
  ],
  SSHFP: [['2 1 123456789ABCDEF67890123456789ABCDEF67890', '0201123456789abcdef67890123456789abcdef67890']],
  TLSA: [
    [`DANE-EE SPKI SHA2-256 ${D2_32}`, `030101${D2_32}`, `3 1 1 ${D2_32.toUpperCase()}`],
    ['3 0 0 30820307', '03000030820307'],
  ],
};

describe.each(Object.entries(VECTORS) as [RdataType, [string, string, string?][]][])('%s', (type, vectors) => {
  test.each(vectors)('%s', (value, bytes, normal = value) => {
    const data = encode(type, value);
    expect([data.toString('hex'), formatRdata(type, data)]).toEqual([bytes, normal]);
    // What a zone file has, and the form of unknown types (RFC 3597 §5), are the same bytes.
    expect(encode(type, presentationOf({ type, value }))).toEqual(data);
    const unknown = unknownFormTokens(type, tokenizeValue(`\\# ${data.length} ${bytes}`));
    expect(encodeRdata(type, unknown ?? [], absoluteHostOf)).toEqual(data);
  });
});

const MISTAKES: [RdataType, string, string][] = [
  ['HTTPS', '1', 'lacks the target'],
  ['HTTPS', 'x .', 'priority from 0 to 65535'],
  ['HTTPS', '0 example.net alpn=h2', 'without parameters'],
  ['HTTPS', '1 . alpn', 'the parameter alpn with a value'],
  ['HTTPS', '1 . alpn=h2,,h3', 'the parameter alpn with a value'],
  ['HTTPS', '1 . alpn=h2 alpn=h3', 'alpn once'],
  ['HTTPS', '1 . no-default-alpn', 'must have alpn'],
  ['HTTPS', '1 . no-default-alpn=h2 alpn=h2', 'no-default-alpn without a value'],
  ['HTTPS', '1 . port=65536', 'port from 0 to 65535'],
  ['HTTPS', '1 . ipv4hint=192.0.2.1,2001:db8::1', 'IPv4 addresses'],
  ['HTTPS', '1 . ipv6hint=fe80::1%eth0', 'IPv6 addresses'],
  ['HTTPS', '1 . ipv4hint=auto', 'IPv4 addresses'],
  ['HTTPS', '1 . ech=!', 'ech in base64'],
  ['HTTPS', '1 . mandatory=alpn', 'alpn, which is mandatory'],
  ['HTTPS', '1 . mandatory=mandatory', 'not itself'],
  ['HTTPS', '1 . key65535=x', 'key0 to key65534'],
  ['HTTPS', '1 . key01=x', 'key0 to key65534'],
  ['HTTPS', '1 . color=red', 'known parameters'],
  ['HTTPS', '1 . alpn="h2"port=1', 'a space after'],
  ['SVCB', '1 . dohpath=/dns-query', 'the variable dns'],
  ['TLSA', `4 1 1 ${AB32}`, 'certificate usage from 0 to 3'],
  ['TLSA', '3 1 1 abcd', '32 bytes for its type, which are 64 digits, not 4'],
  ['TLSA', '3 1 1', 'lacks the certificate association'],
  ['SSHFP', '4 2 abc', 'two for each byte'],
  ['DS', `1 13 4 ${AB32}`, '48 bytes'],
  ['NAPTR', '1 2 "u" "x" "!a(b!c" .', 'three delimiters'],
  ['NAPTR', String.raw`1 2 "u" "x" "!a!\\1!" .`, 'three delimiters'],
  ['LOC', '91 N 0 E 0m', 'latitude'],
  ['LOC', '90 0 1 N 0 E 0m', 'latitude'],
  ['LOC', '1 N 181 E 0m', 'longitude'],
  ['LOC', '1 N 1 E 0m 1m 1m 1m 1m', 'must end before 1m'],
  ['LOC', '1 N 1 E', 'lacks the altitude'],
];

test.each(MISTAKES)('%s %s is refused', (type, value, message) => {
  expect(() => encode(type, value)).toThrow(InvalidRdata);
  expect(() => encode(type, value)).toThrow(message);
});

test('what is longer than its length can say is refused', () => {
  const hints = `1 . ipv4hint=${'192.0.2.1,'.repeat(17_000)}192.0.2.1`;
  expect(() => encode('SVCB', hints)).toThrow('ipv4hint with at most 65535 bytes');
  expect(() => encode('TLSA', `3 0 0 ${'ab'.repeat(65_536)}`)).toThrow('at most 65535 bytes');
});

test('types are known by their numbers too', () => {
  expect(['TYPE65', 'type1', 'https', 'TYPE65280'].map(typeOfWord)).toEqual(['HTTPS', 'A', 'HTTPS', 'TYPE65280']);
});

const UNKNOWN: [string, string, string[] | null][] = [
  ['A', '\\# 4 c0000201', ['192.0.2.1']],
  ['MX', '\\# 4 000a 0000', null],
  ['MX', '\\# 3 000a 00', ['10', '.']],
  ['TXT', '\\# 6 0268 69 022122', ['hi', '!"']],
  ['CAA', '\\# 12 0005697373 75652e63612e78', ['0', 'issue', '.ca.x']],
  ['A', '\\# 5 c000020100', null],
  ['A', '\\# 4 c00002', null],
  ['NS', '\\# 1 3f', null],
];

test.each(UNKNOWN)('%s %s is read as of an unknown type (RFC 3597 §5)', (type, value, words) => {
  const read = (): string[] | undefined =>
    unknownFormTokens(type, tokenizeValue(value))?.map(({ bytes }) => bytes.toString());
  if (words) expect(read()).toEqual(words);
  else expect(read).toThrow(InvalidRdata);
});

test.each([
  ['/{dns}', true],
  ['/a{b}{?x,dns*}', true],
  ['/{{dns}', true],
  ['/dns{?q}', false],
  ['/{?dnsx}', false],
  ['/{?dns', false],
  ['/}dns{', false],
  ['q{?dns}', false],
])('the path %s has the variable dns: %s', (path, isPath) => {
  const read = (): Buffer => encode('SVCB', `1 . dohpath="${path}"`);
  if (isPath) expect(read().length).toBeGreaterThan(0);
  else expect(read).toThrow(InvalidRdata);
});

test('a value of a tenant takes no time', () => {
  const since = performance.now();
  expect(() => encode('SVCB', `1 . dohpath="/${'{dns,'.repeat(800)}"`)).toThrow(InvalidRdata);
  expect(performance.now() - since).toBeLessThan(200);
});
