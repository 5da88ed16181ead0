// Packet cache: responses by the bytes of their queries. A repeated query is answered before the codec parses it. Only
// common queries have a key here: one question, and at most an OPT record that is empty or has only a cookie. All other
// queries are for the codec (message.ts).
import type { ZoneCounters } from './nameserver';
import type { ServedZone } from './zone_table';

const HEADER_BYTES = 12;
const LABEL_BYTES_MAX = 63;
const NAME_BYTES_MAX = 255;
/** Root name, type OPT, size, flags, length (RFC 6891 §6.1.2). */
const OPT_BYTES = 11;
const TYPE_OPT = 41;
const COOKIE_OPTION = 10;
const OPTION_HEAD_BYTES = 4;
const PLAIN_UDP_BYTES = 512;
/** Maximum size of responses over UDP (RFC 9715 §3.1). */
const UDP_BYTES_MAX = 1232;
const TCP_BYTES_MAX = 65_535;

/** Limit of both generations together. */
const BYTES_MAX = 64 << 20;
/** Overhead per entry. */
const ENTRY_BYTES = 300;
/** Signatures are renewed days before their end; no entry may outlive that. */
const KEPT_MS = 10 * 60_000;

/** A parsed common query. One object is reused for all queries, so that parsing allocates nothing. */
export interface PacketKey {
  /** The question in lower case, and everything else that affects the response. */
  bytes: Uint8Array;
  length: number;
  hash: number;
  /** Position after the question. */
  questionEnd: number;
  /** Whether the question has upper-case letters, which must be echoed. */
  hasUpperCase: boolean;
  /** Position of the cookie; both are 0 where there is none. */
  cookieStart: number;
  cookieEnd: number;
  /** Maximum response size of the client. */
  bytesMax: number;
}

/** A response without id and cookie, with the question in lower case. */
export interface Prepared {
  key: Uint8Array;
  served: ServedZone;
  /** Version of the zone at the time of the response. */
  version: number;
  madeAt: number;
  response: Buffer;
  type: number;
  rcode: number;
  /** Counter of the zone and type in this epoch. */
  counted: ZoneCounters | null;
  epoch: number;
}

export interface PacketCache {
  find(key: PacketKey): Prepared | null;
  keep(prepared: Prepared, key: PacketKey): void;
}

export function newPacketKey(): PacketKey {
  const bytes = new Uint8Array(NAME_BYTES_MAX + 16);
  const numbers = { length: 0, hash: 0, questionEnd: 0, cookieStart: 0, cookieEnd: 0, bytesMax: 0 };
  return { bytes, hasUpperCase: false, ...numbers };
}

/** @returns false where the message is not a common query; the key is invalid then */
export function readPacketKey(message: Buffer, isTcp: boolean, key: PacketKey): boolean {
  // A standard query with one question, no answers, no authority section, and at most one additional record.
  if (message.length < HEADER_BYTES + 5 || (at(message, 2) & 0xf8) !== 0) return false;
  if (at(message, 4) !== 0 || at(message, 5) !== 1 || at(message, 11) > 1) return false;
  for (let position = 6; position < 11; position += 1) if (message[position] !== 0) return false;
  const end = readQuestion(message, key);
  if (end < 0) return false;
  key.questionEnd = end;
  key.cookieStart = 0;
  key.cookieEnd = 0;
  const { bytes } = key;
  // RD and CD are echoed.
  bytes[key.length] = (at(message, 2) & 0x01) | (at(message, 3) & 0x10) | (isTcp ? 0x80 : 0);
  key.length += 1;
  if (at(message, 11) === 0) {
    if (end !== message.length) return false;
    key.bytesMax = isTcp ? TCP_BYTES_MAX : PLAIN_UDP_BYTES;
  } else {
    if (!readOpt(message, end, key)) return false;
    if (isTcp) key.bytesMax = TCP_BYTES_MAX;
  }
  key.hash = hashOf(bytes, key.length);
  return true;
}

function at(message: Buffer, position: number): number {
  return message[position] as number;
}

/** @returns the position after the question, or -1 */
function readQuestion(message: Buffer, key: PacketKey): number {
  const { bytes } = key;
  let position = HEADER_BYTES;
  let length = 0;
  let hasUpperCase = false;
  for (let label = at(message, position); label !== 0; label = at(message, position)) {
    const end = position + 1 + label;
    if (label > LABEL_BYTES_MAX || end >= message.length || length + label + 2 > NAME_BYTES_MAX) return -1;
    bytes[length] = label;
    length += 1;
    for (position += 1; position < end; position += 1) {
      let letter = at(message, position);
      if (letter >= 0x41 && letter <= 0x5a) {
        letter |= 0x20;
        hasUpperCase = true;
      }
      bytes[length] = letter;
      length += 1;
    }
  }
  const end = position + 5;
  if (end > message.length) return -1;
  for (; position < end; position += 1, length += 1) bytes[length] = at(message, position);
  key.length = length;
  key.hasUpperCase = hasUpperCase;
  return end;
}

