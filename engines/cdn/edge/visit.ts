// A request of a visitor: served by the cache where that is possible, else forwarded to the origin.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import type { Visitor } from '../cdn';
import { trafficOf, type EdgeState, type Zone } from './edge_state';
import { requestFields, responseFields, withoutCacheFields, type HeaderFields } from './headers';

export interface Visit {
  state: EdgeState;
  zone: Zone;
  domain_id: string;
  visitor: Visitor;
  request: IncomingMessage;
  response: ServerResponse;
  /** Path and query string as sent to the origin. */
  target: string;
}

/** The request in the form that the cache uses for lookups. */
export interface ObjectRequest {
  zone: Zone;
  /** Scheme and host name: a part of the address (RFC 9111 §2); both are forwarded to the origin. */
  site: string;
  key: string;
  /** Path and query string as sent to the origin. */
  target: string;
  headers: HeaderFields;
  /** Counts a request to the origin. */
  countOrigin(): void;
}

const CDN_NAME = 'edge';
export const ORIGIN_FAILED = 'The origin of this address could not be reached.';
const LOOPS_MAX = 8;

export function handleVisit(
  state: EdgeState,
  request: IncomingMessage,
  response: ServerResponse,
  visitor: Visitor,
): void {
  const found = state.hosts.get(visitor.host);
  if (!found) return sendRefusal(response, 404, 'Nothing is served at this address.');
  const { zone, domain_id } = found;
  const target = targetOf(zone, request);
  const visit: Visit = { state, zone, domain_id, visitor, request, response, target: target ?? '/' };
  countVisit(visit);
  if (visitor.redirect !== undefined) return sendRedirect(response, visitor.redirect);
  if (target === null) return sendRefusal(response, 400, 'The address of this request is malformed.');
  if (!zone.spec.enabled) return sendRefusal(response, 503, 'This address is switched off.');
  if (isLoop(visit)) return sendRefusal(response, 508, 'The origin leads back to this address.');
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  if (!isRead && !isPreflight(request) && zone.spec.origin.bucket)
    return sendRefusal(response, 405, 'Only GET and HEAD are allowed at this address.');
  try {
    const work = isRead && !hasBody(request) ? state.cache.serve(visit) : passThrough(visit);
    work?.catch((error: unknown) => fail(visit, error));
  } catch (error) {
    fail(visit, error);
  }
}

/** A question of a browser (Fetch standard, CORS-preflight request), which the rules of a bucket answer. */
function isPreflight({ method, url, headers }: IncomingMessage): boolean {
  const isAsked = headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
  return method === 'OPTIONS' && url !== '*' && isAsked;
}

function sendRedirect(response: ServerResponse, location: string): void {
  response.writeHead(308, { Location: location, 'Content-Length': 0, 'Cache-Status': CDN_NAME });
  response.end();
}

function fail({ state, response }: Visit, error: unknown): void {
  if (!response.destroyed) state.log('a request to a CDN zone failed', error);
  sendRefusal(response, 502, ORIGIN_FAILED);
}

/**
 * Path of a request target, which may be in absolute form; the ingress has found the zone by the host (RFC 9112
 * §3.2.2). Fragments are rejected, and so are backslashes in a path, which some origins interpret. Addresses that the
 * cache does not distinguish, the origin must not either: an ignored query string is not sent.
 */
