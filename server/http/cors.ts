// Pages of other origins that the operator allows may call the API with a key in `Authorization` (the Fetch standard,
// CORS protocol). Cookies are never allowed along: browsers get no Access-Control-Allow-Credentials.
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';

const PATHS = /^\/(?:v2|graphql)(?:[/?]|$)/i;
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
const REQUEST_HEADERS = [
  ...['Authorization', 'Content-Type', 'Accept', 'X-Svc-Project', 'X-Request-Id', 'Idempotency-Key', 'If-Match'],
  ...['If-None-Match', 'Prefer', 'Dry-Run', 'Last-Event-ID', 'Cache-Control'],
].join(', ');
const RESPONSE_HEADERS = [
  ...['X-Request-Id', 'ETag', 'Location', 'Link', 'Retry-After', 'Allow', 'Idempotent-Replayed', 'Preference-Applied'],
  ...['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'WWW-Authenticate', 'Deprecation', 'Sunset'],
].join(', ');
const PREFLIGHT_SECONDS = 600;

/**
 * Adds what lets a page of an allowed origin read the answer. Answers a preflight of one itself.
 * @returns whether the request is answered
 */
export function answerCors(request: IncomingMessage, response: ServerResponse, allowed: readonly string[]): boolean {
  if (allowed.length === 0 || !PATHS.test(request.url ?? '')) return false;
  const { origin } = request.headers;
  const granted = origin !== undefined && allowed.includes(origin) ? { 'Access-Control-Allow-Origin': origin } : {};
  const isGranted = 'Access-Control-Allow-Origin' in granted;
  if (isGranted && request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined) {
    response.writeHead(204, {
      ...granted,
      'Access-Control-Allow-Methods': METHODS,
      'Access-Control-Allow-Headers': REQUEST_HEADERS,
      'Access-Control-Max-Age': String(PREFLIGHT_SECONDS),
      Vary: 'Origin',
    });
    response.end();
    return true;
  }
  addHeaders(response, isGranted ? { ...granted, 'Access-Control-Expose-Headers': RESPONSE_HEADERS } : {});
  return false;
}

// Added when the head is written: handlers write all headers at once, and may set Vary themselves.
function addHeaders(response: ServerResponse, more: OutgoingHttpHeaders): void {
  const writeHead = response.writeHead.bind(response) as (
    status: number,
    headers: OutgoingHttpHeaders,
  ) => ServerResponse;
  response.writeHead = ((status: number, ...rest: unknown[]): ServerResponse => {
    const given = (rest.find((one) => typeof one === 'object' && one !== null) ?? {}) as OutgoingHttpHeaders;
    const vary = given.Vary ?? response.getHeader('Vary');
    return writeHead(status, { ...given, ...more, Vary: vary === undefined ? 'Origin' : `${String(vary)}, Origin` });
  }) as ServerResponse['writeHead'];
}
