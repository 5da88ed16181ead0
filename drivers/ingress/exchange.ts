// One request on its way to an instance and its answer on the way back. Nothing is kept: bytes go on as they come, and
// who is slower sets the pace.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AnswerHead } from './answer';
import { beginBody, bodyOf, type BodyState } from './body';
import { chooseUpstream, stickyCookie } from './choice';
import { forwardedHead, type Caller } from './forward';
import type { Gate } from './gate';
import { noTargetPage, pageOf, type Reason } from './pages';
import { closeExchange, depart, endResponse, makeLast, say } from './response';
import type { Site } from './table';
import type { TrafficOwner } from './traffic';
import { openTunnel } from './tunnel';
import { cutLine, returnLine, sendHead, takeLine, type Line, type LineUser, type Upstream } from './upstream';

export interface Arrival {
  request: IncomingMessage;
  response: ServerResponse;
  listener: 'http' | 'https';
  /** The client waits for 100 before it sends the body. */
  expects: boolean;
  /** The bare connection of a request that asked for another protocol. */
  upgrade: { socket: Duplex; head: Buffer; protocol: string | null } | null;
}

export interface Exchange extends LineUser, Arrival {
  gate: Gate;
  site: Site;
  caller: Caller;
  /** Lower case, without port. */
  host: string;
  authority: string;
  /** Path and query. */
  target: string;
  at: Date;
  startedMs: number;
  /** When a byte last went one way or the other. */
  touchedMs: number;
  owner: TrafficOwner;
  upstream: Upstream | null;
  line: Line | null;
  tried: Upstream[];
  attempts: number;
  body: BodyState;
  /** The last piece of the answer that came, held until it is known whether it is the very last. */
  pending: Buffer | null;
  answered: boolean;
  ended: boolean;
  closed: boolean;
  receivedBytes: number;
  sentBytes: number;
  status: number;
  reason: Reason | null;
}

const AVOID_MS = 1_000;
const ATTEMPTS = 4;
/** Below this, one string with the head costs less than two pieces. */
const SMALL_BYTES = 4_096;
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);

/** Counts the request in; `closeExchange` counts it out when the response is closed. */
export function openExchange(
  gate: Gate,
  arrival: Arrival,
  place: Pick<Exchange, 'site' | 'caller' | 'host' | 'authority' | 'target'>,
): Exchange {
  const now = performance.now();
  const { application_id, preview_id } = place.site.route;
  const exchange: Exchange = {
    request: arrival.request,
    response: arrival.response,
    listener: arrival.listener,
    expects: arrival.expects,
    upgrade: arrival.upgrade,
    gate,
    site: place.site,
    caller: place.caller,
    host: place.host,
    authority: place.authority,
    target: place.target,
    at: new Date(),
    startedMs: now,
    touchedMs: now,
    owner: { application_id, preview_id, instance_id: null },
    upstream: null,
    line: null,
    tried: [],
    attempts: 0,
    body: bodyOf(arrival.request),
    pending: null,
    answered: false,
    ended: false,
    closed: false,
    receivedBytes: 0,
    sentBytes: 0,
    status: 0,
    reason: null,
    connected: onConnected,
    informed: onInformed,
    switched: onSwitched,
    answeredWith: onAnswered,
    received: onReceived,
    settled: onSettled,
    finished: onFinished,
    drained: onDrained,
    broken: onBroken,
  };
  gate.running.add(exchange);
  exchange.site.application.open += 1;
  arrival.response.on('close', () => closeExchange(exchange));
  return exchange;
}

/** Leads the request to an instance, to the next one where one refuses. */
export function dispatch(exchange: Exchange): void {
  const { gate, site, request, caller, upgrade } = exchange;
  const now = performance.now();
  const upstream = chooseUpstream(site, exchange.tried, request.headers.cookie, now);
  if (upstream === null)
    return say(exchange, exchange.tried.length > 0 ? pageOf('refused') : noTargetPage(site.route.state));
  exchange.upstream = upstream;
  exchange.owner.instance_id = upstream.instanceId;
  exchange.touchedMs = now;
  upstream.open += 1;
  const kind = upgrade !== null || exchange.attempts > 0 ? 'new' : isRepeatable(exchange) ? 'repeatable' : 'once';
  exchange.attempts += 1;
  const line = takeLine(upstream, exchange, now, kind, gate.limits.headerBytes);
  exchange.line = line;
  const { target, authority, expects, body } = exchange;
  if (body === 'held') holdWrites(line); // head and the beginning of the body in one packet
  sendHead(
    line,
    request.method as string,
    forwardedHead(request, {
      target,
      authority,
      caller,
      trustProxy: gate.trustProxy,
      protocol: upgrade?.protocol ?? null,
      expects,
    }),
  );
  if (line.connected) beginBody(exchange);
}

