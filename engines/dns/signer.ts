// DNSSEC signatures. A signature is made on first use, and kept with its record set until it is about to expire.
import { createHash, sign } from 'node:crypto';
import { digestRdata, DNSSEC_ALGORITHM, openSigningKey, type OpenedKey } from '../../core/protocols/dnssec';
import { groupBy } from '../../core/group_by';
import type { ZoneSpec } from './nameserver';
import { encodeName, labelsOfName, type Labels } from './wire/names';
import { TYPE } from './wire/rdata';
import type { RecordSet } from './zone';

const HOUR_S = 3600;
const DAY_S = 24 * HOUR_S;
/** Clocks of resolvers may be slow. */
const INCEPTION_BEFORE_S = HOUR_S;
const VALID_S = 14 * DAY_S;
const RENEW_BEFORE_S = 5 * DAY_S;

export interface Signer {
  /** Identifies the keys, to detect changes. */
  fingerprint: string;
  zone: Buffer;
  keys: OpenedKey[];
  /** DNSKEY, CDS and CDNSKEY of the apex (RFC 7344). */
  keySets: { type: number; rdata: Buffer[] }[];
  signatures: WeakMap<RecordSet, { until: number; rdata: Buffer[] }>;
}

/** @param before previous signer, reused with its signatures if the keys are unchanged */
export function openSigner({ name, keys }: ZoneSpec, before: Signer | null): Signer | null {
  if (!keys.length) return null;
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([name, keys]))
    .digest('hex');
  if (before?.fingerprint === fingerprint) return before;
  const opened = keys.map(openSigningKey);
  const zone = encodeName(labelsOfName(name));
  const signing = opened.filter(({ role }) => role === 'ksk');
  const keySets = [
    { type: TYPE.DNSKEY, rdata: opened.map(({ rdata }) => rdata) },
    { type: TYPE.CDNSKEY, rdata: signing.map(({ rdata }) => rdata) },
    { type: TYPE.CDS, rdata: signing.map((key) => digestRdata(name, key)) },
  ];
  return { fingerprint, zone, keys: opened, keySets, signatures: new WeakMap() };
}

/** RDATA of the signatures of a set; several during a key rollover. */
export function signaturesOf(signer: Signer, owner: Labels, set: RecordSet): Buffer[] {
  const now = Math.floor(Date.now() / 1000);
  const known = signer.signatures.get(set);
  const leftS = known ? known.until - now : 0;
  // More than the full validity remains if the clock was ahead when it was made: its inception is in the future.
  if (known && leftS > RENEW_BEFORE_S && leftS <= VALID_S) return known.rdata;
  const ofKeys = set.type === TYPE.DNSKEY || set.type === TYPE.CDS || set.type === TYPE.CDNSKEY;
  const keys = signer.keys.filter(({ role }) => role === (ofKeys ? 'ksk' : 'zsk'));
  const until = now + VALID_S;
  const rdata = keys.map((key) => signature(signer, key, owner, set, now - INCEPTION_BEFORE_S, until));
  signer.signatures.set(set, { until, rdata });
  return rdata;
}

function signature(signer: Signer, key: OpenedKey, owner: Labels, set: RecordSet, from: number, until: number): Buffer {
  const head = Buffer.alloc(18);
  head.writeUInt16BE(set.type, 0);
  head.writeUInt8(DNSSEC_ALGORITHM, 2);
  // A wildcard label does not count (RFC 4034 §3.1.3).
  head.writeUInt8(owner[0] === '*' ? owner.length - 1 : owner.length, 3);
  head.writeUInt32BE(set.ttl, 4);
  head.writeUInt32BE(until, 8);
  head.writeUInt32BE(from, 12);
  head.writeUInt16BE(key.tag, 16);
  const start = Buffer.concat([head, signer.zone]);
  const name = encodeName(owner);
  const records = set.rdata.map((data) => Buffer.concat([name, recordHead(set, data), data]));
  const bytes = sign('sha256', Buffer.concat([start, ...records]), { key: key.private, dsaEncoding: 'ieee-p1363' });
  return Buffer.concat([start, bytes]);
}

/** Type, class IN, TTL and length, in wire format. */
export function recordHead({ type, ttl }: Pick<RecordSet, 'type' | 'ttl'>, data: Buffer): Buffer {
  const head = Buffer.alloc(10);
  head.writeUInt16BE(type, 0);
  head.writeUInt16BE(1, 2);
  head.writeUInt32BE(ttl, 4);
  head.writeUInt16BE(data.length, 8);
  return head;
}

/** RDATA of an NSEC record: the next name and the existing types (RFC 4034 §4.1). */
export function denialRdata(next: Labels, types: number[]): Buffer {
  const windows = groupBy([...new Set(types)], (type) => type >> 8);
  const maps = [...windows]
    .sort(([a], [b]) => a - b)
    .map(([window, found]) => {
      const bits = Buffer.alloc(32);
      for (const type of found) bits[(type & 0xff) >> 3] = (bits[(type & 0xff) >> 3] as number) | (0x80 >> (type & 7));
      const length = Math.max(...found.map((type) => ((type & 0xff) >> 3) + 1));
      return Buffer.concat([Buffer.from([window, length]), bits.subarray(0, length)]);
    });
  return Buffer.concat([encodeName(next), ...maps]);
}
