// RDATA of the records that the platform serves: by dns-packet, which writes names uncompressed and in the case given,
// as the canonical form needs them (RFC 4034 §6.2). What it does not write as wanted (SOA mailboxes with a dot, CAA,
// DNSSEC) is built of its parts.
import * as packet from 'dns-packet';
import type { ZoneRecord, ZoneSpec } from '../../nameserver';
import { encodeName, labelsOfName, LABEL_BYTES_MAX, type Labels } from './names';

export const TYPE = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  OPT: 41,
  DS: 43,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  CDS: 59,
  CDNSKEY: 60,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
  CAA: 257,
  /** Never on the wire: answered with the addresses of its target. */
  ALIAS: -1,
} as const;

const NAMES = new Map(Object.entries(TYPE).map(([name, number]) => [number as number, name]));

/** `A`, or `TYPE65280` for one without a name (RFC 3597 §5). */
export function typeName(type: number): string {
  return NAMES.get(type) ?? `TYPE${type}`;
}

const STRING_BYTES_MAX = 255;

/** Codecs of dns-packet write the length of the RDATA before it. */
function withoutLength(encoded: Buffer): Buffer {
  return encoded.subarray(2);
}

interface Codec<T> {
  encode(data: T): Buffer;
}

const codecs = packet as unknown as {
  a: Codec<string>;
  aaaa: Codec<string>;
  cname: Codec<string>;
  ns: Codec<string>;
  ptr: Codec<string>;
  mx: Codec<{ preference: number; exchange: string }>;
  srv: Codec<{ priority: number; weight: number; port: number; target: string }>;
  txt: Codec<Buffer[]>;
};

/** @returns null for ALIAS, which has no RDATA of its own */
export function encodeRecord(record: ZoneRecord): Buffer | null {
  const { type, value } = record;
  if (type === 'ALIAS') return null;
  if (type === 'TXT') return withoutLength(codecs.txt.encode(textChunks(value)));
  if (type === 'MX')
    return withoutLength(codecs.mx.encode({ preference: record.priority ?? 0, exchange: rootless(value) }));
  if (type === 'SRV') return withoutLength(codecs.srv.encode(serviceOf(record)));
  if (type === 'CAA') return encodeCaa(record.flags ?? 0, record.tag ?? 'issue', value);
  if (type === 'A' || type === 'AAAA') return encodeAddress(type, value);
  return withoutLength(codecs.cname.encode(value));
}

export function encodeAddress(type: 'A' | 'AAAA', address: string): Buffer {
  return withoutLength(codecs[type === 'A' ? 'a' : 'aaaa'].encode(address));
}

export function encodeNameRdata(name: string): Buffer {
  return withoutLength(codecs.ns.encode(name));
}

/** RFC 1035 §3.3.13. */
export function encodeSoa({ name_servers, soa, serial }: ZoneSpec): Buffer {
  const { email, refresh, retry, expire, minimum } = soa;
  const numbers = Buffer.alloc(20);
  [serial, refresh, retry, expire, minimum].forEach((value, index) => numbers.writeUInt32BE(value, index * 4));
  return Buffer.concat([encodeName(labelsOfName(name_servers[0] ?? '')), encodeName(mailboxOf(email)), numbers]);
}

/** A bare dot is no name for the codec: the root is an empty one. */
function rootless(name: string): string {
  return name === '.' ? '' : name;
}

function serviceOf({ priority, weight, port, value }: ZoneRecord): {
  priority: number;
  weight: number;
  port: number;
  target: string;
} {
  return { priority: priority ?? 0, weight: weight ?? 0, port: port ?? 0, target: rootless(value) };
}

/** RFC 8659 §4.1: flags, length of the tag, tag, value. */
function encodeCaa(flags: number, tag: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([flags, tag.length]), Buffer.from(tag, 'ascii'), Buffer.from(value, 'utf8')]);
}

/** The strings of a TXT record, of at most 255 bytes each (RFC 1035 §3.3.14). */
export function textChunks(value: string): Buffer[] {
  const bytes = Buffer.from(value, 'utf8');
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length || at === 0; at += STRING_BYTES_MAX) {
    chunks.push(bytes.subarray(at, at + STRING_BYTES_MAX));
  }
  return chunks;
}

/** The local part is one label, dots and all (RFC 1035 §8). */
function mailboxOf(email: string): Labels {
  const at = email.lastIndexOf('@');
  return [email.slice(0, at).slice(0, LABEL_BYTES_MAX), ...labelsOfName(email.slice(at + 1))];
}
