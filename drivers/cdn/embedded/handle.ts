// One request of a visitor: from the cache where it is fresh there, else from the origin.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline, Transform, type Readable } from 'node:stream';
import type { Visitor } from '../../cdn';
import { trafficOf, type EdgeState, type Zone } from './edge_state';
import { fetchObject, isPassed, type Fetched, type ObjectRequest } from './fetch_object';
import { requestFields, responseFields, withoutCacheFields, type HeaderFields } from './headers';
import { isFresh } from './policy';
import { sendBody, storedBody } from './reply';
import type { StoredObject } from './store';

interface Visit {
  state: EdgeState;
  zone: Zone;
  visitor: Visitor;
  request: IncomingMessage;
  response: ServerResponse;
  countHit(): void;
  countOrigin(): void;
}

const CDN_NAME = 'edge';
const LOOPS_MAX = 8;
const ORIGIN_FAILED = 'The origin of this address could not be reached.';

export function handleVisit(
  state: EdgeState,
  request: IncomingMessage,
  response: ServerResponse,
  visitor: Visitor,
): void {
  const found = state.hosts.get(visitor.host);
  if (!found) return sendText(response, 404, 'Nothing is served at this address.');
  const { zone, domain_id } = found;
  const visit: Visit = {
    ...{ state, zone, visitor, request, response },
    ...countersFor(state, zone, domain_id, response),
  };
  if (!zone.spec.enabled) return sendText(response, 503, 'This address is switched off.');
  if (isLoop(visit)) return sendText(response, 508, 'The origin leads back to this address.');
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined;
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  if (!isRead && zone.spec.origin.bucket) return sendText(response, 405, 'The origin of this address is only read.');
  const work = isRead && !hasBody ? serveCached(visit) : passThrough(visit);
  work.catch((error: unknown) => {
    state.log('a request to a CDN zone failed', error);
    sendText(response, 502, ORIGIN_FAILED);
  });
}

function countersFor(
  state: EdgeState,
  zone: Zone,
  domain_id: string,
  response: ServerResponse,
): Pick<Visit, 'countHit' | 'countOrigin'> {
  const traffic = trafficOf(state, zone.id, domain_id);
  const { socket } = response;
  const before = socket?.bytesWritten ?? 0;
  traffic.requests += 1;
  response.once('close', () => {
    // Counters are taken now and then: the ones of this moment count.
    const now = trafficOf(state, zone.id, domain_id);
    now.bytes += Math.max(0, (socket?.bytesWritten ?? 0) - before);
    const family = `${Math.floor(response.statusCode / 100)}xx`;
    if (family in now.responses) now.responses[family as '2xx'] += 1;
  });
  return {
    countHit: () => void (trafficOf(state, zone.id, domain_id).hits += 1),
    countOrigin: () => void (trafficOf(state, zone.id, domain_id).origin_requests += 1),
  };
}

/** RFC 8586. */
function isLoop({ zone, request }: Visit): boolean {
  const passed = String(request.headers['cdn-loop'] ?? '');
  return passed.includes(`${CDN_NAME}; zone=${zone.id}`) || passed.split(',').length > LOOPS_MAX;
}

async function serveCached(visit: Visit): Promise<void> {
  const { state } = visit;
  const wanted = objectRequestOf(visit);
  const object = state.store.find(wanted.zone.id, wanted.key, wanted.headers);
  if (object && isFresh(object.policy, wanted.key, wanted.headers as never)) return sendStored(visit, object, 'hit');
  if (object && staleSeconds(object) <= object.stale_while_revalidate) {
    const { fetched } = fetchObject(state, wanted, object);
    void fetched.then((end) => end.kind === 'passed' && end.response.destroy());
    return sendStored(visit, object, 'hit; detail=stale');
  }
  if (!object && isPassed(state, wanted)) return passThrough(visit);
  const { fetched, isLeader } = fetchObject(state, wanted, object);
  return answer(visit, wanted, object, await fetched, isLeader);
}

async function answer(
  visit: Visit,
  wanted: ObjectRequest,
  stale: StoredObject | null,
  fetched: Fetched,
  isLeader: boolean,
): Promise<void> {
  const isFailure =
    fetched.kind === 'failed' || (fetched.kind === 'passed' && (fetched.response.statusCode ?? 0) >= 500);
  if (isFailure && stale && mayServeStale(visit.zone, stale)) {
    if (fetched.kind === 'passed' && isLeader) fetched.response.destroy();
    return sendStored(visit, stale, 'hit; detail=stale');
  }
  if (fetched.kind === 'renewed') return sendStored(visit, fetched.object, 'hit; fwd=stale; fwd-status=304');
  if (fetched.kind === 'failed') return sendText(visit.response, 502, ORIGIN_FAILED);
  // What is not kept, or depends on who asked, is for the one who asked.
  if (fetched.kind === 'passed') return isLeader ? sendPassed(visit, fetched.response) : passThrough(visit);
  const isSame = Object.entries(fetched.vary).every(([name, value]) => String(wanted.headers[name] ?? '') === value);
  if (!isSame) return passThrough(visit);
  const status = isLeader ? `fwd=${stale ? 'stale' : 'uri-miss'}; stored` : 'fwd=uri-miss; collapsed';
  const { flight, size } = fetched;
  sendBody(
    visit.request,
    visit.response,
    {
      ...{ status: fetched.status, size, headers: visitorFields(visit, fetched.headers, status, 0) },
      open: (range) => (range ? slice(flight.read(), range) : flight.read()),
    },
    { compresses: visit.zone.spec.compression },
  );
}

