// One request and its answer. Nothing is stored: bytes are forwarded as they come; the slower side sets the pace.
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ResponseHead } from './response_parser';
import { startSendingBody, bodyOf, takeWholeBody, type BodyState } from './request_body';
import { chooseUpstream, stickyCookie } from '../load_balancing';
import { forwardedHead, type Caller } from './forwarded_head';
import type { IngressState } from '../ingress_state';
import { noTargetPage, fixedPage, type Reason } from '../pages';
import { finishProxying, releaseUpstream, endResponse, closeAfterResponse, sendPage } from './response';
import type { Site } from '../route_table';
import type { TrafficOwner } from '../traffic';
import { openTunnel } from './tunnel';
import type { VisitorRequest, VisitorResponse } from '../visitor';
import {
  destroyConnection,
  returnConnection,
  sendHead,
  takeConnection,
  type UpstreamConnection,
  type ConnectionUser,
  type Upstream,
} from '../upstream';

export interface InboundRequest {
  request: VisitorRequest;
  response: VisitorResponse;
  listener: 'http' | 'https';
  /** The client waits for 100 before it sends the body. */
  expects: boolean;
  /** The bare connection of a request that asked for another protocol. */
  upgrade: { socket: Duplex; head: Buffer; protocol: string | null; detach(): void } | null;
}

export interface ProxiedRequest extends ConnectionUser, InboundRequest {
  ingress: IngressState;
  site: Site;
  caller: Caller;
  /** One of the open requests of the application: a refused one whose client goes on sending is none. */
  isCounted: boolean;
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
  connection: UpstreamConnection | null;
  tried: Upstream[];
  attempts: number;
  /** Its kept connection was closed before the first byte: only the same instance may get it once more. */
  resending: boolean;
  body: BodyState;
  /**
   * The last piece of the answer that came, held until it is known whether it is the very last. It is copied before the
   * next read, which has the same memory.
   */
  pending: Buffer | null;
  answered: boolean;
  ended: boolean;
  closed: boolean;
  receivedBytes: number;
  /** How long the client has been asked for its body. */
  uploadMs: number;
  sentBytes: number;
  status: number;
  reason: Reason | null;
}

const AVOID_MS = 1_000;
/** Below this, one string with the head costs less than two pieces. */
const SMALL_BYTES = 4_096;
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);

/** `finishProxying` ends what this begins, when the response is closed. */
export function beginProxying(
  ingress: IngressState,
  inbound: InboundRequest,
  address: Pick<ProxiedRequest, 'site' | 'caller' | 'host' | 'authority' | 'target'>,
): ProxiedRequest {
  const proxied = newProxiedRequest(ingress, inbound, address);
  ingress.running.add(proxied);
  inbound.response.on('close', () => finishProxying(proxied));
  return proxied;
}

// All fields in one literal: of one that begins with a spread, V8 makes a new shape each time, which cost more than all
// else that the ingress does for a request.
function newProxiedRequest(
  ingress: IngressState,
  { request, response, listener, expects, upgrade }: InboundRequest,
  { site, caller, host, authority, target }: Pick<ProxiedRequest, 'site' | 'caller' | 'host' | 'authority' | 'target'>,
): ProxiedRequest {
  const { application_id, preview_id } = site.route;
  const now = performance.now();
  return {
    request,
    response,
    listener,
    expects,
    upgrade,
    ingress,
    site,
    caller,
    isCounted: false,
    host,
    authority,
    target,
    at: new Date(),
    startedMs: now,
    touchedMs: now,
    owner: { application_id, preview_id, instance_id: null },
    upstream: null,
    connection: null,
    tried: [],
    attempts: 0,
    resending: false,
    body: bodyOf(request),
    pending: null,
    answered: false,
    ended: false,
    closed: false,
    receivedBytes: 0,
    uploadMs: 0,
    sentBytes: 0,
    status: 0,
    reason: null,
    onConnected,
    onInformational,
    onSwitchingProtocols,
    onHead,
    onBodyChunk,
    onReadDelivered,
    onComplete,
    onDrained,
    onBroken,
  };
}

/** Sends the request to an instance, to the next one where one refuses the connection. */
export function chooseInstance(proxied: ProxiedRequest): void {
  const { site, request, tried } = proxied;
  const upstream = chooseUpstream(site, tried, request.headers.cookie, performance.now());
  if (upstream !== null) return sendToInstance(proxied, upstream);
  sendPage(proxied, tried.length > 0 ? fixedPage('refused') : noTargetPage(site.route.state));
}

function sendToInstance(proxied: ProxiedRequest, upstream: Upstream): void {
  const { ingress, request, caller, upgrade } = proxied;
  const now = performance.now();
  proxied.upstream = upstream;
  proxied.owner.instance_id = upstream.instanceId;
  proxied.touchedMs = now;
  upstream.open += 1;
  const kind = upgrade !== null || proxied.attempts > 0 ? 'new' : isRepeatable(proxied) ? 'repeatable' : 'once';
  proxied.attempts += 1;
  const connection = takeConnection(upstream, proxied, now, kind, ingress.limits.headerBytes);
  proxied.connection = connection;
  const { target, authority, expects } = proxied;
  const protocol = upgrade?.protocol ?? null;
  const head = forwardedHead(request, { target, authority, caller, trustProxy: ingress.trustProxy, protocol, expects });
  const body = takeWholeBody(proxied);
  // Head and the beginning of the body in one packet.
  if (proxied.body === 'held' && connection.socket !== null) holdWrites(connection.socket);
  const isWhole = proxied.body === 'none' || proxied.body === 'sent';
  sendHead(connection, request.method as string, head + body, isWhole && upgrade === null);
  if (connection.socket !== null) startSendingBody(proxied);
}

