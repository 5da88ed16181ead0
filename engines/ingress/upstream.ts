// Connections to one instance, on node:net instead of httpxy or http.request. For small responses those reach 0.14 and
// 0.27 of the requests per second of the application alone; this one reaches 0.4 to 0.5 (npm run bench:ingress). It
// also knows whether a byte was sent before a connection broke, which decides whether another instance may get the
// request.
import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Target } from './ingress';
import {
  HOST_NETWORK,
  type NetworkLocation,
  type ServerLocation,
  connectInto,
} from '../../core/outbound/network_location';
import { CONFIRMED_MS, isTrusted, noteAnswered } from './confirmation';
import { deferWrite } from './http/deferred_writes';
import type { Tunnel } from './http/tunnel';
import {
  responseParser,
  isDelimitedByClose,
  expectResponse,
  parseResponse,
  type ResponseParser,
  type ResponseSink,
} from './http/response_parser';

export interface Upstream {
  instanceId: string;
  port: number;
  location: NetworkLocation | ServerLocation;
  /** Value of the sticky session cookie. */
  stickyToken: string;
  /** Number of sites with this instance. */
  references: number;
  /** Open requests, including WebSockets. */
  open: number;
  drained: boolean;
  /** The instance refused a connection: other instances are preferred until this time. */
  avoidUntil: number;
  /** Nobody answers there since this time, see reachability.ts; null: it can be reached, as far as is known. */
  unreachableSince: number | null;
  /** A connection is being tried, without a request. */
  isProbed: boolean;
  probedAt: number;
  readonly isPod: boolean;
  /** Until when its address is trusted, see confirmation.ts. */
  trustedUntil: number;
  confirmedAt: number;
  /** When a connection was not accepted last. */
  doubtedAt: number;
  idle: UpstreamConnection[];
  tunnels: Set<Tunnel>;
  idleWaiters: (() => void)[];
}

/** One connection to an instance. */
export interface UpstreamConnection {
  upstream: Upstream;
  /** null until the instance has accepted the connection. */
  socket: Socket | null;
  /** Cancels a connection attempt. */
  abandon: () => void;
  /** Sent once the connection is established. */
  unsent: string;
  parser: ResponseParser;
  user: ConnectionUser | null;
  /** It has served a request before: the instance may have closed it in the meantime. */
  reused: boolean;
  /** Received bytes belong to a tunnel, and are emitted as `data` of the socket. */
  isDetached: boolean;
  /** A byte was received since the last request. */
  receivedBytes: boolean;
  idleSince: number;
  idleUntil: number;
}

export interface ConnectionUser extends ResponseSink {
  onConnected(): void;
  /** All bytes of one read are delivered. */
  onReadDelivered(): void;
  /** The write buffer of the instance has drained. */
  onDrained(): void;
  onBroken(error: Error): void;
}

// Instances close idle connections after their own timeout, Node after 5 s. Reusing a connection earlier avoids that
// race.
const IDLE_MS = 4_000;
/** Requests that must not be sent twice reuse only connections that were in use this recently. */
const FRESH_MS = 1_000;
const IDLE_CONNECTIONS_MAX = 256;

/**
 * Shared read buffer of all instances: node:net would otherwise allocate 64 KB per read, even for a few bytes. `onData`
 * must copy what it keeps.
 */
const readBuffer = Buffer.allocUnsafeSlow(65_536);

/** @param confirmedAt when the address was confirmed, on the monotonic clock */
export function openUpstream(target: Target, confirmedAt = performance.now()): Upstream {
  const stickyToken = createHash('sha256').update(target.instance_id).digest('base64url').slice(0, 22);
  const location = target.location ?? HOST_NETWORK;
  const isPod = target.pod_uid !== undefined;
  return {
    instanceId: target.instance_id,
    port: target.port,
    location,
    stickyToken,
    references: 0,
    open: 0,
    drained: false,
    avoidUntil: 0,
    unreachableSince: null,
    isProbed: false,
    probedAt: -Infinity,
    isPod,
    trustedUntil: isPod ? confirmedAt + CONFIRMED_MS : Infinity,
    confirmedAt,
    doubtedAt: -Infinity,
    idle: [],
    tunnels: new Set(),
    idleWaiters: [],
  };
}

/** Acquires a connection. `repeatable`: the request may be retried if the connection breaks. */
export function takeConnection(
  upstream: Upstream,
  user: ConnectionUser,
  now: number,
  kind: 'repeatable' | 'once' | 'new',
  headBytes: number,
): UpstreamConnection {
  for (
    let connection = upstream.idle.at(-1);
    connection !== undefined && kind !== 'new';
    connection = upstream.idle.at(-1)
  ) {
    if (kind === 'once' && now - connection.idleSince > FRESH_MS) break;
    upstream.idle.pop();
    if (now > connection.idleUntil || !isUsable(connection)) {
      connection.socket?.destroy();
      continue;
    }
    connection.user = user;
    connection.reused = true;
    connection.receivedBytes = false;
    return connection;
  }
  return openConnection(upstream, user, headBytes);
}

function isUsable({ socket }: UpstreamConnection): boolean {
  return socket !== null && !socket.destroyed && !socket.readableEnded;
}

