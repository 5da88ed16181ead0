// What a response depends on. Many origins send CORS fields only in answer to Origin, and name it in Vary only then or
// never: the first visitor would decide what all others get (Fetch standard, CORS protocol and HTTP caches).
import type { IncomingHttpHeaders } from 'node:http';

const FOR_ORIGINS = ['access-control-allow-origin', 'timing-allow-origin'];

/** Lower-case names of the request header fields that a stored response is for. */
export function varyingFields(response: IncomingHttpHeaders): string[] {
  const names = namedFields(response.vary);
  // Without Access-Control-Allow-Origin it may be that the request had no Origin, or one that is not allowed.
  const isForAll = response['access-control-allow-origin'] === '*' && !allowsOrigin(response);
  return isForAll || names.includes('origin') ? names : [...names, 'origin'];
}

/** Whether a response is for one Origin and does not say so, which caches of visitors need to know. */
export function lacksOrigin(response: IncomingHttpHeaders): boolean {
  const names = namedFields(response.vary);
  return allowsOrigin(response) && !names.includes('origin') && !names.includes('*');
}

/** Whether fields of a response name the origin that it is for. */
export function allowsOrigin(response: IncomingHttpHeaders): boolean {
  return FOR_ORIGINS.some((name) => response[name] !== undefined && response[name] !== '*');
}

/** Lower-case names in Vary; Accept-Encoding is the matter of the cache. */
function namedFields(vary: string | string[] | undefined): string[] {
  return [vary ?? []]
    .flat()
    .join(',')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name && name !== 'accept-encoding');
}
