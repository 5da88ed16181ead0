// What may be stored and how long it is fresh (RFC 9111), decided by http-cache-semantics. What that library takes
// otherwise is put right before: names of directives are lower-cased, of a repeated max-age the least counts,
// CDN-Cache-Control wins over Cache-Control (RFC 9213), and must-revalidate forbids stale responses.
import CachePolicy from 'http-cache-semantics';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { CdnCacheRules } from '../../cdn';

export interface Decision extends Freshness {
  isStorable: boolean;
  /** Not kept because the visitor was recognised; another one's may be. */
  isPersonal: boolean;
  /** Lower-case names of the header fields that the response depends on. */
  vary: string[];
}

/** How long a stored response may be used. */
export interface Freshness {
  /** When its age was 0, in ms since the epoch. */
  born_at: number;
  fresh_until: number;
  /** Seconds that it may be served stale: while it is fetched anew, and while the origin fails. */
  stale_while_revalidate: number;
  stale_if_error: number;
  /** The origin forbids stale responses, whatever the zone says. */
  is_strict: boolean;
}

interface Exchange {
  key: string;
  request: IncomingHttpHeaders;
  status: number;
  response: IncomingHttpHeaders;
}

const SECONDS_MAX = 2 ** 31;
const CLOCK_TOLERANCE_SECONDS = 60;
const NOT_FOUND_TTL_SECONDS = 60;
const CACHEABLE = new Set([200, 203, 204, 300, 301, 308, 404, 410]);
/** Kept only where the response itself says how long. */
const CACHEABLE_WHERE_SAID = new Set([302, 307, 405, 414, 501]);
const NEGATIVE = new Set([404, 410]);
/** Directives that say whether a shared cache may keep the response of somebody who was recognised. */
const FOR_EVERYBODY = ['public', 's-maxage', 'must-revalidate'];
/** Fields of requests that show who asks. */
const RECOGNISING = ['cookie', 'authorization', 'x-api-key', 'api-key', 'x-auth-token', 'x-access-token'];
/** Responses that go on for as long as somebody listens: each listener needs one. */
const LIVE = /^(?:text\/event-stream|multipart\/x-mixed-replace)/i;

export function decide({ key, request, status, response }: Exchange, rules: CdnCacheRules): Decision {
  const { directives, isSaid } = effectiveDirectives(status, response, rules);
  const vary = varyNames(response.vary);
  const headers: Record<string, string> = { 'cache-control': formatDirectives(directives) };
  for (const name of ['date', 'age', 'etag', 'last-modified', 'vary'] as const)
    if (response[name] !== undefined) headers[name] = String(response[name]);
  if (rules.respect_origin_headers && response.expires !== undefined && !directives.has('max-age'))
    headers.expires = response.expires;
  const policy = new CachePolicy(cacheRequest(key, request), { status, headers }, { shared: true, cacheHeuristic: 0 });
  // What says nothing of its life is not kept for long on behalf of somebody, whatever its address ends with.
  const isPersonal = isRecognised(request) && !(isSaid && FOR_EVERYBODY.some((name) => directives.has(name)));
  const isStorable =
    (CACHEABLE.has(status) || (CACHEABLE_WHERE_SAID.has(status) && isSaid)) &&
    !vary.includes('*') &&
    response['set-cookie'] === undefined &&
    !isPersonal &&
    !LIVE.test(response['content-type'] ?? '') &&
    policy.storable() &&
    (policy.timeToLive() > 0 || response.etag !== undefined || response['last-modified'] !== undefined);
  return { isStorable, isPersonal, vary, ...freshnessOf(policy, directives, response.date) };
}

function isRecognised(request: IncomingHttpHeaders): boolean {
  return RECOGNISING.some((name) => request[name] !== undefined);
}

/** A body that ends with its connection may have broken off: nobody can tell. */
export function isEndKnown({ statusCode, headers }: Pick<IncomingMessage, 'statusCode' | 'headers'>): boolean {
  const isFramed = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
  return isFramed || statusCode === 204 || statusCode === 304;
}

