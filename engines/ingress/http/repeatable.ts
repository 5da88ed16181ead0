// Which requests may be sent again when it is unknown whether they arrived, and on which connections they go.
import type { takeConnection } from '../upstream';
import type { ProxiedRequest } from './proxied_request';

const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);
/** Of services: the second answer to a DELETE would be that there is nothing. */
const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);

/** RFC 9110 section 9.2.2. */
export function isRepeatable({ body, site, request }: ProxiedRequest): boolean {
  return body === 'none' && (site.service === null ? IDEMPOTENT : SAFE).has(request.method as string);
}

/** A service says on a new connection that it will serve it: what may not be sent twice gets one. */
export function connectionKindOf(proxied: ProxiedRequest): Parameters<typeof takeConnection>[3] {
  if (proxied.upgrade !== null || proxied.attempts > 0) return 'new';
  if (isRepeatable(proxied)) return 'repeatable';
  return proxied.site.service === null ? 'once' : 'new';
}
