// Transaction signatures between servers (TSIG, RFC 8945) with HMAC-SHA256.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { keyOfLabels, encodeName, labelsOfName, readQuestionName } from './names';

export interface TsigKey {
  /** In lower case, without a trailing dot. */
  name: string;
  secret: Buffer;
}

/** TSIG state of a query; `error` is 0 for a valid signature. */
export interface TsigState {
  key: TsigKey;
  /** Key name as written by the client. */
  name: Buffer;
  error: number;
  /** The previous MAC of the exchange. */
  mac: Buffer;
  /** The MAC of the first response covers more than those of later ones (RFC 8945 §5.3.1). */
  isFirst: boolean;
  originalId: number;
  /** Time signed in the query, in seconds. */
  time: number;
}

const TSIG_ERROR = { BADSIG: 16, BADKEY: 17, BADTIME: 18 };
/** Bytes of a signature at the end of a message. */
export const TSIG_BYTES = 160;

const TYPE_TSIG = 250;
const CLASS_ANY = 255;
const FUDGE_S = 300;
const HEADER_BYTES = 12;
const ALGORITHM = 'hmac-sha256';
const ALGORITHM_NAME = encodeName([ALGORITHM]);

/** @returns null for a message without TSIG, `malformed` for an invalid one */
export function readTsig(message: Buffer, key: TsigKey | null): TsigState | null | 'malformed' {
  const start = lastRecord(message);
  if (start === null) return 'malformed';
  const name = start < 0 ? null : readQuestionName(message, start);
  if (!name || message.readUInt16BE(name.end) !== TYPE_TSIG) return null;
  try {
    return check(message, start, name.end, key, keyOfLabels(name.labels));
  } catch {
    return 'malformed';
  }
}

function check(
  message: Buffer,
  start: number,
  end: number,
  key: TsigKey | null,
  keyName: string,
): TsigState | 'malformed' {
  const algorithm = readQuestionName(message, end + 10);
  if (!algorithm || message.readUInt16BE(end + 2) !== CLASS_ANY) return 'malformed';
  const at = algorithm.end;
  const time = message.readUIntBE(at, 6);
  const fudge = message.readUInt16BE(at + 6);
  const size = message.readUInt16BE(at + 8);
  const mac = message.subarray(at + 10, at + 10 + size);
  const originalId = message.readUInt16BE(at + 10 + size);
  const name = message.subarray(start, end);
  const none: TsigKey = { name: '', secret: Buffer.alloc(0) };
  const state: TsigState = { ...{ key: key ?? none, name, error: 0, mac, isFirst: true, originalId, time } };
  if (!key || keyName !== key.name || keyOfLabels(algorithm.labels) !== ALGORITHM)
    return { ...state, error: TSIG_ERROR.BADKEY };
  const unsigned = Buffer.from(message.subarray(0, start));
  unsigned.writeUInt16BE(originalId, 0);
  unsigned.writeUInt16BE(unsigned.readUInt16BE(10) - 1, 10);
  const expected = hmac(key, [unsigned, variables(name, time, fudge, 0, Buffer.alloc(0))]);
  if (mac.length !== expected.length || !timingSafeEqual(mac, expected)) return { ...state, error: TSIG_ERROR.BADSIG };
  if (Math.abs(Math.floor(Date.now() / 1000) - time) > fudge) return { ...state, error: TSIG_ERROR.BADTIME };
  return state;
}

