// The backend of Varnish: sends requests to the origin of the zone (signed, over TLS, with a checked address), and
// returns the storage decision with the response.
import http, { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream';
import { timingSafeEqual } from 'node:crypto';
import type { PurgeSpec } from '../../engines/cdn/cdn';
import { isCompressible } from '../../engines/cdn/edge/compression';
import { trafficOf, type EdgeState, type Zone } from '../../engines/cdn/edge/edge_state';
import {
  renewedFields,
  requestFields,
  responseFields,
  TAGS_MAX,
  tagsOf,
  withoutCacheFields,
  type HeaderFields,
} from '../../engines/cdn/edge/headers';
import { decide, isEndKnown, type Decision } from '../../engines/cdn/edge/policy';
import { purgeMatcher } from '../../engines/cdn/edge/purge_matcher';
import { namedFields } from '../../engines/cdn/edge/vary';
import { FIELD, withoutInternal } from './fields';

interface GatewayOptions {
  host: string;
  port: number;
  token: string;
  objectBytesMax: number;
}

export interface Gateway {
  readonly port: number;
  /**
   * Prevents pending responses from being stored.
   * @returns whether Varnish may have received the head of such a response without having stored it yet
   */
  cancelFetches(zoneId: string, purge: PurgeSpec): boolean;
  close(): Promise<void>;
}

/** A request to an origin, until it is certain whether Varnish has stored the response. */
interface Fetch {
  zone_id: string;
  key: string;
  isCancelled: boolean;
  hasHead: boolean;
}

/** Longer keys exceed the header field limit of Varnish. */
const KEY_LENGTH_MAX = 4_000;
const TAGS_LENGTH_MAX = 6_000;
/** Varnish does not find objects without a TTL. */
const TTL_MIN = '0.001';
const HEAD_MS = 60_000;
const STORED_WITHIN_MS = 5_000;

interface State extends GatewayOptions {
  edge: EdgeState;
  fetches: Set<Fetch>;
}

/** @throws Error where the port is taken */
export async function openGateway(edge: EdgeState, options: GatewayOptions): Promise<Gateway> {
  const state: State = { ...options, edge, fetches: new Set() };
  const server = http.createServer({ keepAliveTimeout: 120_000 }, (request, response) => {
    answer(state, request, response).catch((error: unknown) => {
      edge.log('a request of Varnish failed', error);
      fail(response);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  return {
    port: (server.address() as { port: number }).port,
    cancelFetches: (zoneId, purge) => cancelFetches(state, zoneId, purge),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function cancelFetches({ fetches }: State, zoneId: string, purge: PurgeSpec): boolean {
  const matches = purgeMatcher({ ...purge, ...(purge.type === 'tags' && { type: 'all' }) });
  let mayBeStoredYet = false;
  for (const fetch of fetches) {
    if (fetch.zone_id !== zoneId || !matches({ key: fetch.key, tags: [] })) continue;
    fetch.isCancelled = true;
    mayBeStoredYet ||= fetch.hasHead;
  }
  return mayBeStoredYet;
}

async function answer(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { edge } = state;
  const zone = edge.zones.get(text(request, FIELD.zone));
  if (!isOurs(state, request) || !zone) return void response.writeHead(403).end();
  const key = text(request, FIELD.key);
  const fetch: Fetch = { zone_id: zone.id, key, isCancelled: false, hasHead: false };
  state.fetches.add(fetch);
  response.once('close', () => setTimeout(() => state.fetches.delete(fetch), STORED_WITHIN_MS).unref());
  trafficOf(edge, zone.id, text(request, FIELD.domain)).origin_requests += 1;
  const aborted = new AbortController();
  const timer = setTimeout(() => aborted.abort(), HEAD_MS);
  response.once('close', () => aborted.abort());
  const headers = originFields(request);
  let origin: IncomingMessage;
  try {
    origin = await edge.origins.send(zone.spec.origin, {
      ...{ method: 'GET', target: request.url ?? '/', headers, body: null, signal: aborted.signal },
    });
  } catch {
    return fail(response);
  } finally {
    clearTimeout(timer);
  }
  const fields = describe(state, zone, fetch, headers, origin);
  fetch.hasHead = true;
  response.writeHead(origin.statusCode ?? 502, fields);
  pipeline(origin, response, () => undefined);
}

function isOurs({ token }: State, request: IncomingMessage): boolean {
  const [given, own] = [Buffer.from(text(request, FIELD.token)), Buffer.from(token)];
  return given.length === own.length && timingSafeEqual(given, own);
}

function text({ headers }: IncomingMessage, name: string): string {
  return String(headers[name] ?? '');
}

/** The fields sent by the edge, without those added by Varnish. */
function originFields(request: IncomingMessage): HeaderFields {
  const { 'x-forwarded-proto': proto, 'x-forwarded-host': host } = request.headers;
  const fields = withoutInternal(requestFields(request.headers)) as HeaderFields;
  for (const name of ['x-varnish', 'host']) delete fields[name];
  return {
    ...fields,
    'accept-encoding': 'identity',
    'x-forwarded-for': text(request, FIELD.client),
    'x-forwarded-proto': String(proto ?? 'http'),
    'x-forwarded-host': String(host ?? ''),
  };
}

/** The response to Varnish. */
function describe(
  { objectBytesMax }: State,
  zone: Zone,
  fetch: Fetch,
  requestHeaders: HeaderFields,
  origin: IncomingMessage,
): HeaderFields {
  const status = origin.statusCode ?? 502;
  const fieldsOf = status === 304 ? renewedFields : responseFields;
  const fields = withoutInternal(fieldsOf(origin.headers)) as HeaderFields;
  const tagList = tagsOf(origin.headers);
  const tags = tagList.join(',');
  const visible = withoutCacheFields(fields);
  if (fields.via !== undefined) visible[FIELD.via] = [fields.via].flat().join(', ');
  delete visible.via;
  // Varnish rejects a full response with this field.
  if (status !== 206 && status !== 416) delete visible['content-range'];
  const isRenewal = status === 304;
  const { key } = fetch;
  const isLarge = Number(origin.headers['content-length'] ?? 0) > objectBytesMax;
  const isStored = !fetch.isCancelled && !isLarge && isEndKnown(origin);
  const isKept =
    isStored && key.length <= KEY_LENGTH_MAX && tags.length <= TAGS_LENGTH_MAX && tagList.length <= TAGS_MAX;
  if (!isKept) return notKept(visible, isRenewal);
  // For fields missing in a 304, Varnish keeps those of the stored object.
  if (isRenewal && origin.headers['set-cookie'] === undefined && !saysLife(origin.headers)) return visible;
  const decision = decide(
    { key, request: requestHeaders as IncomingHttpHeaders, status: isRenewal ? 200 : status, response: origin.headers },
    zone.spec.cache,
  );
  if (!decision.isStorable) return notKept(visible, isRenewal);
  const size = sizeOf(origin);
  // A 304 says nothing about fields that it lacks: Varnish decides with those of the stored object.
  const vary = isRenewal ? namedFields(origin.headers.vary) : decision.vary;
  const isSilent = vary.includes('origin') && !namedFields(visible.vary).includes('origin');
  const isPacked = !isRenewal && zone.spec.compression && isCompressible({ status, headers: fields, size });
  delete visible.vary;
  const storing = storingFields({ ...decision, vary }, fetch, tags);
  return {
    ...visible,
    ...storing,
    ...(isSilent && { [FIELD.forOrigin]: '1' }),
    ...(isPacked && { [FIELD.gzip]: '1' }),
  };
}

/** Storage instructions for Varnish. */
function storingFields(decision: Decision, { zone_id, key }: Fetch, tags: string): HeaderFields {
  const vary = decision.vary.join(', ');
  const freshSeconds = (decision.fresh_until - Date.now()) / 1000;
  return {
    ...(vary && { vary }),
    age: String(Math.max(0, Math.floor((Date.now() - decision.born_at) / 1000))),
    [FIELD.ttl]: freshSeconds > 0 ? String(freshSeconds) : TTL_MIN,
    // For a response that arrives stale, part of these times has already elapsed.
    [FIELD.whileRevalidate]: `${Math.max(0, decision.stale_while_revalidate + Math.min(0, freshSeconds))}s`,
    [FIELD.ifError]: `${Math.max(0, decision.stale_if_error + Math.min(0, freshSeconds))}s`,
    ...(decision.is_strict && { [FIELD.strict]: '1' }),
    ...{ [FIELD.zone]: zone_id, [FIELD.key]: key },
    ...(tags && { [FIELD.tags]: tags }),
  };
}

/**
 * A revalidated object that must not be stored is kept, but revalidated on each request. Varnish stores the fields of a
 * 304, so fields for a single visitor are removed.
 */
function notKept(fields: HeaderFields, isRenewal: boolean): HeaderFields {
  if (!isRenewal) return fields;
  const { 'set-cookie': _, ...others } = fields;
  return { ...others, [FIELD.ttl]: TTL_MIN, [FIELD.whileRevalidate]: '0s', [FIELD.ifError]: '0s' };
}

function sizeOf({ headers }: IncomingMessage): number | null {
  return headers['content-length'] === undefined ? null : Number(headers['content-length']);
}

function saysLife(headers: IncomingHttpHeaders): boolean {
  return ['cache-control', 'cdn-cache-control', 'expires'].some((name) => headers[name] !== undefined);
}

function fail(response: ServerResponse): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  response.writeHead(502, { 'content-length': '0', [FIELD.failed]: '1' }).end();
}