function targetOf({ spec }: Zone, { method, url = '' }: IncomingMessage): string | null {
  if (url === '*') return method === 'OPTIONS' ? url : null;
  const [, path = url] = /^https?:\/\/[^/?#]+(.*)$/is.exec(url) ?? [];
  const whole = path === '' || path.startsWith('?') ? `/${path}` : path;
  const isClean = !whole.includes('#') && !pathOf(whole).includes('\\');
  if (!whole.startsWith('/') || !isClean) return null;
  const isRead = method === 'GET' || method === 'HEAD';
  return isRead && spec.cache.query_string === 'ignore' ? pathOf(whole) : whole;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return Number(headers['content-length'] ?? 0) > 0 || headers['transfer-encoding'] !== undefined;
}

/**
 * Counts the bytes of the connection, head and framing included. A pipelined response gets the connection when the
 * previous one has ended, and node:http starts the next one in its own `finish` listener.
 */
function countVisit({ state, zone, domain_id, response }: Visit): void {
  let socket = response.socket;
  let before = socket?.bytesWritten ?? 0;
  let isCounted = false;
  const count = (): void => {
    if (isCounted) return;
    isCounted = true;
    // `takeTraffic` replaces the counters in the meantime: use the current ones.
    const now = trafficOf(state, zone.id, domain_id);
    now.bytes += (socket?.bytesWritten ?? 0) - before;
    const family = `${Math.floor(response.statusCode / 100)}xx`;
    if (family in now.responses) now.responses[family as '2xx'] += 1;
  };
  trafficOf(state, zone.id, domain_id).requests += 1;
  if (!socket)
    response.once('socket', (assigned: Socket) => {
      socket = assigned;
      before = assigned.bytesWritten;
    });
  response.prependOnceListener('finish', count);
  response.once('close', count);
}

export function countHit({ state, zone, domain_id }: Visit): void {
  trafficOf(state, zone.id, domain_id).hits += 1;
}

function countOrigin({ state, zone, domain_id }: Visit): void {
  trafficOf(state, zone.id, domain_id).origin_requests += 1;
}

/** RFC 8586, and RFC 9110 §7.6.3. */
function isLoop({ zone, request }: Visit): boolean {
  const passed = String(request.headers['cdn-loop'] ?? '');
  if (passed.includes(`${CDN_NAME}; zone=${zone.id}`) || passed.split(',').length > LOOPS_MAX) return true;
  // In case an intermediary has removed CDN-Loop.
  return String(request.headers.via ?? '').split(`1.1 ${CDN_NAME}`).length > LOOPS_MAX;
}

/** Bypasses the cache: other methods, and responses that cannot be stored. */
export async function passThrough(visit: Visit): Promise<void> {
  const { state, zone, request } = visit;
  countOrigin(visit);
  const aborted = new AbortController();
  visit.response.once('close', () => aborted.abort());
  const origin = await state.origins.send(zone.spec.origin, {
    method: request.method ?? 'GET',
    target: visit.target,
    headers: zone.spec.origin.bucket
      ? objectRequestOf(visit).headers
      : forwardedFields(visit, requestFields(request.headers)),
    body: hasBody(request) ? request : null,
    signal: aborted.signal,
  });
  const isUnsafe = !['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(request.method ?? '');
  if (isUnsafe && (origin.statusCode ?? 500) < 400)
    await state.cache.invalidate(zone.id, { type: 'urls', values: changedPaths(visit, origin) });
  sendPassed(visit, origin);
}

/** Paths invalidated by a write: its own, and those of this site that the response names (RFC 9111 §4.4). */
function changedPaths({ target, visitor, zone }: Visit, { headers }: IncomingMessage): string[] {
  const base = `http://${visitor.host}${pathOf(target)}`;
  const hosts = [visitor.host, zone.spec.origin.host_header.replace(/:\d+$/, '').toLowerCase()];
  const named = [headers.location, headers['content-location']].flatMap((text) => {
    if (text === undefined || !URL.canParse(text, base)) return [];
    const { hostname, pathname } = new URL(text, base);
    return hosts.includes(hostname) ? [pathname] : [];
  });
  return [...new Set([pathOf(target), ...named])];
}

export function sendPassed(visit: Visit, origin: IncomingMessage): void {
  const headers = visitorFields(visit, withoutCacheFields(responseFields(origin.headers)), 'fwd=bypass', null);
  if (origin.headers['content-length'] !== undefined) headers['content-length'] = origin.headers['content-length'];
  visit.response.writeHead(origin.statusCode ?? 502, headers);
  if (visit.request.method === 'HEAD') {
    origin.destroy();
    return void visit.response.end();
  }
  pipeline(origin, visit.response, () => undefined);
}

const CONDITIONS = ['range', 'if-range', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'];

export function objectRequestOf(visit: Visit): ObjectRequest {
  const { zone, request, target } = visit;
  const headers = requestFields(request.headers);
  for (const name of CONDITIONS) delete headers[name];
  // A bucket does not authenticate visitors: the platform signs the requests with its own key.
  if (zone.spec.origin.bucket) for (const name of ['cookie', 'authorization']) delete headers[name];
  // The cache stores the uncompressed form, and compresses responses itself.
  headers['accept-encoding'] = 'identity';
  return {
    ...{ zone, site: siteOf(visit), key: target, target, countOrigin: () => countOrigin(visit) },
    headers: forwardedFields(visit, headers),
  };
}

export function siteOf({ visitor }: Visit): string {
  return `${visitor.scheme}://${visitor.host}`;
}

function pathOf(target: string): string {
  return target.split('?', 1)[0] ?? target;
}

function forwardedFields({ zone, visitor }: Visit, headers: HeaderFields): HeaderFields {
  const loop = `${CDN_NAME}; zone=${zone.id}`;
  return {
    ...headers,
    'cdn-loop': [headers['cdn-loop'] ?? []].flat().concat(loop).join(', '),
    via: [headers.via ?? []].flat().concat(`1.1 ${CDN_NAME}`).join(', '),
    'x-forwarded-for': visitor.address,
    'x-forwarded-proto': visitor.scheme,
    'x-forwarded-host': visitor.host,
  };
}

/** @param age in seconds; null: not from the cache */
export function visitorFields({ zone }: Visit, fields: HeaderFields, status: string, age: number | null): HeaderFields {
  const { browser_ttl_seconds } = zone.spec.cache;
  const headers: HeaderFields = { ...fields, 'cache-status': `${CDN_NAME}; ${status}` };
  delete headers['content-length'];
  headers.via = [headers.via ?? []].flat().concat(`1.1 ${CDN_NAME}`).join(', ');
  if (age === null) return headers;
  headers.age = String(Math.floor(age));
  if (browser_ttl_seconds !== null) {
    headers['cache-control'] = `max-age=${browser_ttl_seconds}`;
    delete headers.expires;
    // The browser adds the age to its own calculation.
    headers.age = '0';
  }
  return headers;
}

export function sendRefusal(
  response: ServerResponse,
  status: number,
  text: string,
  more: Record<string, string> = {},
): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const body = `${text}\n`;
  response.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'Cache-Status': CDN_NAME,
    ...more,
  });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}
