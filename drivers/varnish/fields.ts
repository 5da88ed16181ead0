// Header fields between the edge, Varnish and the gateway to the origins. Nobody else may send or see them.

/** Origins and visitors can't use these names. */
export const INTERNAL = 'x-platform-cdn-';

export const FIELD = {
  /** Shows that the request comes from this installation. */
  token: `${INTERNAL}token`,
  zone: `${INTERNAL}zone`,
  domain: `${INTERNAL}domain`,
  site: `${INTERNAL}site`,
  key: `${INTERNAL}key`,
  /** Address of the visitor: Varnish appends its own view to X-Forwarded-For. */
  client: `${INTERNAL}client`,
  /** The zone serves what is stale while its origin fails. */
  serveStale: `${INTERNAL}serve-stale`,
  /** Of a response: seconds that it stays fresh; absent: it is not kept. */
  ttl: `${INTERNAL}ttl`,
  whileRevalidate: `${INTERNAL}swr`,
  ifError: `${INTERNAL}sie`,
  strict: `${INTERNAL}strict`,
  tags: `${INTERNAL}tags`,
  gzip: `${INTERNAL}gzip`,
  via: `${INTERNAL}via`,
  failed: `${INTERNAL}failed`,
  /** Of an answer of Varnish: how it came about. */
  state: `${INTERNAL}state`,
  /** Of a request inside Varnish: whether a stale object may replace a failure, and whether it does. */
  staleAllowed: `${INTERNAL}stale-allowed`,
  staleChosen: `${INTERNAL}stale-chosen`,
} as const;

export function withoutInternal<T>(fields: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !name.startsWith(INTERNAL)));
}
