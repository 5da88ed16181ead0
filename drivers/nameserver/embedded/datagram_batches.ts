// Many datagrams of a socket with one system call each way: recvmmsg(2) and sendmmsg(2), which node:dgram does not
// have, called through koffi. Layouts as Linux has them on processors of 64 bits, little-endian.
import { readdirSync } from 'node:fs';
import { arch, constants, platform } from 'node:os';
import ipaddr from 'ipaddr.js';
import type * as Koffi from 'koffi' with { 'resolution-mode': 'import' };

/** Of one batch. */
const DATAGRAMS_MAX = 64;
/** No query is as long. */
export const QUERY_BYTES_MAX = 8_192;
/** More than what is sent at most over UDP (UDP_BYTES_MAX), with a signature. */
const RESPONSE_BYTES_MAX = 4_096;
/** struct mmsghdr, and in it: msg_name, msg_namelen, msg_iov, msg_iovlen, msg_flags, msg_len. */
const HEADER = { bytes: 64, name: 0, nameBytes: 8, vector: 16, vectors: 24, flags: 48, length: 56 };
/** struct iovec. */
const VECTOR = { bytes: 16, base: 0, length: 8 };
/** struct sockaddr_in and sockaddr_in6. */
const ADDRESS = { bytes: 28, stride: 32, port: 2, v4: 4, v6: 8, familyV4: 2 };
const MSG_TRUNC = 0x20;
const MSG_DONTWAIT = 0x40;
const SOL_SOCKET = 1;
const SO_TYPE = 3;
const SOCK_DGRAM = 2;
const TEXTS_MAX = 10_000;

export interface DatagramBatches {
  /**
   * Answers up to 64 datagrams that wait at a socket, without waiting for any. A response that the kernel has no room
   * for is dropped: the client asks again.
   * @param respond gets memory that the next batch has: nothing of a message may be kept
   * @returns how many came
   */
  answerWaiting(descriptor: number, respond: Respond): number;
  /** @returns the file descriptor of this process's datagram socket with this address, null where none is found */
  descriptorOf(bound: { address: string; port: number }): number | null;
}
type Respond = (message: Buffer, address: string) => Buffer | null;

interface SystemCalls {
  recvmmsg(descriptor: number, headers: bigint, count: number, flags: number, timeout: null): number;
  sendmmsg(descriptor: number, headers: bigint, count: number, flags: number): number;
  getsockname(descriptor: number, address: Buffer, length: Buffer): number;
  getsockopt(descriptor: number, level: number, option: number, value: Buffer, length: Buffer): number;
  errno(): number;
}

let shared: DatagramBatches | null | undefined;

/** @returns the one of this process; null where the host has no such calls, or koffi is not installed */
export function datagramBatches(): DatagramBatches | null {
  // null is an answer too: what is not there now is not looked for again.
  if (shared === undefined) shared = open();
  return shared;
}

function open(): DatagramBatches | null {
  if (platform() !== 'linux' || !['x64', 'arm64'].includes(arch())) return null;
  try {
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- an optional package
    const koffi = require('koffi') as typeof Koffi;
    const calls = systemCalls(koffi);
    const memory = layOut(koffi);
    const textOf = openTexts(memory.bytes);
    return {
      answerWaiting: (descriptor, respond) => answerWaiting({ calls, memory, textOf, descriptor, respond }),
      descriptorOf: (bound) => descriptorOf(calls, bound),
    };
  } catch {
    return null;
  }
}

function systemCalls(koffi: typeof Koffi): SystemCalls {
  const libc = koffi.load(null);
  return {
    recvmmsg: libc.func('int recvmmsg(int, void*, unsigned int, int, void*)'),
    sendmmsg: libc.func('int sendmmsg(int, void*, unsigned int, int)'),
    getsockname: libc.func('int getsockname(int, void*, void*)'),
    getsockopt: libc.func('int getsockopt(int, int, int, void*, void*)'),
    errno: () => koffi.errno(),
  };
}

/** Positions in one piece of memory that the kernel reads and writes too. */
interface Memory {
  bytes: Buffer;
  words: Uint32Array;
  /** Address of the first byte. */
  base: bigint;
  received: number;
  sent: number;
  sentVectors: number;
  addresses: number;
  queries: number;
  responses: number;
}

function layOut(koffi: typeof Koffi): Memory {
  let end = 0;
  const take = (stride: number): number => {
    end += DATAGRAMS_MAX * stride;
    return end - DATAGRAMS_MAX * stride;
  };
  const [received, sent] = [take(HEADER.bytes), take(HEADER.bytes)];
  const [receivedVectors, sentVectors] = [take(VECTOR.bytes), take(VECTOR.bytes)];
  const [addresses, queries, responses] = [take(ADDRESS.stride), take(QUERY_BYTES_MAX), take(RESPONSE_BYTES_MAX)];
  const piece: unknown = koffi.alloc('uint8_t', end);
  const base = koffi.address(piece);
  const buffer = koffi.view(piece, end);
  const view = new DataView(buffer);
  Buffer.from(buffer).fill(0);
  const point = (at: number, to: number): void => view.setBigUint64(at, base + BigInt(to), true);
  for (let index = 0; index < DATAGRAMS_MAX; index += 1) {
    for (const [headers, vectors, data] of [
      [received, receivedVectors, queries + index * QUERY_BYTES_MAX],
      [sent, sentVectors, responses + index * RESPONSE_BYTES_MAX],
    ] as const) {
      point(headers + index * HEADER.bytes + HEADER.name, addresses + index * ADDRESS.stride);
      point(headers + index * HEADER.bytes + HEADER.vector, vectors + index * VECTOR.bytes);
      view.setUint32(headers + index * HEADER.bytes + HEADER.vectors, 1, true);
      point(vectors + index * VECTOR.bytes + VECTOR.base, data);
    }
    view.setUint32(received + index * HEADER.bytes + HEADER.nameBytes, ADDRESS.bytes, true);
    view.setUint32(receivedVectors + index * VECTOR.bytes + VECTOR.length, QUERY_BYTES_MAX, true);
  }
  const words = new Uint32Array(buffer);
  return { bytes: Buffer.from(buffer), words, base, received, sent, sentVectors, addresses, queries, responses };
}

