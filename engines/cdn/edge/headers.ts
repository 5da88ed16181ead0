// Header fields on their way through the cache.
import type { IncomingHttpHeaders } from 'node:http';
import { HOP_BY_HOP } from '../../../core/protocols/hop_by_hop';
import { EDGE_FIELD } from '../cdn';

export type HeaderFields = Record<string, string | string[]>;

const DROPPED = new Set([...HOP_BY_HOP, 'proxy-authenticate', 'proxy-authorization', 'trailer']);
/** Not part of the key of an object, but known to change what some origins answer: a way to poison a cache. */
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
/** For caches, not for visitors. */
const OF_CACHES = new Set(['surrogate-key', 'surrogate-control', 'cache-tag', 'cdn-cache-control']);

/** The fields of a request as the origin gets them. */
export function requestFields(headers: IncomingHttpHeaders): HeaderFields {
  return pick(headers, (name) => !isUnkeyed(name) && name !== 'expect');
}

/** Some origins read `_` as `-`. */
function isUnkeyed(name: string): boolean {
  const plain = name.includes('_') ? name.replaceAll('_', '-') : name;
  return plain.startsWith(UNKEYED_PREFIX) || UNKEYED.has(plain);
}

/** The fields of a response as visitors get them. */
export function responseFields(headers: IncomingHttpHeaders): HeaderFields {
  return pick(headers, () => true);
}

/** Of the stored body, which a 304 confirms: they stay what they are (RFC 9111 §3.2). */
const OF_BODY = ['content-encoding', 'content-length', 'content-md5', 'content-range', 'etag'];

/** The fields of a 304 that the stored response takes over. */
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

/** Of what has more, some would be left out of a purge: it is not kept. */
export const TAGS_MAX = 1000;

/** Words of `Surrogate-Key` and `Cache-Tag`. */
export function tagsOf(headers: IncomingHttpHeaders): string[] {
  const words = [headers['surrogate-key'], headers['cache-tag']]
    .flat()
    .flatMap((text) => String(text ?? '').split(/[\s,]+/));
  return [...new Set(words.filter(Boolean))];
}
