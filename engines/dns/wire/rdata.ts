// RDATA of the supported record types. Names are uncompressed and in lower case, as in the canonical form (RFC 4034
// §6.2). dns-packet encodes addresses and texts. Its codecs of records with a name add a zero byte for the root, so
// these are encoded here, as are SOA mailboxes with a dot, CAA and DNSSEC types.
import * as packet from 'dns-packet';
import { rdataOfValue } from '../../../core/protocols/dns_records/presentation';
import { isRdataType } from '../../../core/protocols/dns_records/rdata';
import { TYPE_NUMBERS } from '../../../core/protocols/dns_records/types';
import { localPartText } from '../../../core/protocols/mailbox';
import { textStrings } from '../../../core/protocols/text_strings';
import type { ZoneRecord, ZoneSpec } from '../nameserver';
import { encodeName, labelsOfName, LABEL_BYTES_MAX, type Labels } from './names';

export const TYPE = {
  ...TYPE_NUMBERS,
  SOA: 6,
  OPT: 41,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  CDS: 59,
  CDNSKEY: 60,
  /** Start of the meta types, which no name has (RFC 6895 §3.1, RFC 9824 §3.4). */
  NXNAME: 128,
  IXFR: 251,
  AXFR: 252,
  MAILB: 253,
  MAILA: 254,
  ANY: 255,
  /** Internal: answered with the addresses of its target. */
  ALIAS: -1,
} as const;

const NAMES = new Map(Object.entries(TYPE).map(([name, number]) => [number as number, name]));

/** `A`, or `TYPE65280` for types without a name (RFC 3597 §5). */
export function typeName(type: number): string {
  return NAMES.get(type) ?? `TYPE${type}`;
}

/** Removes the RDATA length, with which codecs of dns-packet begin. */
function withoutLength(encoded: Buffer): Buffer {
  return encoded.subarray(2);
}

interface Codec<T> {
  encode(data: T): Buffer;
}

const codecs = packet as unknown as {
  a: Codec<string>;
  aaaa: Codec<string>;
  txt: Codec<Buffer[]>;
};

/** @returns null for ALIAS, which has no RDATA */
export function encodeRecord(record: ZoneRecord): Buffer | null {
  const { type, value } = record;
  if (type === 'ALIAS') return null;
  if (type === 'TXT') return withoutLength(codecs.txt.encode(textStrings(value)));
  if (type === 'MX') return Buffer.concat([numbersOf(record.priority), encodeNameRdata(value)]);
  if (type === 'SRV')
    return Buffer.concat([numbersOf(record.priority, record.weight, record.port), encodeNameRdata(value)]);
  if (type === 'CAA') return encodeCaa(record.flags ?? 0, record.tag ?? 'issue', value);
  if (type === 'A' || type === 'AAAA') return encodeAddress(type, value);
  if (isRdataType(type)) return rdataOfValue(type, value);
  return encodeNameRdata(value);
}

export function encodeAddress(type: 'A' | 'AAAA', address: string): Buffer {
  return withoutLength(codecs[type === 'A' ? 'a' : 'aaaa'].encode(address));
}

/** @param name as in the API; `.` is the root */
export function encodeNameRdata(name: string): Buffer {
  return encodeName(name === '.' ? [] : labelsOfName(name));
}

/** 16-bit integers; absent is 0. */
function numbersOf(...numbers: (number | null | undefined)[]): Buffer {
  const bytes = Buffer.alloc(numbers.length * 2);
  numbers.forEach((number, index) => bytes.writeUInt16BE(number ?? 0, index * 2));
  return bytes;
}

/** RFC 1035 §3.3.13. */
export function encodeSoa({ name_servers, soa, serial }: ZoneSpec): Buffer {
  const { email, refresh, retry, expire, minimum } = soa;
  const numbers = Buffer.alloc(20);
  [serial, refresh, retry, expire, minimum].forEach((value, index) => numbers.writeUInt32BE(value, index * 4));
  return Buffer.concat([encodeName(labelsOfName(name_servers[0] ?? '')), encodeName(mailboxOf(email)), numbers]);
}

/** RFC 8659 §4.1: flags, length of the tag, tag, value. */
function encodeCaa(flags: number, tag: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([flags, tag.length]), Buffer.from(tag, 'ascii'), Buffer.from(value, 'utf8')]);
}

/** The local part is a single label, including its dots (RFC 1035 §8). */
function mailboxOf(email: string): Labels {
  const at = email.lastIndexOf('@');
  return [localPartText(email.slice(0, at)).slice(0, LABEL_BYTES_MAX), ...labelsOfName(email.slice(at + 1))];
}