/** Reads the OPT record in its most common form. */
function readOpt(message: Buffer, start: number, key: PacketKey): boolean {
  if (start + OPT_BYTES > message.length) return false;
  if (at(message, start) !== 0 || at(message, start + 1) !== 0 || at(message, start + 2) !== TYPE_OPT) return false;
  const dataBytes = (at(message, start + 9) << 8) | at(message, start + 10);
  if (start + OPT_BYTES + dataBytes !== message.length) return false;
  if (dataBytes > 0 && !readCookie(message, start + OPT_BYTES, dataBytes, key)) return false;
  const offered = (at(message, start + 3) << 8) | at(message, start + 4);
  key.bytesMax = Math.min(Math.max(offered, PLAIN_UDP_BYTES), UDP_BYTES_MAX);
  const { bytes } = key;
  let { length } = key;
  bytes[length++] = key.bytesMax >> 8;
  bytes[length++] = key.bytesMax & 0xff;
  for (let position = start + 5; position < start + 9; position += 1) bytes[length++] = at(message, position);
  key.length = length;
  return true;
}

function readCookie(message: Buffer, start: number, dataBytes: number, key: PacketKey): boolean {
  if (dataBytes < OPTION_HEAD_BYTES || at(message, start) !== 0 || at(message, start + 1) !== COOKIE_OPTION)
    return false;
  const length = (at(message, start + 2) << 8) | at(message, start + 3);
  // Lengths of RFC 7873 §4; any other length is a client error.
  if (length !== dataBytes - OPTION_HEAD_BYTES || (length !== 8 && (length < 16 || length > 40))) return false;
  key.cookieStart = start + OPTION_HEAD_BYTES;
  key.cookieEnd = key.cookieStart + length;
  return true;
}

/** Stores the question in lower case, so that responses to queries without capitals are plain copies. */
export function prepare(made: Made): Prepared {
  const { bytes, length, hasUpperCase, questionEnd } = made.key;
  // Own memory: a slice of the Node.js buffer pool would keep its whole 8 kB alive.
  const response = Buffer.allocUnsafeSlow(made.response.length);
  response.set(made.response);
  const nameBytes = questionEnd - HEADER_BYTES;
  if (hasUpperCase) response.set(bytes.subarray(0, nameBytes), HEADER_BYTES);
  return { ...made, key: bytes.slice(0, length), response, madeAt: Date.now(), counted: null, epoch: 0 };
}

type Made = Pick<Prepared, 'served' | 'version' | 'response' | 'type' | 'rcode'> & { key: PacketKey };

/** 30-bit FNV-1a: small enough for V8 to store without a heap object. */
function hashOf(bytes: Uint8Array, length: number): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < length; index += 1) hash = Math.imul(hash ^ (bytes[index] as number), 0x01000193);
  return (hash ^ (hash >>> 15)) & 0x3fffffff;
}

/**
 * Two generations: when the young one is full, the old one is dropped, except for entries used since. Names that are
 * queried only once therefore do not evict others.
 */
export function openPacketCache(bytesMax = BYTES_MAX): PacketCache {
  let young = new Map<number, Prepared>();
  let old = new Map<number, Prepared>();
  let bytes = 0;
  const add = (hash: number, prepared: Prepared): void => {
    bytes += prepared.response.length + prepared.key.length + ENTRY_BYTES;
    if (bytes > bytesMax / 2) {
      old = young;
      young = new Map();
      bytes = 0;
    }
    young.set(hash, prepared);
  };
  return {
    find(key) {
      const { hash } = key;
      let found = young.get(hash);
      if (!found) {
        found = old.get(hash);
        if (!found) return null;
        old.delete(hash);
        if (isFresh(found)) add(hash, found);
      }
      return isFresh(found) && isSameKey(found.key, key) ? found : null;
    },
    keep: (prepared, { hash }) => add(hash, prepared),
  };
}

function isFresh({ served, version, madeAt }: Prepared): boolean {
  return served.version === version && Math.abs(Date.now() - madeAt) < KEPT_MS;
}

/** Compares the keys, since different queries may share a hash. */
function isSameKey(kept: Uint8Array, { bytes, length }: PacketKey): boolean {
  if (kept.length !== length) return false;
  for (let index = 0; index < length; index += 1) if (kept[index] !== bytes[index]) return false;
  return true;
}

/** @returns null where the cookie does not fit into the response */
export function responseFrom(
  { response: kept }: Prepared,
  message: Buffer,
  key: PacketKey,
  cookie: Buffer | null,
): Buffer | null {
  const more = cookie ? OPTION_HEAD_BYTES + cookie.length : 0;
  const length = kept.length + more;
  if (more && length > key.bytesMax) return null;
  const response = Buffer.allocUnsafe(length);
  response.set(kept);
  response[0] = at(message, 0);
  response[1] = at(message, 1);
  if (key.hasUpperCase) message.copy(response, HEADER_BYTES, HEADER_BYTES, key.questionEnd);
  if (cookie) {
    // The OPT record is the last one, and ends with the length of its options.
    response.writeUInt16BE(more, kept.length - 2);
    response.writeUInt16BE(COOKIE_OPTION, kept.length);
    response.writeUInt16BE(cookie.length, kept.length + 2);
    cookie.copy(response, kept.length + OPTION_HEAD_BYTES);
  }
  return response;
}