function freshnessOf(policy: CachePolicy, directives: Directives, date: string | undefined): Freshness {
  const now = Date.now();
  const age = Math.max(policy.age(), apparentAge(now, date));
  const is_strict = ['must-revalidate', 'proxy-revalidate', 'no-cache'].some((name) => directives.has(name));
  return {
    born_at: now - age * 1000,
    fresh_until: now + (policy.maxAge() - age) * 1000,
    stale_while_revalidate: is_strict ? 0 : seconds(directives, 'stale-while-revalidate'),
    stale_if_error: is_strict ? 0 : seconds(directives, 'stale-if-error'),
    is_strict,
  };
}

/** RFC 9111 §4.2.3. Clocks differ: less than the tolerance is none. */
function apparentAge(now: number, date: string | undefined): number {
  const seconds = (now - Date.parse(date ?? '')) / 1000;
  return seconds > CLOCK_TOLERANCE_SECONDS ? seconds : 0;
}

/** Whether the object may be served although the origin should be asked: while it fails. */
export function mayServeStale(object: Freshness, { serve_stale }: CdnCacheRules): boolean {
  return !object.is_strict && (serve_stale || staleSeconds(object) <= object.stale_if_error);
}

export function staleSeconds({ fresh_until }: Freshness): number {
  return (Date.now() - fresh_until) / 1000;
}

/** The fields of a request that the origin is asked with whether the stored response still holds. */
export function conditionalFields(stored: IncomingHttpHeaders): Record<string, string> {
  return {
    ...(stored.etag !== undefined && { 'if-none-match': stored.etag }),
    ...(stored['last-modified'] !== undefined && { 'if-modified-since': stored['last-modified'] }),
  };
}

function cacheRequest(key: string, request: IncomingHttpHeaders): CachePolicy.HttpRequest {
  const headers: Record<string, string> = { host: 'edge' };
  if (request.authorization !== undefined) headers.authorization = request.authorization;
  return { method: 'GET', url: key, headers };
}

type Directives = Map<string, string>;

/** `isSaid`: the response itself says something of its life. */
function effectiveDirectives(
  status: number,
  response: IncomingHttpHeaders,
  rules: CdnCacheRules,
): { directives: Directives; isSaid: boolean } {
  const ttl = NEGATIVE.has(status)
    ? Math.min(rules.default_ttl_seconds, NOT_FOUND_TTL_SECONDS)
    : rules.default_ttl_seconds;
  if (!rules.respect_origin_headers) return { directives: new Map([['max-age', String(ttl)]]), isSaid: false };
  const targeted = response['cdn-cache-control'] || undefined;
  const directives = parseDirectives(String(targeted ?? response['cache-control'] ?? ''));
  const isSaid =
    isExplicit(directives, targeted === undefined ? response : {}) ||
    ['no-store', 'no-cache', 'private'].some((name) => directives.has(name));
  if (!isSaid) directives.set('max-age', String(ttl));
  return { directives, isSaid };
}

function isExplicit(directives: Directives, { expires }: IncomingHttpHeaders): boolean {
  return directives.has('max-age') || directives.has('s-maxage') || expires !== undefined;
}

function parseDirectives(text: string): Directives {
  const directives: Directives = new Map();
  for (const part of text.match(/[^\s,;=]+(?:\s*=\s*(?:"[^"]*"|[^\s,;]*))?/g) ?? []) {
    const [name = '', value = ''] = part.split('=', 2).map((word) => word.trim().replaceAll('"', ''));
    const key = name.toLowerCase();
    const known = directives.get(key);
    // Of two the shorter life; what is no number is stale at once (RFC 9111 §4.2.1).
    const isAge = key === 'max-age' || key === 's-maxage';
    const clean = isAge ? deltaSeconds(value) : value;
    directives.set(key, isAge && known !== undefined ? String(Math.min(Number(known), Number(clean))) : clean);
  }
  return directives;
}

/** What is too large counts as the largest (RFC 9111 §1.2.2). */
function deltaSeconds(value: string): string {
  return /^\d+$/.test(value) ? String(Math.min(Number(value), SECONDS_MAX)) : '0';
}

function formatDirectives(directives: Directives): string {
  return [...directives].map(([name, value]) => (value === '' ? name : `${name}=${value}`)).join(', ');
}

function seconds(directives: Directives, name: string): number {
  const value = directives.get(name) ?? '';
  return Number(deltaSeconds(value));
}

function varyNames(vary: string | undefined): string[] {
  return (vary ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name && name !== 'accept-encoding');
}
