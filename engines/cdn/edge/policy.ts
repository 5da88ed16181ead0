// Storability and freshness (RFC 9111), decided by http-cache-semantics. Its deviations are corrected on the input: it
// gets the effective directives only (RFC 9213), dates only in HTTP formats, and a numeric age. must-revalidate forbids
// stale responses.
import CachePolicy from 'http-cache-semantics';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { parseHttpDate } from '../../../core/protocols/http_date';
import type { CdnCacheRules } from '../cdn';
import { formatDirectives, parseAge, parseCacheControl, parseTargeted, secondsOf, type Directives } from './directives';
import { recognitionOf, type Recognition } from './recognition';
import { varyingFields } from './vary';

export interface Decision extends Freshness {
  isStorable: boolean;
  /** Not stored because this visitor was identified; the response to another visitor may be. */
  isPersonal: boolean;
  /** Lower-case names of the request header fields that the response varies on. */
  vary: string[];
}

/** Freshness of a stored response. */
export interface Freshness {
  /** The time at which the age was 0, in ms since the epoch. */
  born_at: number;
  fresh_until: number;
  /** Seconds during which the response may be served stale: while it is revalidated, and while the origin fails. */
  stale_while_revalidate: number;
  stale_if_error: number;
  /** The origin forbids stale responses, regardless of the settings of the zone. */
  is_strict: boolean;
}

interface Exchange {
  key: string;
  request: IncomingHttpHeaders;
  status: number;
  response: IncomingHttpHeaders;
}

const CLOCK_TOLERANCE_SECONDS = 60;
const NOT_FOUND_TTL_SECONDS = 60;
const CACHEABLE = new Set([200, 203, 204, 300, 301, 308, 404, 410]);
/** Stored only with an explicit lifetime in the response. */
const CACHEABLE_IF_EXPLICIT = new Set([302, 307, 405, 414, 501]);
const NEGATIVE = new Set([404, 410]);
/** Directives that allow a shared cache to store the response to an authenticated request. */
const SHARED_DIRECTIVES = ['public', 's-maxage', 'must-revalidate'];
/** Of S3: the visitor has sent the key that opens the object. */
const OPENED = 'x-amz-server-side-encryption-customer-algorithm';
/** Streams that continue for as long as the client is connected: each client needs its own. */
const LIVE = /^(?:text\/event-stream|multipart\/x-mixed-replace)/i;

export function decide({ key, request, status, response }: Exchange, rules: CdnCacheRules): Decision {
  const { directives, isExplicit } = effectiveDirectives(status, response, rules);
  const vary = varyingFields(response);
  const isExpiring = rules.respect_origin_headers && !directives.has('max-age');
  const headers = libraryHeaders(response, directives, isExpiring);
  const policy = new CachePolicy(cacheRequest(key, request), { status, headers }, { shared: true, cacheHeuristic: 0 });
  const isPersonal = isFor(recognitionOf(request, vary), isExplicit, directives);
  const isStorable =
    (CACHEABLE.has(status) || (CACHEABLE_IF_EXPLICIT.has(status) && isExplicit)) &&
    !vary.includes('*') &&
    response['set-cookie'] === undefined &&
    response[OPENED] === undefined &&
    !isPersonal &&
    !LIVE.test(response['content-type'] ?? '') &&
    policy.storable() &&
    (policy.timeToLive() > 0 || response.etag !== undefined || response['last-modified'] !== undefined);
  return { isStorable, isPersonal, vary, ...freshnessOf(policy, directives, response.date) };
}

/** Input of the library, which parses dates with `Date.parse`, and takes a numeric prefix for the number. */
function libraryHeaders(
  response: IncomingHttpHeaders,
  directives: Directives,
  isExpiring: boolean,
): Record<string, string> {
  const { date, age, expires, vary } = response;
  const sentAt = parseHttpDate(date);
  const expiresAt = parseHttpDate(expires);
  return {
    'cache-control': formatDirectives(directives),
    ...(!Number.isNaN(sentAt) && { date: new Date(sentAt).toUTCString() }),
    ...(age !== undefined && { age: String(parseAge(age)) }),
    ...(vary !== undefined && { vary }),
    // An invalid date is in the past (RFC 9111 §5.3).
    ...(isExpiring &&
      expires !== undefined && { expires: Number.isNaN(expiresAt) ? '0' : new Date(expiresAt).toUTCString() }),
  };
}

/** Whether the response may be for this visitor alone, whatever the extension of its path. */
function isFor(recognition: Recognition, isExplicit: boolean, directives: Directives): boolean {
  if (recognition === 'anonymous' || !isExplicit) return recognition !== 'anonymous';
  return recognition === 'identified' && !SHARED_DIRECTIVES.some((name) => directives.has(name));
}

/** A body delimited by the end of the connection may be truncated: this cannot be detected. */
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
    stale_while_revalidate: is_strict ? 0 : secondsOf(directives, 'stale-while-revalidate'),
    stale_if_error: is_strict ? 0 : secondsOf(directives, 'stale-if-error'),
    is_strict,
  };
}

/** RFC 9111 §4.2.3. Differences within the clock tolerance count as 0. */
function apparentAge(now: number, date: string | undefined): number {
  const seconds = (now - parseHttpDate(date)) / 1000;
  return seconds > CLOCK_TOLERANCE_SECONDS ? seconds : 0;
}

/** Whether the expired object may be served while the origin fails. */
export function mayServeStale(object: Freshness, { serve_stale }: CdnCacheRules): boolean {
  return !object.is_strict && (serve_stale || staleSeconds(object) <= object.stale_if_error);
}

export function staleSeconds({ fresh_until }: Freshness): number {
  return (Date.now() - fresh_until) / 1000;
}

/** Request fields that revalidate the stored response at the origin. */
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

/** `isExplicit`: the response itself has an explicit lifetime. */
function effectiveDirectives(
  status: number,
  response: IncomingHttpHeaders,
  rules: CdnCacheRules,
): { directives: Directives; isExplicit: boolean } {
  const ttl = NEGATIVE.has(status)
    ? Math.min(rules.default_ttl_seconds, NOT_FOUND_TTL_SECONDS)
    : rules.default_ttl_seconds;
  if (!rules.respect_origin_headers) return { directives: new Map([['max-age', String(ttl)]]), isExplicit: false };
  const targeted = parseTargeted(fieldOf(response, 'cdn-cache-control'));
  const directives = targeted ?? parseCacheControl(response['cache-control']);
  const isExplicit =
    hasExplicitLifetime(directives, targeted === null ? response : {}) ||
    ['no-store', 'no-cache', 'private'].some((name) => directives.has(name));
  if (!isExplicit) directives.set('max-age', String(ttl));
  return { directives, isExplicit };
}

function hasExplicitLifetime(directives: Directives, { expires }: IncomingHttpHeaders): boolean {
  return directives.has('max-age') || directives.has('s-maxage') || expires !== undefined;
}

function fieldOf(response: IncomingHttpHeaders, name: string): string | undefined {
  return response[name] === undefined ? undefined : String(response[name]);
}
