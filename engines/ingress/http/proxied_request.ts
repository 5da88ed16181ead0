// A proxied request and its response. Nothing is buffered beyond a chunk: the slower side sets the pace.
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ResponseHead } from './response_parser';
import { startSendingBody, bodyOf, takeWholeBody, type BodyState } from './request_body';
import { isTrusted } from '../confirmation';
import { chooseUpstream, stickyCookie } from '../load_balancing';
import { forwardedHead, type Caller } from './forwarded_head';
import type { IngressState } from '../ingress_state';
import { noTargetPage, fixedPage, type Reason } from '../pages';
import { addTrailers, finishProxying, releaseUpstream, endResponse, closeAfterResponse, sendPage } from './response';
import { noteFailedConnection } from '../reachability';
import type { Site } from '../route_table';
import { hasAuthority } from '../tls_contexts';
import type { TrafficOwner } from '../traffic';
import { connectionKindOf, isRepeatable } from './repeatable';
import { endWaiting, loseService, waitForService } from './service_waiting';
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
  /** The client sent `Expect: 100-continue` and waits before sending the body. */
  expects: boolean;
  /** The raw connection of a request with `Upgrade`. */
  upgrade: { socket: Duplex; head: Buffer; protocol: string | null; detach(): void } | null;
}

export interface ProxiedRequest extends ConnectionUser, InboundRequest {
  ingress: IngressState;
  site: Site;
  caller: Caller;
  /** Counts as an open request of the application. A rejected request whose client is still sending does not. */
  isCounted: boolean;
  /** In lower case, without the port. */
  host: string;
  authority: string;
  /** Path and query string. */
  target: string;
  at: Date;
  startedMs: number;
  /** Time of the last byte in either direction. */
  touchedMs: number;
  owner: TrafficOwner;
  upstream: Upstream | null;
  connection: UpstreamConnection | null;
  tried: Upstream[];
  attempts: number;
  /**
   * The kept-alive connection was closed before the first byte of the response: retried once, with the same instance.
   */
  resending: boolean;
  /** For a service that was away. */
  hasWaited: boolean;
  body: BodyState;
  /**
   * The last chunk of the response so far, held back until it is known whether it is the final one. It is copied before
   * the next read, which reuses the buffer.
   */
  pending: Buffer | null;
  answered: boolean;
  ended: boolean;
  closed: boolean;
  receivedBytes: number;
  /** Time spent waiting for the body of the client. */
  uploadMs: number;
  sentBytes: number;
  status: number;
  reason: Reason | null;
}

/** Up to this size, concatenating the body to the head is cheaper than two writes. */
const SMALL_BYTES = 4_096;
const HSTS = ['Strict-Transport-Security', 'max-age=31536000'] as const;

/** `finishProxying` must be called when the response is closed. */
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

// All fields in one literal: with an initial spread, V8 creates a new hidden class each time, which cost more than the
// rest of the request handling.
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
    hasWaited: false,
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

/** Sends the request to an instance, and to the next one if the connection is refused. */
export function chooseInstance(proxied: ProxiedRequest): void {
  const { site, request, tried } = proxied;
  if (site.service !== null) return sendToInstance(proxied, site.upstreams[0] as Upstream);
  const now = performance.now();
  const upstream = chooseUpstream(site, tried, request.headers.cookie, now);
  if (upstream !== null) return sendToInstance(proxied, upstream);
  // Those that have refused this very request are not trusted either, but that is not what the visitor asks.
  if (site.upstreams.some((one) => !one.drained && !tried.includes(one) && !isTrusted(one, now)))
    return sendPage(proxied, fixedPage('unconfirmed'));
  sendPage(proxied, tried.length > 0 ? fixedPage('refused') : noTargetPage(site.route.state));
}

function sendToInstance(proxied: ProxiedRequest, upstream: Upstream): void {
  const { ingress, request, caller, upgrade } = proxied;
  const now = performance.now();
  proxied.upstream = upstream;
  proxied.owner.instance_id = upstream.instanceId;
  proxied.touchedMs = now;
  upstream.open += 1;
  const connection = takeConnection(upstream, proxied, now, connectionKindOf(proxied), ingress.limits.headerBytes);
  proxied.attempts += 1;
  proxied.connection = connection;
  const { target, authority, expects } = proxied;
  const protocol = upgrade?.protocol ?? null;
  const trustProxy = proxied.site.service === null ? ingress.trustProxy : 0;
  const requestId = proxied.site.service === null ? 'of_caller' : 'as_sent';
  const head = forwardedHead(request, { target, authority, caller, trustProxy, protocol, expects, requestId });
  const body = takeWholeBody(proxied);
  // Send the head and the start of the body in one packet.
  if (proxied.body === 'held' && connection.socket !== null) holdWrites(connection.socket);
  const isWhole = proxied.body === 'none' || proxied.body === 'sent';
  sendHead(connection, request.method as string, head + body, isWhole && upgrade === null);
  if (connection.socket !== null) startSendingBody(proxied);
}

/** Handles the timeout of a connection attempt. */
export function failConnecting(proxied: ProxiedRequest): void {
  const { connection } = proxied;
  if (connection === null) return;
  destroyConnection(connection);
  proxied.onBroken(Object.assign(new Error('the connection was not accepted in time'), { code: 'ETIMEDOUT' }));
}

function holdWrites(socket: Socket): void {
  socket.cork();
  process.nextTick(() => process.nextTick(() => socket.uncork()));
}

function onConnected(this: ProxiedRequest): void {
  this.touchedMs = performance.now();
  startSendingBody(this);
  const { service } = this.site;
  if (service !== null) endWaiting(this, service, chooseInstance);
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
    // Node rejects a malformed early hint. It is dropped, since hints are optional.
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
  if (site.service !== null && this.listener === 'https' && hasAuthority(ingress.certificates, this.host))
    head.headers.push(...HSTS);
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
  if (trailers.length > 0) addTrailers(response, trailers);
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

// An instance may close a kept-alive connection at any moment: if it does so now, it never saw the request, and is
// healthy. An instance that has died may have died of the request: no other instance gets it.
function onBroken(this: ProxiedRequest, error: NodeJS.ErrnoException): void {
  const { connection, upstream } = this;
  releaseUpstream(this);
  if (this.closed || connection === null || upstream === null) return;
  if (this.answered) {
    this.reason = 'broken';
    return void this.response.destroy();
  }
  const { service } = this.site;
  if (connection.socket === null && service !== null) return waitForService(this, service, chooseInstance);
  if (connection.socket === null) {
    this.tried.push(upstream);
    noteFailedConnection(upstream, error, performance.now());
    return this.resending ? sendPage(this, fixedPage('broken')) : chooseInstance(this);
  }
  if (connection.reused && !connection.receivedBytes && isRepeatable(this) && !this.resending) {
    this.resending = true;
    return sendToInstance(this, upstream);
  }
  if (service === null) sendPage(this, fixedPage('broken'));
  else loseService(this, service, connection.receivedBytes, chooseInstance);
}
