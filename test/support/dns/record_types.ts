// A record of each type whose value is its whole RDATA, as the API has it; and how to compare what programs print.
import { absoluteHostOf } from '../../../core/protocols/dns_records/presentation';
import { encodeRdata, tokenizeValue, type RdataType } from '../../../core/protocols/dns_records/rdata';

const DIGEST = '49FD46E6C4B45C55D4AC69CBD3CD34AC1AFE51DE49FD46E6C4B45C55D4AC69CB';

interface TypedRecord {
  type: RdataType | 'A' | 'ALIAS' | 'NS';
  name: string;
  value: string;
}

export const RDATA_RECORDS: (TypedRecord & { type: RdataType })[] = [
  { type: 'HTTPS', name: '@', value: '1 . alpn=h3,h2 ipv4hint=192.0.2.1 ipv6hint=2001:db8::1' },
  { type: 'HTTPS', name: 'shop', value: '0 svc.example.net' },
  { type: 'HTTPS', name: '*.wild', value: '1 . alpn=h2' },
  { type: 'SVCB', name: '_dns', value: '1 dns.example.net mandatory=alpn alpn=dot port=853 ech=AAj+DQAE3q2+7w==' },
  { type: 'SVCB', name: '_odd', value: String.raw`2 . alpn="f\\\\oo\\,bar,h2" key667="a\210\"b"` },
  { type: 'SVCB', name: '_doh', value: '1 dns.example.net alpn=h2 dohpath=/dns-query{?dns}' },
  { type: 'TLSA', name: '_443._tcp', value: `3 1 1 ${DIGEST}` },
  { type: 'SSHFP', name: 'host', value: `4 2 ${DIGEST}` },
  { type: 'NAPTR', name: 'tel', value: '100 10 "s" "SIP+D2U" "" _sip._udp.example.net' },
  { type: 'NAPTR', name: 'tel', value: String.raw`100 20 "u" "E2U+sip" "!^(.*)$!sip:\\1@example.com!" .` },
  { type: 'LOC', name: '@', value: '52 22 23.000 N 4 53 32.000 E -2.00m 1.00m 10000.00m 10.00m' },
  // PowerDNS writes it as 60 8 60.000.
  { type: 'LOC', name: 'north', value: '60 9 0.000 N 24 39 0.000 E 10.00m 20.00m 2000.00m 20.00m' },
  { type: 'DS', name: 'below', value: `12345 13 2 ${DIGEST}` },
];

/** Without them the others cannot be, or not be answered. */
export const NEEDED_RECORDS: TypedRecord[] = [
  { type: 'NS', name: 'below', value: 'ns1.example.net' },
  { type: 'ALIAS', name: '@', value: 'target.example.net' },
];

/** The bytes of values, in their order: programs write digits and quotation marks in different ways. */
export function bytesOf(type: RdataType, values: readonly string[]): string[] {
  return values.map((value) => encodeRdata(type, tokenizeValue(value), absoluteHostOf).toString('hex')).sort();
}
