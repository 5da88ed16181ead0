// Completion of a proxied request: the last bytes to the client, the counters, and the access line.
import type { AccessLine } from '../ingress';
import { countOut } from '../client_share';
import type { ProxiedRequest } from './proxied_request';
import { render, type Page } from '../pages';
import { countBytes, countRequest } from '../traffic';
import type { VisitorRequest, VisitorResponse } from '../visitor';
import { destroyConnection, finishUpstreamRequest } from '../upstream';

const LINGERING_CLOSE_MS = 2_000;
/** Clients of object storage and of the registry send gigabytes, and read the answer when all of it is sent. */
const SERVICE_LINGERING_CLOSE_MS = 30_000;
const PATH_LENGTH = 2_048;
/** nginx convention: the client disconnected before the response. */
const CLIENT_GONE = 499;
const ending = new WeakSet<object>();

/**
 * Marks the response as the last one of its connection: later requests are not served, even if they have already
 * arrived.
 */
export function closeAfterResponse(response: VisitorResponse): void {
  response.shouldKeepAlive = false;
  if (response.socket !== null) ending.add(response.socket);
}

/** Whether the last response on a connection is pending. */
export function isClosingAfterResponse(socket: object): boolean {
  return ending.has(socket);
}

/** Responds with a page of the ingress. */
export function sendPage(proxied: ProxiedRequest, page: Page, more: Record<string, string> = {}): void {
  const { response, request, caller } = proxied;
  if (proxied.closed || response.headersSent) return void response.destroy();
  const { headers, body } = render(page, request, caller.requestId);
  if (proxied.ingress.closing || proxied.body === 'waiting' || (!request.complete && proxied.body !== 'none'))
    closeAfterResponse(response);
  proxied.status = page.status;
  proxied.reason = page.reason;
  proxied.answered = true;
  proxied.ended = true;
  proxied.touchedMs = performance.now();
  proxied.sentBytes += request.method === 'HEAD' ? 0 : Buffer.byteLength(body);
  response.writeHead(page.status, { ...headers, ...more });
  endResponse(proxied, body);
}

/** Handles an instance that has timed out before or within the response. */
export function failRequest(proxied: ProxiedRequest, page: Page): void {
  abortUpstream(proxied);
  if (!proxied.answered) return sendPage(proxied, page);
  proxied.reason = page.reason;
  proxied.response.destroy();
}

/** Aborts the connection to the instance, in any state of the request. */
function abortUpstream(proxied: ProxiedRequest): void {
  if (proxied.connection !== null) destroyConnection(proxied.connection);
  releaseUpstream(proxied);
}

/** The request no longer counts as open at the instance. */
export function releaseUpstream(proxied: ProxiedRequest): void {
  const { upstream } = proxied;
  proxied.connection = null;
  proxied.upstream = null;
  if (upstream !== null) finishUpstreamRequest(upstream);
}

/** Ends the response. A string as `last` is latin1, or the text of a page. */
export function endResponse(proxied: ProxiedRequest, last: Buffer | string | null): void {
  const { response, request } = proxied;
  const encoding = proxied.reason === null ? 'latin1' : 'utf8';
  if (proxied.body === 'none' || request.complete || proxied.upgrade !== null) return end(response, last, encoding);
  if (last !== null && last.length > 0) write(response, last, encoding);
  endAfterRequest(request, response, proxied.site.service === null ? LINGERING_CLOSE_MS : SERVICE_LINGERING_CLOSE_MS);
}

/**
 * Ends a response before its request is complete. Closing a connection with unread input resets it, and the client
 * loses the response (RFC 9112 section 9.6). Further input is therefore discarded for a while, as in a lingering close.
 */
export function endAfterRequest(
  request: VisitorRequest,
  response: VisitorResponse,
  lingeringMs = LINGERING_CLOSE_MS,
): void {
  closeAfterResponse(response);
  const done = (): void => void response.end();
  const timer = setTimeout(done, lingeringMs).unref();
  request.once('close', () => (clearTimeout(timer), done()));
  request.once('end', () => (clearTimeout(timer), done()));
  request.resume();
}

/** @param list alternating names and values */
export function addTrailers(response: VisitorResponse, list: readonly string[]): void {
  const pairs = Array.from({ length: list.length / 2 }, (_, index): [string, string] => [
    list[2 * index] as string,
    list[2 * index + 1] as string,
  ]);
  response.addTrailers(pairs);
}

/** Decrements the open requests and writes the access line. */
export function finishProxying(proxied: ProxiedRequest): void {
  if (proxied.closed) return;
  proxied.closed = true;
  const { ingress, site, response } = proxied;
  if (!proxied.ended && proxied.status !== 101) {
    proxied.reason ??= 'client_gone';
    if (!proxied.answered) proxied.status = CLIENT_GONE;
  } else if (proxied.status !== 101 && !response.writableFinished) proxied.reason ??= 'client_gone';
  abortUpstream(proxied);
  ingress.running.delete(proxied);
  if (proxied.isCounted) countOut(site.application, proxied.caller.address);
  // A service counts and logs its requests itself.
  if (site.service !== null) return;
  const duration = performance.now() - proxied.startedMs;
  if (proxied.status !== 101) {
    countRequest(ingress.traffic, proxied.owner, proxied.status, duration);
    countBytes(ingress.traffic, proxied.owner, proxied.receivedBytes, proxied.sentBytes);
  }
  ingress.parts.line(accessLineOf(proxied, duration));
}

function end(response: VisitorResponse, last: Buffer | string | null, encoding: BufferEncoding): void {
  if (last === null) return void response.end();
  response.end(last, encoding);
}

function write(response: VisitorResponse, last: Buffer | string, encoding: BufferEncoding): void {
  if (typeof last === 'string') response.write(last, encoding);
  else response.write(last);
}

function accessLineOf(proxied: ProxiedRequest, durationMs: number): AccessLine {
  const { request, owner, target } = proxied;
  const query = target.indexOf('?');
  const path = query < 0 ? target : target.slice(0, query);
  return {
    at: proxied.at,
    application_id: owner.application_id,
    preview_id: owner.preview_id,
    instance_id: owner.instance_id,
    method: request.method ?? '',
    host: proxied.host,
    path: path.length > PATH_LENGTH ? path.slice(0, PATH_LENGTH) : path,
    status: proxied.status,
    duration_ms: Math.round(durationMs * 100) / 100,
    bytes_sent: proxied.sentBytes,
    client_address: proxied.caller.address,
    request_id: proxied.caller.requestId,
    reason: proxied.reason,
  };
}
