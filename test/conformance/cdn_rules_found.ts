// Which stored response is chosen, validated and cut (RFC 9111 §4, RFC 9110 §13 and §14).
import { answer, cc, ETAG, notKept, rule, type OriginAnswer, type Rule } from './cdn_rule';

const one = { origin: 'https://one.example.com' };
const two = { origin: 'https://two.example.com' };
const allow = (origin: string, more: Record<string, string> = {}): OriginAnswer =>
  cc('max-age=60', { 'access-control-allow-origin': origin, ...more });
const allowed = (text: string | null): { fields: Record<string, string | null> } => ({
  fields: { 'access-control-allow-origin': text },
});
const FETCH = 'Fetch, CORS protocol and HTTP caches';

const ORIGIN_RULES: Rule[] = [
  rule(FETCH, 'Vary: Origin counts for visitors without Origin too', cc('max-age=60', { vary: 'Origin' }), [
    { asked: 1, body: 1 },
    { asked: 2, body: 2, headers: one },
    { asked: 2, body: 1 },
    { asked: 2, body: 2, headers: one },
  ]),
  rule(
    FETCH,
    'what came without Allow-Origin is not for visitors with Origin',
    [cc('max-age=60'), allow('*')],
    [
      { asked: 1, body: 1, fields: { vary: null } },
      { asked: 2, body: 2, headers: one, ...allowed('*') },
      { asked: 2, body: 2, headers: two, ...allowed('*') },
      { asked: 2 },
    ],
  ),
  rule(
    FETCH,
    'what allows one Origin is for this one, without Vary too, and says so',
    [allow(one.origin), cc('max-age=60'), allow(two.origin)],
    [
      { asked: 1, body: 1, headers: one, fields: { 'access-control-allow-origin': one.origin, vary: 'rigin' } },
      { asked: 2, body: 2, ...allowed(null) },
      { asked: 3, body: 3, headers: two, ...allowed(two.origin) },
      { asked: 3, body: 1, headers: one, fields: { 'access-control-allow-origin': one.origin, vary: 'rigin' } },
    ],
  ),
  rule(FETCH, 'what allows all is one object', allow('*'), [
    { asked: 1, body: 1, headers: one, ...allowed('*') },
    { asked: 1, body: 1, headers: two, ...allowed('*') },
    { asked: 1, body: 1, ...allowed('*') },
  ]),
  rule(
    'Resource Timing standard §4.5',
    'Timing-Allow-Origin for one Origin is for this one',
    [allow('*', { 'timing-allow-origin': one.origin }), allow('*', { 'timing-allow-origin': two.origin })],
    [
      { asked: 1, body: 1, headers: one },
      { asked: 2, body: 2, headers: two, fields: { 'timing-allow-origin': two.origin } },
      { asked: 2, body: 1, headers: one, fields: { 'timing-allow-origin': one.origin } },
    ],
  ),
  rule(
    FETCH,
    'a part and a 304 of what is kept allow as the whole does',
    allow(one.origin, { vary: 'Origin', etag: ETAG, 'access-control-allow-credentials': 'true' }),
    [
      { asked: 1, body: 1, headers: one },
      { asked: 1, status: 206, headers: { ...one, range: 'bytes=0-1' }, ...allowed(one.origin) },
      { asked: 1, status: 304, headers: { ...one, 'if-none-match': ETAG }, ...allowed(one.origin) },
      { asked: 1, status: 200, method: 'HEAD', headers: one, ...allowed(one.origin) },
    ],
  ),
  rule(
    FETCH,
    'a 404 is for one Origin too',
    [allow(one.origin, {}), allow(two.origin)].map((each) => ({ ...each, status: 404 })),
    [
      { asked: 1, status: 404, headers: one, ...allowed(one.origin) },
      { asked: 2, status: 404, headers: two, ...allowed(two.origin) },
    ],
  ),
];

