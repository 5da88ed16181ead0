// What is kept, and how long (RFC 9111 §3 and §4.2, RFC 9213).
import { answer, cc, date, DAY_MS, kept, notKept, rule, type Rule } from './cdn_rule';

export const FRESHNESS_RULES: Rule[] = [
  rule('RFC 9111 §4.2.1', 'max-age keeps a response', cc('max-age=60'), kept),
  rule('RFC 9111 §4.2.1', 's-maxage counts before max-age', cc('max-age=0, s-maxage=60'), kept),
  rule('RFC 9111 §4.2.1', 's-maxage=0 counts before max-age', cc('max-age=60, s-maxage=0'), notKept),
  rule('RFC 9111 §5.2', 'names of directives have no case', cc('MAX-AGE=60'), kept),
  rule('RFC 9111 §5.2.2.7', '`Private` in capitals is private', cc('Private, max-age=60'), notKept),
  rule('RFC 9111 §5.2.2.5', '`No-Store` in capitals is not stored', cc('No-Store, max-age=60'), notKept),
  rule(
    'RFC 9111 §5.2.2.7',
    'private with a list of fields is not kept either',
    cc('private="x-a", max-age=60'),
    notKept,
  ),
  rule('RFC 9111 §5.2.2.5', 'no-store is not stored', cc('no-store, max-age=60'), notKept),
  rule('RFC 9111 §5.2.2.4', 'no-cache without a validator is asked for again', cc('no-cache, max-age=60'), notKept),
  rule('RFC 9111 §4.2.1', 'of two max-age the lesser counts', cc('max-age=60, max-age=0'), notKept),
  rule('RFC 9111 §4.2.1', 'a max-age that is no number is stale', cc('max-age=abc'), notKept),
  rule('RFC 9111 §4.2.1', 'a negative max-age is stale', cc('max-age=-1'), notKept),
  rule('RFC 9111 §1.2.2', 'a max-age beyond 2^31 is long', cc('max-age=99999999999'), kept),
  rule('RFC 9111 §5.2', 'a quoted max-age is read', cc('max-age="60"'), kept),
  rule('RFC 9111 §5.2.3', 'directives that nobody knows do no harm', cc('immutable, x-new=1, max-age=60'), kept),
  rule(
    'RFC 9111 §4.2.1',
    'two Cache-Control fields count as one',
    answer({ 'cache-control': ['max-age=60', 'no-store'] }),
    notKept,
  ),
  rule('RFC 9111 §5.3', 'Expires keeps a response', answer({ expires: date(DAY_MS), date: date(0) }), kept),
  rule(
    'RFC 9111 §5.3',
    'max-age counts before Expires',
    answer({ 'cache-control': 'max-age=60', expires: date(-DAY_MS) }),
    kept,
  ),
  rule('RFC 9111 §5.3', 'an Expires in the past is stale', answer({ expires: date(-DAY_MS), date: date(0) }), notKept),
  rule('RFC 9111 §5.3', 'Expires: 0 is stale', answer({ expires: '0' }), notKept),
  rule('RFC 9111 §5.3', 'an Expires that is no date is stale', answer({ expires: 'tomorrow' }), notKept),
  rule('13.1', 'what says nothing is kept for default_ttl_seconds', answer({}), kept),
  { ...rule('13.1', 'default_ttl_seconds 0 keeps nothing', answer({}), notKept), cache: { default_ttl_seconds: 0 } },
  {
    ...rule('13.1', 'respect_origin_headers false keeps what says no-store', cc('no-store'), kept),
    cache: { respect_origin_headers: false },
  },
  rule('RFC 9111 §5.1', 'an Age beyond max-age is stale', cc('max-age=60', { age: '61' }), notKept),
  rule('RFC 9111 §5.1', 'Age goes on from that of the origin', cc('max-age=600', { age: '300' }), [
    { asked: 1, body: 1, fields: { age: '30' } },
    { asked: 1, body: 1, fields: { age: '30' } },
  ]),
  rule('RFC 9111 §5.1', 'Age begins at 0', cc('max-age=60'), [
    { asked: 1, body: 1 },
    { asked: 1, body: 1, fields: { age: '0' } },
  ]),
  rule('RFC 9111 §4.2.3', 'a Date far in the past is age', cc('max-age=60', { date: date(-DAY_MS) }), notKept),
];