interface Turn {
  calls: SystemCalls;
  memory: Memory;
  textOf: (at: number) => string;
  descriptor: number;
  respond: Respond;
}

function answerWaiting(turn: Turn): number {
  const { calls, memory, textOf, descriptor, respond } = turn;
  const { bytes, words, base, received, addresses, queries } = memory;
  const count = calls.recvmmsg(descriptor, base + BigInt(received), DATAGRAMS_MAX, MSG_DONTWAIT, null);
  let responses = 0;
  for (let index = 0; index < count; index += 1) {
    const header = received + index * HEADER.bytes;
    const address = addresses + index * ADDRESS.stride;
    const query = queries + index * QUERY_BYTES_MAX;
    const isCut = ((words[(header + HEADER.flags) >> 2] as number) & MSG_TRUNC) !== 0;
    // Nothing can be sent to port 0, which a forged datagram may come from.
    const hasPort = bytes[address + ADDRESS.port] !== 0 || bytes[address + ADDRESS.port + 1] !== 0;
    if (!isCut && hasPort) {
      const length = words[(header + HEADER.length) >> 2] as number;
      const response = respond(bytes.subarray(query, query + length), textOf(address));
      if (response && put(turn, responses, header, response)) responses += 1;
    }
    // The kernel has written the length of this address; the next one may be longer.
    words[(header + HEADER.nameBytes) >> 2] = ADDRESS.bytes;
  }
  if (responses > 0) send(turn, responses);
  return Math.max(count, 0);
}

/** Into place `index` of what is sent, to whom the datagram of `header` came from. */
function put({ memory }: Turn, index: number, header: number, response: Buffer): boolean {
  if (response.length > RESPONSE_BYTES_MAX) return false;
  const { bytes, words } = memory;
  const to = (memory.sent + index * HEADER.bytes) >> 2;
  const from = header >> 2;
  words[to] = words[from] as number;
  words[to + 1] = words[from + 1] as number;
  words[to + 2] = words[from + 2] as number;
  words[(memory.sentVectors + index * VECTOR.bytes + VECTOR.length) >> 2] = response.length;
  bytes.set(response, memory.responses + index * RESPONSE_BYTES_MAX);
  return true;
}

function send({ calls, memory, descriptor }: Turn, count: number): void {
  let from = 0;
  while (from < count) {
    const headers = memory.base + BigInt(memory.sent + from * HEADER.bytes);
    const sent = calls.sendmmsg(descriptor, headers, count - from, MSG_DONTWAIT);
    if (sent <= 0 && calls.errno() === constants.errno.EAGAIN) return;
    // The first of them cannot be sent, for instance since a firewall rejects it.
    from += Math.max(sent, 1);
  }
}

/** Addresses as text, as node:dgram has them. @returns of the one at a position of the memory */
function openTexts(bytes: Buffer): (at: number) => string {
  const known = new Map<string, string>();
  return (at) => {
    const isV4 = bytes.readUInt16LE(at) === ADDRESS.familyV4;
    const start = at + (isV4 ? ADDRESS.v4 : ADDRESS.v6);
    const key = bytes.toString('latin1', start, start + (isV4 ? 4 : 16));
    const found = known.get(key);
    if (found !== undefined) return found;
    const text = ipaddr.fromByteArray([...bytes.subarray(start, start + key.length)]).toString();
    if (known.size >= TEXTS_MAX) known.clear();
    known.set(key, text);
    return text;
  };
}

function descriptorOf(calls: SystemCalls, bound: { address: string; port: number }): number | null {
  const [address, length, type] = [Buffer.alloc(ADDRESS.bytes), Buffer.alloc(4), Buffer.alloc(4)];
  const textOf = openTexts(address);
  const isBound = (descriptor: number): boolean => {
    length.writeUInt32LE(4);
    if (calls.getsockopt(descriptor, SOL_SOCKET, SO_TYPE, type, length) !== 0) return false;
    if (type.readUInt32LE() !== SOCK_DGRAM) return false;
    length.writeUInt32LE(ADDRESS.bytes);
    if (calls.getsockname(descriptor, address, length) !== 0) return false;
    return address.readUInt16BE(ADDRESS.port) === bound.port && textOf(0) === bound.address;
  };
  return readdirSync('/proc/self/fd').map(Number).find(isBound) ?? null;
}