export const VARYING_RULES: Rule[] = [
  rule('RFC 9111 §4.1', 'one object for each value of a field of Vary', cc('max-age=60', { vary: 'X-Color' }), [
    { asked: 1, body: 1, headers: { 'x-color': 'red' } },
    { asked: 2, body: 2, headers: { 'x-color': 'blue' } },
    { asked: 2, body: 1, headers: { 'x-color': 'red' } },
    { asked: 3, body: 3 },
    { asked: 3, body: 3 },
  ]),
  rule('RFC 9111 §4.1', 'all fields of Vary count', cc('max-age=60', { vary: 'X-Color, x-size' }), [
    { asked: 1, body: 1, headers: { 'x-color': 'red', 'x-size': '1' } },
    { asked: 2, body: 2, headers: { 'x-color': 'red', 'x-size': '2' } },
    { asked: 2, body: 1, headers: { 'x-color': 'red', 'x-size': '1' } },
  ]),
  rule('RFC 9111 §4.1', 'Vary: * is never kept', cc('max-age=60', { vary: '*' }), notKept),
  rule('RFC 9111 §4.1', 'a * among others is never kept', cc('max-age=60', { vary: 'x-color, *' }), notKept),
  ...ORIGIN_RULES,
  rule('RFC 9111 §2', 'scheme is a part of the address', cc('max-age=60'), [
    { asked: 1, body: 1, scheme: 'http' },
    { asked: 2, body: 2, scheme: 'https' },
    { asked: 2, body: 1, scheme: 'http' },
  ]),
  rule('RFC 9111 §2', 'the query string is a part of the address', cc('max-age=60'), [
    { asked: 1, body: 1, query: '?a=1' },
    { asked: 2, body: 2, query: '?a=2' },
    { asked: 2, body: 1, query: '?a=1' },
  ]),
  {
    ...rule('13.1', 'query_string ignore leaves it out', cc('max-age=60'), [
      { asked: 1, body: 1, query: '?a=1' },
      { asked: 1, body: 1, query: '?a=2' },
    ]),
    cache: { query_string: 'ignore' },
  },
];

const LONG_AGO = 'Mon, 01 Jan 2024 00:00:00 GMT';
export const VALIDATION_RULES: Rule[] = [
  rule(
    'RFC 9111 §4.3',
    'a stale response with an entity tag is validated',
    { ...cc('max-age=0', { etag: ETAG }), validates: true },
    [
      { asked: 1, body: 1 },
      { asked: 2, body: 1, status: 200, fields: { 'cache-status': 'fwd-status=304' } },
    ],
  ),
  rule(
    'RFC 9111 §4.3',
    'a stale response with a date is validated',
    { ...cc('max-age=0', { 'last-modified': LONG_AGO }), validates: true },
    [
      { asked: 1, body: 1 },
      { asked: 2, body: 1, status: 200 },
    ],
  ),
  rule(
    'RFC 9111 §5.2.2.4',
    'no-cache with a validator is validated each time',
    { ...cc('no-cache', { etag: ETAG }), validates: true },
    [
      { asked: 1, body: 1 },
      { asked: 2, body: 1 },
      { asked: 3, body: 1 },
    ],
  ),
  rule(
    'RFC 9111 §4.3.4',
    'a 304 makes the response fresh and brings its fields',
    [
      cc('max-age=0', { etag: ETAG, 'x-version': 'old', 'x-stays': 'yes' }),
      { ...cc('max-age=60', { etag: ETAG, 'x-version': 'new' }), validates: true },
    ],
    [
      { asked: 1, body: 1 },
      { asked: 2, body: 1 },
      { asked: 2, body: 1, fields: { 'x-version': 'new', 'x-stays': 'yes' } },
    ],
  ),
  rule(
    'RFC 9111 §3.2',
    'a 304 does not change what describes the body',
    [
      cc('max-age=0', { etag: ETAG, 'last-modified': LONG_AGO, 'content-md5': 'old' }),
      {
        ...cc('max-age=60', { etag: '"v2"', 'last-modified': LONG_AGO, 'content-md5': 'new', 'content-range': 'x' }),
        validates: true,
      },
    ],
    [
      { asked: 1, body: 1 },
      { asked: 2, body: 1, fields: { etag: ETAG, 'content-md5': 'old', 'content-range': null } },
      { asked: 2, body: 1, fields: { etag: ETAG, 'content-md5': 'old', 'content-range': null } },
    ],
  ),
  rule(
    'RFC 9111 §4.3.3',
    'another response replaces a stale one',
    [cc('max-age=0', { etag: ETAG }), cc('max-age=60', { etag: '"v2"' })],
    [
      { asked: 1, body: 1 },
      { asked: 2, body: 2 },
      { asked: 2, body: 2 },
    ],
  ),
  rule('RFC 9110 §13.1.2', 'If-None-Match is answered 304 from the cache', cc('max-age=60', { etag: ETAG }), [
    { asked: 1, body: 1 },
    { asked: 1, status: 304, body: '', headers: { 'if-none-match': '"x", "v1"' }, fields: { etag: ETAG } },
    { asked: 1, status: 200, body: 1, headers: { 'if-none-match': '"v2"' } },
  ]),
  rule('RFC 9110 §13.1.2', 'entity tags are compared weakly', cc('max-age=60', { etag: ETAG }), [
    { asked: 1, body: 1 },
    { asked: 1, status: 304, body: '', headers: { 'if-none-match': 'W/"v1"' } },
  ]),
  rule(
    'RFC 9110 §13.1.3',
    'If-Modified-Since is answered 304 from the cache',
    cc('max-age=60', { 'last-modified': LONG_AGO }),
    [
      { asked: 1, body: 1 },
      { asked: 1, status: 304, body: '', headers: { 'if-modified-since': LONG_AGO } },
    ],
  ),
  rule(
    'RFC 9110 §13.2.2',
    'If-None-Match counts before If-Modified-Since',
    cc('max-age=60', { etag: ETAG, 'last-modified': LONG_AGO }),
    [
      { asked: 1, body: 1 },
      { asked: 1, status: 200, body: 1, headers: { 'if-none-match': '"v2"', 'if-modified-since': LONG_AGO } },
    ],
  ),
  rule(
    'RFC 9111 §4.3.1',
    'conditions of a visitor do not reach the origin: the whole is kept',
    { ...cc('max-age=60', { etag: ETAG }), validates: true },
    [
      { asked: 1, status: 304, body: '', headers: { 'if-none-match': ETAG } },
      { asked: 1, status: 200, body: 1 },
    ],
  ),
];