/** The message with a signature; updates the state for the next message of the response. */
export function signMessage(message: Buffer, state: TsigState): Buffer {
  const isUnsigned = state.error === TSIG_ERROR.BADKEY || state.error === TSIG_ERROR.BADSIG;
  const now = Math.floor(Date.now() / 1000);
  // A client with a wrong clock gets its own time back, and the server time as other data (RFC 8945 §5.2.3).
  const time = state.error === TSIG_ERROR.BADTIME ? state.time : now;
  const other = state.error === TSIG_ERROR.BADTIME ? time48(now) : Buffer.alloc(0);
  const before = Buffer.concat([uint16(state.mac.length), state.mac]);
  const timers = Buffer.concat([time48(time), uint16(FUDGE_S)]);
  const covered = state.isFirst ? variables(state.name, time, FUDGE_S, state.error, other) : timers;
  const mac = isUnsigned ? Buffer.alloc(0) : hmac(state.key, [before, message, covered]);
  const parts = [ALGORITHM_NAME, timers, uint16(mac.length), mac, uint16(state.originalId), uint16(state.error)];
  const data = Buffer.concat([...parts, uint16(other.length), other]);
  const head = Buffer.concat([state.name, uint16(TYPE_TSIG), uint16(CLASS_ANY), Buffer.alloc(4), uint16(data.length)]);
  state.mac = mac;
  state.isFirst = false;
  const signed = Buffer.concat([message, head, data]);
  signed.writeUInt16BE(message.readUInt16BE(10) + 1, 10);
  return signed;
}

/** Signs an outgoing request, such as NOTIFY. */
export function signRequest(message: Buffer, key: TsigKey): Buffer {
  const name = encodeName(labelsOfName(key.name));
  const time = Math.floor(Date.now() / 1000);
  const mac = hmac(key, [message, variables(name, time, FUDGE_S, 0, Buffer.alloc(0))]);
  const parts = [ALGORITHM_NAME, time48(time), uint16(FUDGE_S), uint16(mac.length), mac, message.subarray(0, 2)];
  const data = Buffer.concat([...parts, Buffer.alloc(4)]);
  const head = Buffer.concat([name, uint16(TYPE_TSIG), uint16(CLASS_ANY), Buffer.alloc(4), uint16(data.length)]);
  const signed = Buffer.concat([message, head, data]);
  signed.writeUInt16BE(message.readUInt16BE(10) + 1, 10);
  return signed;
}

function hmac({ secret }: TsigKey, parts: Buffer[]): Buffer {
  const mac = createHmac('sha256', secret);
  for (const part of parts) mac.update(part);
  return mac.digest();
}

/** Name, class, TTL, algorithm, time, fudge, error and other data (RFC 8945 §4.3.3), names in lower case. */
function variables(name: Buffer, time: number, fudge: number, error: number, other: Buffer): Buffer {
  const lower = Buffer.from(name.toString('latin1').toLowerCase(), 'latin1');
  const fixed = [uint16(CLASS_ANY), Buffer.alloc(4), ALGORITHM_NAME, time48(time), uint16(fudge), uint16(error)];
  return Buffer.concat([lower, ...fixed, uint16(other.length), other]);
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value, 0);
  return bytes;
}

function time48(seconds: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUIntBE(seconds, 0, 6);
  return bytes;
}

/** Position of the last record of a message; -1 without additional records, null for an invalid message. */
function lastRecord(message: Buffer): number | null {
  if (message.readUInt16BE(10) === 0) return -1;
  let at: number | null = HEADER_BYTES;
  let last = -1;
  for (let left = message.readUInt16BE(4); left > 0 && at !== null; left -= 1) at = behindName(message, at, 4);
  const records = message.readUInt16BE(6) + message.readUInt16BE(8) + message.readUInt16BE(10);
  for (let left = records; left > 0; left -= 1) {
    if (at === null) return null;
    last = at;
    const fixed = behindName(message, at, 10);
    if (fixed === null) return null;
    at = fixed + message.readUInt16BE(fixed - 2);
    if (at > message.length) return null;
  }
  return last;
}

/** Position after a name and `more` bytes. */
function behindName(message: Buffer, start: number, more: number): number | null {
  let at = start;
  for (;;) {
    const length = message[at];
    if (length === undefined) return null;
    if (length >= 0xc0) {
      at += 2;
      break;
    }
    at += length + 1;
    if (length === 0) break;
  }
  return at + more <= message.length ? at + more : null;
}
