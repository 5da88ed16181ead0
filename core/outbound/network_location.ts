// Where a network is, and connections to a port of its loopback interface.
import { connect, type OnReadOpts, type Socket } from 'node:net';
import path from 'node:path';
import { shortPathOf } from '../process/named_socket';

/** `address`: ports of the network's loopback interface are the ports of this address. `gate`: path of a socket. */
export type NetworkLocation = { address: string } | { gate: string };

/** Path of the Unix socket of a server of the platform (core/process/ingress_connections.ts). It has no ports. */
export interface ServerLocation {
  server: string;
}

export const HOST_NETWORK = { address: '127.0.0.1' } satisfies NetworkLocation;

/** One of the two is called, once, and not before `connectInto` has returned. */
interface ConnectionListener {
  /** The port has taken the connection. Who is called listens for its errors from then on. */
  onConnected(socket: Socket): void;
  /** ECONNREFUSED where nothing listens. */
  onFailed(error: NodeJS.ErrnoException): void;
  /** Where the bytes come, instead of `data` of the socket. Through a gate they are `data`. */
  onread?: OnReadOpts;
}

/** A connection that is being made. */
interface Attempt {
  port: number;
  onread: OnReadOpts | undefined;
  /** The socket that is connecting. */
  socket: Socket | null;
  isOver: boolean;
  succeed(socket: Socket): void;
  fail(error: Error): void;
}

/** Responses of a gate: the port has accepted the connection, or not. */
const TAKEN = '+'.charCodeAt(0);
const LONGEST_WAIT_MS = 10_000;

/** Into a network that a gate holds, the gate passes the bytes on (drivers/network/gate.js). */
export function connectInto(
  location: NetworkLocation | ServerLocation,
  port: number,
  listener: ConnectionListener,
  signal?: AbortSignal,
): () => void {
  const onAbort = (): void => attempt.fail(Object.assign(new Error('aborted'), { code: 'ABORT_ERR' }));
  const onLate = (): void => attempt.fail(refusal('ETIMEDOUT', port));
  const late = 'address' in location ? undefined : setTimeout(onLate, LONGEST_WAIT_MS);
  const end = (): boolean => {
    if (attempt.isOver) return false;
    attempt.isOver = true;
    clearTimeout(late);
    signal?.removeEventListener('abort', onAbort);
    return true;
  };
  const abandon = (): void => void (end() && attempt.socket?.destroy());
  const attempt: Attempt = {
    port,
    onread: listener.onread,
    socket: null,
    isOver: false,
    succeed: (socket) => (end() ? listener.onConnected(socket) : socket.destroy()),
    fail: (error) => {
      if (!end()) return;
      attempt.socket?.destroy();
      listener.onFailed(error);
    },
  };
  signal?.addEventListener('abort', onAbort, { once: true });
  if (signal?.aborted) process.nextTick(onAbort);
  if ('address' in location) dial(attempt, location.address);
  else if ('server' in location) waitUntilTaken(attempt, connectAt(location.server));
  else requestRelay(attempt, location.gate);
  return abandon;
}

/** Whether something listens at the port. */
export function isPortTaken(location: NetworkLocation, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    connectInto(location, port, {
      onConnected: (socket) => (socket.destroy(), resolve(true)),
      onFailed: () => resolve(false),
    });
  });
}

function refusal(code: string, port: number): Error {
  return Object.assign(new Error(`connect ${code} port ${port}`), { code });
}

/** Whether a gate answers; an address always does. */
export function isAnswering(location: NetworkLocation): Promise<boolean> {
  if ('address' in location) return Promise.resolve(true);
  return new Promise((resolve) => {
    const socket = connect({ path: location.gate });
    socket.once('connect', () => (socket.destroy(), resolve(true)));
    socket.once('error', () => resolve(false));
  });
}

function dial(attempt: Attempt, host: string): void {
  const { port, onread } = attempt;
  const socket = connect({ host, port, noDelay: true, onread });
  const onConnect = (): void => {
    socket.off('error', attempt.fail);
    attempt.succeed(socket);
  };
  waitFor(attempt, socket);
  socket.once('connect', onConnect);
}

function waitFor(attempt: Attempt, socket: Socket): void {
  attempt.socket = socket;
  // Stays after an end: it may fail once more while it closes.
  socket.on('error', attempt.fail);
}

/** All bytes pass through the gate. */
function requestRelay(attempt: Attempt, gate: string): void {
  const socket = connect({ path: gate });
  socket.write(`${attempt.port}\n`);
  waitUntilTaken(attempt, socket);
}

/** The kernel connects at once, to `connect` of Node. */
function connectAt(file: string): Socket {
  const { short, close } = shortPathOf(path.dirname(file));
  try {
    return connect({ path: path.join(short, path.basename(file)) });
  } finally {
    close();
  }
}

/** Until the first byte, which says whether the connection is taken. */
function waitUntilTaken(attempt: Attempt, socket: Socket): void {
  waitFor(attempt, socket);
  const onClose = (): void => attempt.fail(refusal('ECONNRESET', attempt.port));
  const onReadable = (): void => {
    const answer = socket.read(1) as Buffer | null;
    if (answer === null) return;
    socket.off('readable', onReadable).off('close', onClose).off('error', attempt.fail);
    if (answer[0] !== TAKEN) return attempt.fail(refusal('ECONNREFUSED', attempt.port));
    attempt.succeed(socket);
    socket.resume();
  };
  socket.on('readable', onReadable);
  socket.on('close', onClose);
}
