// Connected sockets that another process hands over: connect(2) and recvmsg(2) of Unix sockets, which node:net does not
// offer, called through koffi. Layouts as Linux has them on processors of 64 bits, little-endian. No call waits.
import { existsSync } from 'node:fs';
import { arch, constants, platform } from 'node:os';
import path from 'node:path';
import type * as Koffi from 'koffi' with { 'resolution-mode': 'import' };

export interface Descriptors {
  /**
   * @returns the descriptor of a connection to the socket at `path`; `busy` where it takes no further one now; null
   * where nothing takes connections there
   */
  connect(path: string): number | 'busy' | null;
  /** @returns the descriptor that came with the next byte; `none` where it came without one; null: nothing came yet */
  receive(connection: number): number | 'none' | null;
}

interface SystemCalls {
  socket(family: number, type: number, protocol: number): number;
  connect(descriptor: number, address: Buffer, bytes: number): number;
  close(descriptor: number): number;
  recvmsg(descriptor: number, message: bigint, flags: number): number;
  errno(): number;
}

const AF_UNIX = 1;
/** SOCK_STREAM, SOCK_NONBLOCK and SOCK_CLOEXEC. */
const STREAM = 1 | 0o4000 | 0o2000000;
const MSG_DONTWAIT = 0x40;
const MSG_CMSG_CLOEXEC = 0x40000000;
const SOL_SOCKET = 1;
const SCM_RIGHTS = 1;
/** struct msghdr. */
const MESSAGE = { vector: 16, vectors: 24, control: 32, controlBytes: 40 };
/** struct iovec, behind the message. */
const VECTOR = { at: 56, length: 64 };
/** struct cmsghdr with one descriptor, behind the vector. Of a message with more, the kernel closes the others. */
const CONTROL = { at: 72, bytes: 20, level: 8, type: 12, descriptor: 16 };
const DATA_AT = 96;

let shared: Descriptors | null | undefined;

/** @returns those of this process; null where the host has no such calls, or koffi is not installed */
export function descriptors(): Descriptors | null {
  if (shared === undefined) shared = open();
  return shared;
}

/** Where a program of its own finds koffi; null where it is not installed, or of no use. */
export function koffiFile(): string | null {
  if (platform() !== 'linux' || !['x64', 'arm64'].includes(arch())) return null;
  try {
    return require.resolve('koffi');
  } catch {
    return null;
  }
}

/** What a program in a sandbox must be able to read to use it. */
export function koffiDirectories(): string[] {
  const file = koffiFile();
  if (file === null) return [];
  const packages = file.slice(0, file.lastIndexOf('/node_modules/') + '/node_modules/'.length);
  // Its compiled parts are packages of their own, one for each kind of processor.
  return ['koffi', '@koromix'].map((name) => path.join(packages, name)).filter((directory) => existsSync(directory));
}

function open(): Descriptors | null {
  const file = koffiFile();
  if (file === null) return null;
  try {
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- an optional package
    const koffi = require(file) as typeof Koffi;
    const libc = koffi.load(null);
    const calls: SystemCalls = {
      socket: libc.func('int socket(int, int, int)'),
      connect: libc.func('int connect(int, void*, unsigned int)'),
      close: libc.func('int close(int)'),
      recvmsg: libc.func('int64_t recvmsg(int, void*, int)'),
      errno: () => koffi.errno(),
    };
    const piece: unknown = koffi.alloc('uint8_t', DATA_AT + 8);
    const [base, view] = [koffi.address(piece), new DataView(koffi.view(piece, DATA_AT + 8))];
    return { connect: (file) => connect(calls, file), receive: (connection) => receive(calls, base, view, connection) };
  } catch {
    return null;
  }
}

function connect(calls: SystemCalls, file: string): number | 'busy' | null {
  const address = Buffer.concat([Buffer.from([AF_UNIX, 0]), Buffer.from(file), Buffer.from([0])]);
  const descriptor = calls.socket(AF_UNIX, STREAM, 0);
  if (descriptor < 0) return null;
  if (calls.connect(descriptor, address, address.length) === 0) return descriptor;
  const isBusy = calls.errno() === constants.errno.EAGAIN;
  calls.close(descriptor);
  return isBusy ? 'busy' : null;
}

function receive(calls: SystemCalls, base: bigint, view: DataView, connection: number): number | 'none' | null {
  for (let at = 0; at < DATA_AT; at += 8) view.setBigUint64(at, 0n, true);
  view.setBigUint64(MESSAGE.vector, base + BigInt(VECTOR.at), true);
  view.setBigUint64(MESSAGE.vectors, 1n, true);
  view.setBigUint64(MESSAGE.control, base + BigInt(CONTROL.at), true);
  view.setBigUint64(MESSAGE.controlBytes, BigInt(CONTROL.bytes), true);
  view.setBigUint64(VECTOR.at, base + BigInt(DATA_AT), true);
  view.setBigUint64(VECTOR.length, 1n, true);
  const bytes = calls.recvmsg(connection, base, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (bytes < 0) return calls.errno() === constants.errno.EAGAIN ? null : 'none';
  const hasOne =
    view.getBigUint64(MESSAGE.controlBytes, true) >= BigInt(CONTROL.bytes) &&
    view.getInt32(CONTROL.at + CONTROL.level, true) === SOL_SOCKET &&
    view.getInt32(CONTROL.at + CONTROL.type, true) === SCM_RIGHTS;
  return hasOne ? view.getInt32(CONTROL.at + CONTROL.descriptor, true) : 'none';
}
