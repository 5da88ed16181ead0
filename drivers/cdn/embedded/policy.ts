// What may be stored and how long it is fresh (RFC 9111), decided by http-cache-semantics. What that library takes
// otherwise is put right before: names of directives are lower-cased, of a repeated max-age the least counts,
// CDN-Cache-Control wins over Cache-Control (RFC 9213), and must-revalidate forbids stale responses.
import CachePolicy from 'http-cache-semantics';
import type { IncomingHttpHeaders } from 'node:http';
import type { CdnCacheRules } from '../../cdn';

export interface Decision {
  policy: CachePolicy;
  isStorable: boolean;
  /** Not kept because the visitor was recognised; another one's may be. */
  isPersonal: boolean;
  /** Seconds that it may be served stale: while it is fetched anew, and while the origin fails. */
  staleWhileRevalidate: number;
  staleIfError: number;
  /** Lower-case names of the header fields that the response depends on. */
  vary: string[];
}

interface Exchange {
  key: string;
  request: IncomingHttpHeaders;
  status: number;
  response: IncomingHttpHeaders;
}

const NOT_FOUND_TTL_SECONDS = 60;
const CACHEABLE = new Set([200, 203, 204, 300, 301, 308, 404, 410]);
const NEGATIVE = new Set([404, 410]);
/** Directives that say whether a shared cache may keep the response of somebody who was recognised. */
const FOR_EVERYBODY = ['public', 's-maxage', 'must-revalidate'];

export function decide({ key, request, status, response }: Exchange, rules: CdnCacheRules): Decision {
  const directives = effectiveDirectives(status, response, rules);
  const vary = varyNames(response.vary);
  const headers: Record<string, string> = { 'cache-control': formatDirectives(directives) };
  for (const name of ['date', 'age', 'etag', 'last-modified', 'vary'] as const)
    if (response[name] !== undefined) headers[name] = String(response[name]);
  if (rules.respect_origin_headers && response.expires !== undefined && !directives.has('max-age'))
    headers.expires = response.expires;
  const policy = new CachePolicy(cacheRequest(key, request), { status, headers }, { shared: true, cacheHeuristic: 0 });
  const isPersonal =
    (request.cookie !== undefined || request.authorization !== undefined) &&
    !FOR_EVERYBODY.some((name) => directives.has(name));
  const isStorable =
    CACHEABLE.has(status) &&
    !vary.includes('*') &&
    response['set-cookie'] === undefined &&
    !isPersonal &&
    policy.storable() &&
    (policy.timeToLive() > 0 || response.etag !== undefined || response['last-modified'] !== undefined);
  const isStrict = ['must-revalidate', 'proxy-revalidate', 's-maxage', 'no-cache'].some((name) => directives.has(name));
  return {
    ...{ policy, isStorable, isPersonal, vary },
    staleWhileRevalidate: isStrict && !directives.has('s-maxage') ? 0 : seconds(directives, 'stale-while-revalidate'),
    staleIfError: isStrict && !directives.has('s-maxage') ? 0 : seconds(directives, 'stale-if-error'),
  };
}

/** Whether the stored response is fresh. Cache-Control of visitors is not read: they can't make the cache ask. */
export function isFresh(policy: CachePolicy, key: string, request: IncomingHttpHeaders): boolean {
  return policy.satisfiesWithoutRevalidation(cacheRequest(key, request));
}

/** The fields of a request that the origin is asked with whether the stored response still holds. */
export function conditionalFields(policy: CachePolicy, key: string, request: IncomingHttpHeaders): IncomingHttpHeaders {
  const headers = policy.revalidationHeaders(cacheRequest(key, request)) as IncomingHttpHeaders;
  return {
    ...(headers['if-none-match'] !== undefined && { 'if-none-match': headers['if-none-match'] }),
    ...(headers['if-modified-since'] !== undefined && { 'if-modified-since': headers['if-modified-since'] }),
  };
}

function cacheRequest(key: string, request: IncomingHttpHeaders): CachePolicy.HttpRequest {
  const headers: Record<string, string> = { host: 'edge' };
  for (const [name, value] of Object.entries(request))
    if (!['host', 'cache-control', 'pragma', 'range', 'if-none-match', 'if-modified-since'].includes(name))
      headers[name] = String(value);
  return { method: 'GET', url: key, headers };
}

type Directives = Map<string, string>;

function effectiveDirectives(status: number, response: IncomingHttpHeaders, rules: CdnCacheRules): Directives {
  const ttl = NEGATIVE.has(status)
    ? Math.min(rules.default_ttl_seconds, NOT_FOUND_TTL_SECONDS)
    : rules.default_ttl_seconds;
  if (!rules.respect_origin_headers) return new Map([['max-age', String(ttl)]]);
  const targeted = response['cdn-cache-control'];
  const directives = parseDirectives(String(targeted ?? response['cache-control'] ?? ''));
  const isExplicit =
    directives.has('max-age') ||
    directives.has('s-maxage') ||
    (targeted === undefined && response.expires !== undefined) ||
    ['no-store', 'no-cache', 'private'].some((name) => directives.has(name));
  if (!isExplicit) directives.set('max-age', String(ttl));
  return directives;
}

function parseDirectives(text: string): Directives {
  const directives: Directives = new Map();
  for (const part of text.match(/[^\s,;=]+(?:\s*=\s*(?:"[^"]*"|[^\s,;]*))?/g) ?? []) {
    const [name = '', value = ''] = part.split('=', 2).map((word) => word.trim().replaceAll('"', ''));
    const key = name.toLowerCase();
    const known = directives.get(key);
    // Of two the shorter life; what is no number is stale at once (RFC 9111 §4.2.1).
    const isAge = key === 'max-age' || key === 's-maxage';
    const clean = isAge && !/^\d{1,10}$/.test(value) ? '0' : value;
    directives.set(key, isAge && known !== undefined ? String(Math.min(Number(known), Number(clean))) : clean);
  }
  return directives;
}

function formatDirectives(directives: Directives): string {
  return [...directives].map(([name, value]) => (value === '' ? name : `${name}=${value}`)).join(', ');
}

function seconds(directives: Directives, name: string): number {
  const value = directives.get(name) ?? '';
  return /^\d{1,10}$/.test(value) ? Number(value) : 0;
}

function varyNames(vary: string | undefined): string[] {
  return (vary ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name && name !== 'accept-encoding');
}