/** The instance has not taken the connection in time. */
export function failConnecting(proxied: ProxiedRequest): void {
  const { connection } = proxied;
  if (connection === null) return;
  destroyConnection(connection);
  proxied.onBroken(new Error('the connection was not accepted in time'));
}

function holdWrites(socket: Socket): void {
  socket.cork();
  process.nextTick(() => process.nextTick(() => socket.uncork()));
}

// RFC 9110 section 9.2.2: only these may be sent again when it is not known whether they arrived.
function isRepeatable(proxied: ProxiedRequest): boolean {
  return proxied.body === 'none' && IDEMPOTENT.has(proxied.request.method as string);
}

function onConnected(this: ProxiedRequest): void {
  this.touchedMs = performance.now();
  startSendingBody(this);
}

function onInformational(this: ProxiedRequest, head: ResponseHead): void {
  if (head.status === 100 && this.expects) return startSendingBody(this, 'invited');
  if (head.status !== 103 || this.request.httpVersionMinor === 0) return;
  const links = head.headers.filter(
    (_, index) => index % 2 === 1 && (head.headers[index - 1] as string).toLowerCase() === 'link',
  );
  try {
    if (links.length > 0) this.response.writeEarlyHints({ link: links });
  } catch {
    // A hint that Node finds malformed is left out: a hint may be lost.
  }
}

function onSwitchingProtocols(this: ProxiedRequest, head: ResponseHead, rest: Buffer): void {
  if (this.upgrade === null || this.upgrade.protocol === null) throw new Error('the protocol was switched unasked');
  openTunnel(this, head, rest);
}

function onHead(this: ProxiedRequest, head: ResponseHead): void {
  const { response, upstream, site, ingress } = this;
  const cookie = upstream && stickyCookie(site, upstream, this.request.headers.cookie, this.caller.scheme);
  if (cookie !== null) head.headers.push('Set-Cookie', cookie);
  if (ingress.closing || (!this.request.complete && this.body !== 'none')) closeAfterResponse(response);
  response.writeHead(head.status, head.message, head.headers);
  this.answered = true;
  this.status = head.status;
}

function onBodyChunk(this: ProxiedRequest, chunk: Buffer): void {
  this.sentBytes += chunk.length;
  if (this.pending !== null) this.response.write(Buffer.from(this.pending));
  this.pending = chunk;
}

function onReadDelivered(this: ProxiedRequest): void {
  this.touchedMs = performance.now();
  const { pending, connection, response } = this;
  if (this.ended || connection === null || !this.answered) return;
  this.pending = null;
  if (pending === null) return response.flushHeaders();
  if (response.write(Buffer.from(pending))) return;
  connection.socket?.pause();
  response.once('drain', () => {
    this.touchedMs = performance.now();
    if (this.connection === connection) connection.socket?.resume();
  });
}

function onComplete(this: ProxiedRequest, trailers: string[]): void {
  const { pending, connection, response } = this;
  this.ended = true;
  this.pending = null;
  if (trailers.length > 0) response.addTrailers(pairs(trailers));
  if (connection !== null && (this.body === 'none' || this.body === 'sent'))
    returnConnection(connection, performance.now());
  else if (connection !== null) destroyConnection(connection);
  releaseUpstream(this);
  if (pending !== null && pending.length < SMALL_BYTES) return endResponse(this, pending.toString('latin1'));
  endResponse(this, pending && Buffer.from(pending));
}

function onDrained(this: ProxiedRequest): void {
  this.request.resume();
}

// An instance may close a kept connection at any moment, also in this one: then it never saw the request, and still
// lives. One that has ended may have ended because of the request: no other instance gets it.
function onBroken(this: ProxiedRequest): void {
  const { connection, upstream } = this;
  releaseUpstream(this);
  if (this.closed || connection === null || upstream === null) return;
  if (this.answered) {
    this.reason = 'broken';
    return void this.response.destroy();
  }
  if (connection.socket === null) {
    this.tried.push(upstream);
    upstream.avoidUntil = performance.now() + AVOID_MS;
    return this.resending ? sendPage(this, fixedPage('broken')) : chooseInstance(this);
  }
  if (connection.reused && !connection.receivedBytes && isRepeatable(this) && !this.resending) {
    this.resending = true;
    return sendToInstance(this, upstream);
  }
  sendPage(this, fixedPage('broken'));
}

function pairs(list: string[]): [string, string][] {
  return Array.from({ length: list.length / 2 }, (_, index) => [
    list[2 * index] as string,
    list[2 * index + 1] as string,
  ]);
}