/** Sends a request line, headers and an optional body in latin1; `deferred`: they are the whole request. */
export function sendHead(connection: UpstreamConnection, method: string, head: string, deferred: boolean): void {
  expectResponse(connection.parser, method);
  if (connection.socket === null) connection.unsent = head;
  else if (deferred) deferWrite(connection.socket, head);
  else connection.socket.write(head, 'latin1');
}

/** Releases a connection after a complete request and response. */
export function returnConnection(connection: UpstreamConnection, now: number): void {
  const { upstream, parser: reader } = connection;
  connection.user = null;
  if (
    !reader.keepAlive ||
    upstream.drained ||
    upstream.references === 0 ||
    upstream.idle.length >= IDLE_CONNECTIONS_MAX
  )
    return void connection.socket?.destroy();
  connection.idleSince = now;
  connection.idleUntil =
    now +
    Math.min(IDLE_MS, reader.keepAliveSeconds === null ? IDLE_MS : Math.max(0, reader.keepAliveSeconds * 1000 - 1_000));
  upstream.idle.push(connection);
}

/** Aborts a connection in any state. */
export function destroyConnection(connection: UpstreamConnection): void {
  connection.user = null;
  connection.parser.mode = 'over';
  connection.abandon();
  connection.socket?.destroy();
}

/** Detaches the socket from HTTP: further bytes belong to the caller. */
export function detachSocket(connection: UpstreamConnection, socket: Socket): Socket {
  connection.user = null;
  connection.isDetached = true;
  return socket.removeAllListeners('data').removeAllListeners('drain');
}

/** Decrements the open requests. */
export function finishUpstreamRequest(upstream: Upstream): void {
  upstream.open -= 1;
  if (upstream.open > 0) return;
  if (upstream.drained || upstream.references === 0) closeIdle(upstream, Infinity);
  for (const wake of upstream.idleWaiters.splice(0)) wake();
}

/** Closes connections that have been idle for too long. */
export function closeIdle(upstream: Upstream, now: number): void {
  if (upstream.idle.length === 0) return;
  const stay = upstream.idle.filter((connection) => connection.idleUntil > now);
  for (const connection of upstream.idle) if (connection.idleUntil <= now) connection.socket?.destroy();
  upstream.idle = stay;
}

function openConnection(upstream: Upstream, user: ConnectionUser, headBytes: number): UpstreamConnection {
  const connection: UpstreamConnection = {
    upstream,
    socket: null,
    abandon: () => undefined,
    unsent: '',
    parser: responseParser(),
    user,
    reused: false,
    isDetached: false,
    receivedBytes: false,
    idleSince: 0,
    idleUntil: 0,
  };
  connection.abandon = connectInto(upstream.location, upstream.port, {
    onConnected: (socket) => onConnected(connection, socket, headBytes),
    onFailed: (error) => onClose(connection, error),
    onread: {
      buffer: readBuffer,
      callback: (length) => {
        onData(connection, readBuffer.subarray(0, length), headBytes);
        return true;
      },
    },
  });
  return connection;
}

function onConnected(connection: UpstreamConnection, socket: Socket, headBytes: number): void {
  const { upstream } = connection;
  const now = performance.now();
  // The kernel asks for seconds: by now the address may be another's. Nothing was sent.
  if (!isTrusted(upstream, now)) {
    socket.on('error', () => undefined).destroy();
    return onClose(connection, new Error('the address may no longer belong to the instance'));
  }
  noteAnswered(upstream, now);
  let failure: Error | null = null;
  connection.socket = socket;
  // Through the gate of a network, `onread` is not supported.
  socket.on('data', (bytes: Buffer) => onData(connection, bytes, headBytes));
  socket.on('drain', () => connection.user?.onDrained());
  socket.on('end', () => onEnd(connection));
  socket.on('error', (error) => (failure = error));
  socket.on('close', () => onClose(connection, failure));
  // Send the head and the start of a body in one packet.
  socket.cork();
  socket.write(connection.unsent, 'latin1');
  connection.unsent = '';
  connection.user?.onConnected();
  process.nextTick(() => process.nextTick(() => socket.uncork()));
}

function onData(connection: UpstreamConnection, bytes: Buffer, headBytes: number): void {
  const { user } = connection;
  // A tunnel: a slow visitor may delay the processing of these bytes.
  if (connection.isDetached) return void connection.socket?.emit('data', Buffer.from(bytes));
  if (user === null) return void connection.socket?.destroy(); // unsolicited
  connection.receivedBytes = true;
  try {
    parseResponse(connection.parser, user, bytes, headBytes);
    user.onReadDelivered();
  } catch (error) {
    destroyConnection(connection);
    user.onBroken(error as Error);
  }
}

function onEnd(connection: UpstreamConnection): void {
  if (connection.user === null || !isDelimitedByClose(connection.parser)) return;
  connection.parser.mode = 'idle';
  connection.user.onComplete([]);
}

function onClose(connection: UpstreamConnection, failure: Error | null): void {
  const { user, upstream } = connection;
  connection.user = null;
  if (user !== null) return user.onBroken(failure ?? new Error('the connection was closed'));
  const place = upstream.idle.indexOf(connection);
  if (place >= 0) upstream.idle.splice(place, 1);
}
