// Header fields forwarded by the cache.
import type { IncomingHttpHeaders } from 'node:http';
import { HOP_BY_HOP } from '../../../core/protocols/hop_by_hop';
import { EDGE_FIELD } from '../cdn';
import { lacksOrigin } from './vary';

export type HeaderFields = Record<string, string | string[]>;

const DROPPED = new Set([...HOP_BY_HOP, 'proxy-authenticate', 'proxy-authorization', 'trailer']);
/** Not part of the cache key, but known to change the responses of some origins: a vector for cache poisoning. */
const UNKEYED = new Set([
  'forwarded',
  'front-end-https',
  'proxy',
  'x-cluster-client-ip',
  'x-host',
  'x-http-host-override',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  EDGE_FIELD,
  'x-original-host',
  'x-original-uri',
  'x-original-url',
  'x-real-ip',
  'x-rewrite-url',
  'true-client-ip',
  'client-ip',
  'x-rewrite-uri',
  'x-url-scheme',
]);
const UNKEYED_PREFIX = 'x-forwarded-';
/** Fields addressed to caches; visitors do not get them. */
const OF_CACHES = new Set(['surrogate-key', 'surrogate-control', 'cache-tag', 'cdn-cache-control']);

/** Request fields forwarded to the origin. */
export function requestFields(headers: IncomingHttpHeaders): HeaderFields {
  return pick(headers, (name) => !isUnkeyed(name) && name !== 'expect');
}

/** Some origins treat `_` as `-`. */
function isUnkeyed(name: string): boolean {
  const plain = name.includes('_') ? name.replaceAll('_', '-') : name;
  return plain.startsWith(UNKEYED_PREFIX) || UNKEYED.has(plain);
}

/** Response fields forwarded to visitors. */
export function responseFields(headers: IncomingHttpHeaders): HeaderFields {
  const fields = pick(headers, () => true);
  if (lacksOrigin(headers)) fields.vary = [fields.vary ?? []].flat().concat('Origin').join(', ');
  return fields;
}

/** Fields of the stored body, which a 304 confirms: they keep their values (RFC 9111 §3.2). */
const OF_BODY = ['content-encoding', 'content-length', 'content-md5', 'content-range', 'etag'];

/** Fields of a 304 that update the stored response. */
export function renewedFields(headers: IncomingHttpHeaders): HeaderFields {
  return pick(headers, (name) => !OF_BODY.includes(name));
}

export function withoutCacheFields(fields: HeaderFields): HeaderFields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !OF_CACHES.has(name)));
}

function pick(headers: IncomingHttpHeaders, keeps: (name: string) => boolean): HeaderFields {
  const named = new Set(
    String(headers.connection ?? '')
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  );
  const fields: HeaderFields = {};
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !DROPPED.has(name) && !named.has(name) && keeps(name)) fields[name] = value;
  return fields;
}

/** A response with more tags is not stored: a purge by tag would miss some of them. */
export const TAGS_MAX = 1000;

/** Tags in `Surrogate-Key` and `Cache-Tag`. */
export function tagsOf(headers: IncomingHttpHeaders): string[] {
  const tags = [headers['surrogate-key'], headers['cache-tag']]
    .flat()
    .flatMap((text) => String(text ?? '').split(/[\s,]+/));
  return [...new Set(tags.filter(Boolean))];
}
