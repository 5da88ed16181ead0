// Internal header fields between the edge, Varnish and the gateway. They are removed from all other requests and
// responses.

/** Prefix not available to origins and visitors. */
export const INTERNAL = 'x-platform-cdn-';

export const FIELD = {
  /** Proves that the request comes from this installation. */
  token: `${INTERNAL}token`,
  zone: `${INTERNAL}zone`,
  domain: `${INTERNAL}domain`,
  site: `${INTERNAL}site`,
  key: `${INTERNAL}key`,
  /** Address of the visitor: Varnish appends its own peer to X-Forwarded-For. */
  client: `${INTERNAL}client`,
  /** The zone serves stale objects while its origin fails. */
  serveStale: `${INTERNAL}serve-stale`,
  /** In a response: freshness in seconds; absent: not stored. */
  ttl: `${INTERNAL}ttl`,
  whileRevalidate: `${INTERNAL}swr`,
  ifError: `${INTERNAL}sie`,
  strict: `${INTERNAL}strict`,
  tags: `${INTERNAL}tags`,
  gzip: `${INTERNAL}gzip`,
  via: `${INTERNAL}via`,
  /** In a response: it is stored for one Origin, and visitors are not told. */
  forOrigin: `${INTERNAL}for-origin`,
  failed: `${INTERNAL}failed`,
  /** In a response of Varnish: cache status. */
  state: `${INTERNAL}state`,
  /** In a request inside Varnish: whether a stale object may replace a failure, and whether it does. */
  staleAllowed: `${INTERNAL}stale-allowed`,
  staleChosen: `${INTERNAL}stale-chosen`,
} as const;

export function withoutInternal<T>(fields: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !name.startsWith(INTERNAL)));
}