/** The instance has not taken the connection in time. */
export function giveUpConnecting(exchange: Exchange): void {
  const { line } = exchange;
  if (line === null) return;
  cutLine(line);
  exchange.broken(new Error('the connection was not accepted in time'));
}

function holdWrites({ socket }: Line): void {
  socket.cork();
  process.nextTick(() => process.nextTick(() => socket.uncork()));
}

// RFC 9110 section 9.2.2: only these may be sent again when it is not known whether they arrived.
function isRepeatable(exchange: Exchange): boolean {
  return exchange.body === 'none' && IDEMPOTENT.has(exchange.request.method as string);
}

function onConnected(this: Exchange): void {
  this.touchedMs = performance.now();
  beginBody(this);
}

function onInformed(this: Exchange, head: AnswerHead): void {
  if (head.status === 100 && this.expects) return beginBody(this, 'invited');
  if (head.status !== 103 || this.request.httpVersionMinor === 0) return;
  const links = head.headers.filter(
    (_, index) => index % 2 === 1 && (head.headers[index - 1] as string).toLowerCase() === 'link',
  );
  try {
    if (links.length > 0) this.response.writeEarlyHints({ link: links });
  } catch {
    // A hint that Node finds malformed is left out: it is only a hint.
  }
}

function onSwitched(this: Exchange, head: AnswerHead, rest: Buffer): void {
  if (this.upgrade === null || this.upgrade.protocol === null) throw new Error('the protocol was switched unasked');
  openTunnel(this, head, rest);
}

function onAnswered(this: Exchange, head: AnswerHead): void {
  const { response, upstream, site, gate } = this;
  const cookie = upstream && stickyCookie(site, upstream, this.request.headers.cookie, this.caller.scheme);
  if (cookie !== null) head.headers.push('Set-Cookie', cookie);
  if (gate.closing || (!this.request.complete && this.body !== 'none')) makeLast(response);
  response.writeHead(head.status, head.message, head.headers);
  this.answered = true;
  this.status = head.status;
}

function onReceived(this: Exchange, chunk: Buffer): void {
  this.sentBytes += chunk.length;
  if (this.pending !== null) this.response.write(this.pending);
  this.pending = chunk;
}

function onSettled(this: Exchange): void {
  this.touchedMs = performance.now();
  const { pending, line, response } = this;
  if (this.ended || line === null || !this.answered) return;
  this.pending = null;
  if (pending === null) return response.flushHeaders();
  if (response.write(pending)) return;
  line.socket.pause();
  response.once('drain', () => {
    this.touchedMs = performance.now();
    if (this.line === line) line.socket.resume();
  });
}

function onFinished(this: Exchange, trailers: string[]): void {
  const { pending, line, response } = this;
  this.ended = true;
  this.pending = null;
  if (trailers.length > 0) response.addTrailers(pairs(trailers));
  if (line !== null && (this.body === 'none' || this.body === 'sent')) returnLine(line, performance.now());
  else if (line !== null) cutLine(line);
  depart(this);
  if (pending !== null && pending.length < SMALL_BYTES) return endResponse(this, pending.toString('latin1'));
  endResponse(this, pending);
}

function onDrained(this: Exchange): void {
  this.request.resume();
}

function onBroken(this: Exchange): void {
  const { line, upstream } = this;
  depart(this);
  if (this.closed || line === null || upstream === null) return;
  if (this.answered) {
    this.reason = 'broken';
    return void this.response.destroy();
  }
  if (!line.connected) {
    this.tried.push(upstream);
    upstream.avoidUntil = performance.now() + AVOID_MS;
    return dispatch(this);
  }
  if (line.reused && !line.heard && isRepeatable(this) && this.attempts < ATTEMPTS) return dispatch(this);
  say(this, pageOf('broken'));
}

function pairs(list: string[]): [string, string][] {
  return Array.from({ length: list.length / 2 }, (_, index) => [
    list[2 * index] as string,
    list[2 * index + 1] as string,
  ]);
}
