// Connections to one instance. Written on node:net and not with httpxy or http.request: for small answers these reach
// 0.14 and 0.27 of the requests per second that the application alone has, this 0.4 to 0.5 (npm run bench:ingress); and
// whether a byte was sent before a connection broke, which decides whether a request may go to another instance, is
// only known here.
import { createHash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import type { Target } from '../ingress';
import type { Tunnel } from './tunnel';
import { answerReader, endsWithClose, expectAnswer, readAnswer, type AnswerReader, type AnswerSink } from './answer';

export interface Upstream {
  instanceId: string;
  port: number;
  /** What the cookie of a sticky route holds. */
  mark: string;
  /** Sites that lead here. */
  references: number;
  /** Requests under way, WebSockets included. */
  open: number;
  drained: boolean;
  /** It refused a connection: others first until this time. */
  avoidUntil: number;
  idle: Line[];
  tunnels: Set<Tunnel>;
  waiting: (() => void)[];
}

/** One connection to an instance. */
export interface Line {
  upstream: Upstream;
  socket: Socket;
  reader: AnswerReader;
  user: LineUser | null;
  connected: boolean;
  /** It has served a request before: the instance may have closed it meanwhile. */
  reused: boolean;
  /** A byte has come since the last request went out. */
  heard: boolean;
  idleSince: number;
  idleUntil: number;
}

export interface LineUser extends AnswerSink {
  connected(): void;
  /** All bytes of one read are delivered. */
  settled(): void;
  /** The instance takes bytes again. */
  drained(): void;
  broken(error: Error): void;
}

// An instance closes an idle connection when it likes, Node after 5 s. What is used before that does not meet its end.
const IDLE_MS = 4_000;
/** A request that must not be sent twice takes only connections that were in use just now. */
const FRESH_MS = 1_000;
const IDLE_LINES = 256;

export function openUpstream(target: Target): Upstream {
  const mark = createHash('sha256').update(target.instance_id).digest('base64url').slice(0, 22);
  return {
    instanceId: target.instance_id,
    port: target.port,
    mark,
    references: 0,
    open: 0,
    drained: false,
    avoidUntil: 0,
    idle: [],
    tunnels: new Set(),
    waiting: [],
  };
}

/** A connection that is in use from now on. `repeatable`: a request that may be sent again if it breaks. */
export function takeLine(
  upstream: Upstream,
  user: LineUser,
  now: number,
  kind: 'repeatable' | 'once' | 'new',
  headBytes: number,
): Line {
  for (let line = upstream.idle.at(-1); line !== undefined && kind !== 'new'; line = upstream.idle.at(-1)) {
    if (kind === 'once' && now - line.idleSince > FRESH_MS) break;
    upstream.idle.pop();
    if (now > line.idleUntil || line.socket.destroyed || line.socket.readableEnded) {
      line.socket.destroy();
      continue;
    }
    line.user = user;
    line.reused = true;
    line.heard = false;
    return line;
  }
  return openLine(upstream, user, headBytes);
}

/** Sends a request line and headers. */
export function sendHead(line: Line, method: string, head: string): void {
  expectAnswer(line.reader, method);
  line.socket.write(head, 'latin1');
}

/** Gives a connection back after a complete answer to a complete request. */
export function returnLine(line: Line, now: number): void {
  const { upstream, reader } = line;
  line.user = null;
  if (!reader.keeps || upstream.drained || upstream.references === 0 || upstream.idle.length >= IDLE_LINES)
    return void line.socket.destroy();
  line.idleSince = now;
  line.idleUntil =
    now + Math.min(IDLE_MS, reader.keepSeconds === null ? IDLE_MS : Math.max(0, reader.keepSeconds * 1000 - 1_000));
  upstream.idle.push(line);
}

/** Ends a connection in the middle of whatever it does. */
export function cutLine(line: Line): void {
  line.user = null;
  line.reader.mode = 'over';
  line.socket.destroy();
}

/** Takes the HTTP off a connection: what follows is the caller's. */
export function releaseSocket(line: Line): Socket {
  line.user = null;
  line.socket.removeAllListeners('data').removeAllListeners('drain');
  return line.socket;
}

/** One request less. */
export function leave(upstream: Upstream): void {
  upstream.open -= 1;
  if (upstream.open > 0) return;
  if (upstream.drained || upstream.references === 0) closeIdle(upstream, Infinity);
  for (const tell of upstream.waiting.splice(0)) tell();
}

/** Closes connections that have been idle for too long. */
export function closeIdle(upstream: Upstream, now: number): void {
  if (upstream.idle.length === 0) return;
  const stay = upstream.idle.filter((line) => line.idleUntil > now);
  for (const line of upstream.idle) if (line.idleUntil <= now) line.socket.destroy();
  upstream.idle = stay;
}

function openLine(upstream: Upstream, user: LineUser, headBytes: number): Line {
  const socket = connect({ port: upstream.port, host: '127.0.0.1', noDelay: true });
  const line: Line = {
    upstream,
    socket,
    reader: answerReader(),
    user,
    connected: false,
    reused: false,
    heard: false,
    idleSince: 0,
    idleUntil: 0,
  };
  let failure: Error | null = null;
  socket.on('connect', () => ((line.connected = true), line.user?.connected()));
  socket.on('data', (bytes: Buffer) => onData(line, bytes, headBytes));
  socket.on('drain', () => line.user?.drained());
  socket.on('end', () => onEnd(line));
  socket.on('error', (error) => (failure = error));
  socket.on('close', () => onClose(line, failure));
  return line;
}

function onData(line: Line, bytes: Buffer, headBytes: number): void {
  const { user } = line;
  if (user === null) return void line.socket.destroy(); // nobody has asked
  line.heard = true;
  try {
    readAnswer(line.reader, user, bytes, headBytes);
    user.settled();
  } catch (error) {
    cutLine(line);
    user.broken(error as Error);
  }
}

function onEnd(line: Line): void {
  if (line.user === null || !endsWithClose(line.reader)) return;
  line.reader.mode = 'idle';
  line.user.finished([]);
}

function onClose(line: Line, failure: Error | null): void {
  const { user, upstream } = line;
  line.user = null;
  if (user !== null) return user.broken(failure ?? new Error('the connection was closed'));
  const place = upstream.idle.indexOf(line);
  if (place >= 0) upstream.idle.splice(place, 1);
}
