// Whether a request identifies its visitor, so that the response may be for nobody else.
import type { IncomingHttpHeaders } from 'node:http';

export type Recognition = 'anonymous' | 'possible' | 'identified';

/** Fields that browsers, programs and proxies send for everybody. */
const ORDINARY = new Set([
  ...[
    'accept',
    'accept-charset',
    'accept-encoding',
    'accept-language',
    'accept-datetime',
    'access-control-request-headers',
  ],
  ...['access-control-request-method', 'alt-used', 'b3', 'baggage', 'cache-control', 'cdn-loop', 'connection', 'date'],
  ...[
    'content-length',
    'content-type',
    'device-memory',
    'dnt',
    'downlink',
    'dpr',
    'early-data',
    'ect',
    'expect',
    'host',
  ],
  ...[
    'keep-alive',
    'max-forwards',
    'origin',
    'pragma',
    'prefer',
    'priority',
    'purpose',
    'referer',
    'rtt',
    'save-data',
    'te',
  ],
  ...[
    'traceparent',
    'tracestate',
    'upgrade',
    'upgrade-insecure-requests',
    'user-agent',
    'via',
    'viewport-width',
    'width',
  ],
  ...[
    'want-content-digest',
    'want-digest',
    'want-repr-digest',
    'available-dictionary',
    'cf-connecting-ip',
    'cf-ipcountry',
  ],
  ...['cf-ray', 'cf-visitor', 'x-amz-cf-id', 'x-amzn-trace-id', 'x-client-data', 'x-cloud-trace-context', 'x-moz'],
  ...['x-correlation-id', 'x-purpose', 'x-request-id', 'x-requested-with', 'x-varnish', 'x-wap-profile'],
]);
const ORDINARY_PREFIX = /^(?:sec-(?!token)|if-|range$|x-forwarded-|x-b3-|x-platform-|cloudfront-|fastly-)/;
/** Names of people and of what they prove themselves with. */
const CREDENTIALS = [
  /^(?:cookie2?|from|dpop|x-ms-client-principal.*)$/,
  /auth|token|secret|passw|api-?key|session|jwt|bearer|credential|assertion|signature|oidc|saml|ticket/,
  /(?:^|[-_])(?:key|sid|user|userid|email|account|identity|login|cert|tenant|member|customer|pin|otp|sso)(?:[-_]|$)/,
];

/**
 * `identified`: by a cookie or by a field whose name says so. `possible`: by a field that is none of the known ones and
 * that the response does not name in Vary.
 */
export function recognitionOf(request: IncomingHttpHeaders, vary: readonly string[]): Recognition {
  let found: Recognition = 'anonymous';
  for (const [name, value] of Object.entries(request)) {
    if (value === undefined || ORDINARY.has(name) || ORDINARY_PREFIX.test(name)) continue;
    if (CREDENTIALS.some((form) => form.test(name))) return 'identified';
    if (!vary.includes(name)) found = 'possible';
  }
  return found;
}