function mayServeStale({ spec }: Zone, object: StoredObject): boolean {
  return spec.cache.serve_stale || staleSeconds(object) <= object.stale_if_error;
}

function staleSeconds({ policy }: StoredObject): number {
  return policy.age() - policy.maxAge();
}

function sendStored(visit: Visit, object: StoredObject, status: string): void {
  visit.countHit();
  const headers = visitorFields(visit, withoutCacheFields(object.headers), status, object.policy.age());
  sendBody(visit.request, visit.response, storedBody(object, headers), {
    compresses: visit.zone.spec.compression,
  });
}

/** Without the cache: other methods, and what can't be kept. */
async function passThrough(visit: Visit): Promise<void> {
  const { state, zone, request } = visit;
  visit.countOrigin();
  const aborted = new AbortController();
  visit.response.once('close', () => aborted.abort());
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined;
  const origin = await state.origins.send(zone.spec.origin, {
    method: request.method ?? 'GET',
    target: request.url ?? '/',
    headers: zone.spec.origin.bucket
      ? objectRequestOf(visit).headers
      : forwardedFields(visit, requestFields(request.headers)),
    body: hasBody ? request : null,
    signal: aborted.signal,
  });
  const isUnsafe = !['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(request.method ?? '');
  // RFC 9111 §4.4.
  if (isUnsafe && (origin.statusCode ?? 500) < 400)
    state.store.purge(zone.id, { type: 'urls', values: [pathOf(request.url ?? '/')] });
  sendPassed(visit, origin);
}

function sendPassed(visit: Visit, origin: IncomingMessage): void {
  const headers = visitorFields(visit, withoutCacheFields(responseFields(origin.headers)), 'fwd=bypass', null);
  if (origin.headers['content-length'] !== undefined) headers['content-length'] = origin.headers['content-length'];
  visit.response.writeHead(origin.statusCode ?? 502, headers);
  if (visit.request.method === 'HEAD') {
    origin.destroy();
    return void visit.response.end();
  }
  pipeline(origin, visit.response, () => undefined);
}

function objectRequestOf({ zone, request, countOrigin, ...rest }: Visit): ObjectRequest {
  const target = request.url ?? '/';
  const headers = requestFields(request.headers);
  for (const name of ['range', 'if-range', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'])
    delete headers[name];
  // Nobody is recognised by a bucket, which the platform asks in its own name.
  if (zone.spec.origin.bucket) for (const name of ['cookie', 'authorization']) delete headers[name];
  // One form for all: visitors get theirs compressed here.
  headers['accept-encoding'] = 'identity';
  const key = zone.spec.cache.query_string === 'ignore' ? pathOf(target) : target;
  return {
    ...{ zone, key, target, countOrigin },
    headers: forwardedFields({ zone, request, countOrigin, ...rest }, headers),
  };
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
function visitorFields({ zone }: Visit, fields: HeaderFields, status: string, age: number | null): HeaderFields {
  const { browser_ttl_seconds } = zone.spec.cache;
  const headers: HeaderFields = { ...fields, 'cache-status': `${CDN_NAME}; ${status}` };
  delete headers['content-length'];
  headers.via = [headers.via ?? []].flat().concat(`1.1 ${CDN_NAME}`).join(', ');
  if (age === null) return headers;
  headers.age = String(Math.floor(age));
  if (browser_ttl_seconds !== null) {
    headers['cache-control'] = `max-age=${browser_ttl_seconds}`;
    delete headers.expires;
    // A browser counts the age too.
    headers.age = '0';
  }
  return headers;
}

function slice(source: Readable, { start, end }: { start: number; end: number }): Readable {
  let position = 0;
  const cut = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const from = Math.max(0, start - position);
      const to = Math.min(chunk.length, end + 1 - position);
      position += chunk.length;
      done(null, to > from ? chunk.subarray(from, to) : undefined);
      if (position > end) {
        cut.end();
        source.destroy();
      }
    },
  });
  source.on('error', (error) => cut.destroy(error));
  source.pipe(cut);
  return cut;
}

function sendText(response: ServerResponse, status: number, text: string): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const body = `${text}\n`;
  response.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'Cache-Status': CDN_NAME,
  });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}