export const PARTS_RULES: Rule[] = [
  rule(
    'RFC 9111 §3.3',
    'a range is answered from the whole',
    answer({ 'cache-control': 'max-age=60' }, { body: '0123456789' }),
    [
      { asked: 1 },
      {
        asked: 1,
        status: 206,
        body: '234',
        headers: { range: 'bytes=2-4' },
        fields: { 'content-range': 'bytes 2-4/10' },
      },
      { asked: 1, status: 206, body: '89', headers: { range: 'bytes=-2' } },
      { asked: 1, status: 206, body: '789', headers: { range: 'bytes=7-' } },
      { asked: 1, status: 416, headers: { range: 'bytes=20-30' }, fields: { 'content-range': '*/10' } },
    ],
  ),
  rule(
    'RFC 9111 §3.3',
    'a range of what is not there yet fetches the whole once',
    answer({ 'cache-control': 'max-age=60' }, { body: '0123456789' }),
    [
      { asked: 1, status: 206, body: '01', headers: { range: 'bytes=0-1' } },
      { asked: 1, status: 200, body: '0123456789' },
    ],
  ),
  rule(
    'RFC 9110 §13.1.5',
    'If-Range that does not hold sends the whole',
    answer({ 'cache-control': 'max-age=60', etag: ETAG }, { body: '0123456789' }),
    [
      { asked: 1 },
      { asked: 1, status: 200, body: '0123456789', headers: { range: 'bytes=0-1', 'if-range': '"v2"' } },
      { asked: 1, status: 206, body: '01', headers: { range: 'bytes=0-1', 'if-range': ETAG } },
    ],
  ),
  rule(
    'RFC 9110 §9.3.2',
    'HEAD is answered from the object of GET',
    answer({ 'cache-control': 'max-age=60' }, { body: '0123456789' }),
    [{ asked: 1 }, { asked: 1, method: 'HEAD', body: '', fields: { 'content-length': '10' } }],
  ),
  rule(
    'RFC 9110 §9.3.2',
    'HEAD fetches the object of GET',
    answer({ 'cache-control': 'max-age=60' }, { body: '0123456789' }),
    [
      { asked: 1, method: 'HEAD', body: '', fields: { 'content-length': '10' } },
      { asked: 1, body: '0123456789' },
    ],
  ),
];