export const TARGETED_RULES: Rule[] = [
  rule(
    'RFC 9213 §2',
    'CDN-Cache-Control counts before Cache-Control',
    answer({ 'cdn-cache-control': 'max-age=60', 'cache-control': 'no-store' }),
    [
      { asked: 1, body: 1 },
      { asked: 1, body: 1, fields: { 'cdn-cache-control': null, 'cache-control': 'no-store' } },
    ],
  ),
  rule(
    'RFC 9213 §2',
    'CDN-Cache-Control: no-store',
    answer({ 'cdn-cache-control': 'no-store', 'cache-control': 'max-age=60' }),
    notKept,
  ),
  rule(
    'RFC 9213 §2.1',
    'an empty CDN-Cache-Control is not there',
    answer({ 'cdn-cache-control': '', 'cache-control': 'no-store' }),
    notKept,
  ),
  rule(
    'RFC 9213 §2',
    'CDN-Cache-Control counts before Expires',
    answer({ 'cdn-cache-control': 'max-age=60', expires: '0' }),
    kept,
  ),
];

export const STATUSES_RULES: Rule[] = [
  ...[203, 204, 300, 301, 308, 404, 410].map((status) =>
    rule(
      'RFC 9110 §15.1',
      `${status} is kept`,
      answer({ 'cache-control': 'max-age=60' }, { status, ...(status === 204 && { body: '' }) }),
      [
        { asked: 1, status },
        { asked: 1, status },
      ],
    ),
  ),
  ...[302, 307].map((status) =>
    rule('RFC 9110 §15.1', `${status} is kept only where it says so`, answer({}, { status }), [
      { asked: 1, status },
      { asked: 2, status },
    ]),
  ),
  ...[302, 307].map((status) =>
    rule('RFC 9110 §15.1', `${status} with max-age is kept`, answer({ 'cache-control': 'max-age=60' }, { status }), [
      { asked: 1, status },
      { asked: 1, status },
    ]),
  ),
  ...[400, 403, 500, 502, 503].map((status) =>
    rule('13.1', `${status} is not kept`, answer({ 'cache-control': 'max-age=60' }, { status }), [
      { asked: 1, status },
      { asked: 2, status },
    ]),
  ),
  rule('negative caching', '404 without a life is kept for a while', answer({}, { status: 404 }), [
    { asked: 1, status: 404 },
    { asked: 1, status: 404 },
  ]),
  ...[404, 410].map((status) =>
    rule(
      'negative caching',
      `${status} without a life is kept for a minute at most`,
      answer({ age: '61' }, { status }),
      [
        { asked: 1, status },
        { asked: 2, status },
      ],
    ),
  ),
  rule(
    'RFC 9111 §3.3',
    'a part is never kept as the whole',
    answer({ 'cache-control': 'max-age=60', 'content-range': 'bytes 0-1/9' }, { status: 206 }),
    [{ asked: 1 }, { asked: 2 }],
  ),
];

export const PEOPLE_RULES: Rule[] = [
  rule('safety', 'a response that sets a cookie is not kept', cc('max-age=60', { 'set-cookie': 'a=1' }), notKept),
  rule(
    'safety',
    'an object of S3 that a key of a visitor has opened is not kept',
    cc('public, max-age=60', { 'x-amz-server-side-encryption-customer-algorithm': 'AES256' }),
    notKept,
  ),
  rule('RFC 9111 §3.5', 'a response to Authorization is not kept', cc('max-age=60'), [
    { asked: 1, body: 1, headers: { authorization: 'Bearer a' } },
    { asked: 2, body: 2 },
  ]),
  ...['public', 's-maxage=60', 'must-revalidate'].map((text) =>
    rule('RFC 9111 §3.5', `a response to Authorization with ${text} is kept`, cc(`max-age=60, ${text}`), [
      { asked: 1, body: 1, headers: { authorization: 'Bearer a' } },
      { asked: 1, body: 1 },
    ]),
  ),
  rule('safety', 'a response to a cookie is not kept', cc('max-age=60'), [
    { asked: 1, body: 1, headers: { cookie: 'session=1' } },
    { asked: 2, body: 2 },
  ]),
  rule('RFC 9111 §5.2.1', 'Cache-Control of a visitor does not reach the origin', cc('max-age=60'), [
    { asked: 1, body: 1 },
    { asked: 1, body: 1, headers: { 'cache-control': 'no-cache', pragma: 'no-cache' } },
  ]),
];
