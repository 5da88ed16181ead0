// What is stale, what a write changes, and what visitors see (RFC 5861, RFC 9111 §4.4, RFC 9211).
import { cc, ETAG, rule, type OriginAnswer, type Rule } from './cdn_rule';

const broken: OriginAnswer = { breaks: 'head' };
const failing: OriginAnswer = { status: 503 };
const stale = (directives: string): OriginAnswer => cc(`max-age=10, ${directives}`, { age: '20', etag: ETAG });
export const STALE_RULES: Rule[] = [
  rule(
    'RFC 5861 §3',
    'stale-while-revalidate serves what is stale, and fetches it',
    [stale('stale-while-revalidate=60'), cc('max-age=60')],
    [
      { asked: 1, body: 1 },
      { asked: 2, body: 1, fields: { 'cache-status': 'stale' } },
      { asked: 2, body: 2, comes: true },
    ],
  ),
  rule(
    'RFC 5861 §3',
    'beyond stale-while-revalidate a visitor waits',
    [stale('stale-while-revalidate=1'), cc('max-age=60')],
    [
      { asked: 1, body: 1 },
      { asked: 2, body: 2 },
    ],
  ),
  ...[broken, failing].map((failure) =>
    rule(
      'RFC 5861 §4',
      `stale-if-error serves what is stale when the origin ${failure.breaks ? 'breaks off' : 'answers 503'}`,
      [stale('stale-if-error=60'), failure],
      [
        { asked: 1, body: 1 },
        { asked: 2, body: 1, status: 200, fields: { 'cache-status': 'stale' } },
      ],
    ),
  ),
  rule(
    'RFC 5861 §4',
    'beyond stale-if-error the failure is shown',
    [stale('stale-if-error=1'), failing],
    [
      { asked: 1, body: 1 },
      { asked: 2, status: 503 },
    ],
  ),
  rule(
    'RFC 9111 §4.2.4',
    'without leave the failure is shown',
    [cc('max-age=10', { age: '20', etag: ETAG }), broken],
    [
      { asked: 1, body: 1 },
      { asked: 2, status: 502 },
    ],
  ),
  {
    ...rule(
      '13.1',
      'serve_stale serves what is stale while the origin fails',
      [cc('max-age=10', { age: '20', etag: ETAG }), failing],
      [
        { asked: 1, body: 1 },
        { asked: 2, status: 200, body: 1 },
      ],
    ),
    cache: { serve_stale: true },
  },
  ...['must-revalidate', 'proxy-revalidate'].map((text): Rule => ({
    ...rule(
      'RFC 9111 §5.2.2.2',
      `${text} forbids what is stale, serve_stale or not`,
      [stale(`${text}, stale-while-revalidate=60, stale-if-error=60`), broken],
      [
        { asked: 1, body: 1 },
        { asked: 2, status: 502 },
      ],
    ),
    cache: { serve_stale: true },
  })),
];

export const WRITES_RULES: Rule[] = [
  ...['POST', 'PUT', 'PATCH', 'DELETE'].map((method) =>
    rule('RFC 9111 §4.4', `${method} forgets its address`, cc('max-age=60'), [
      { asked: 1, body: 1 },
      { asked: 2, method },
      { asked: 3, body: 3 },
    ]),
  ),
  rule(
    'RFC 9111 §4.4',
    'a write that failed forgets nothing',
    [cc('max-age=60'), { status: 403 }],
    [
      { asked: 1, body: 1 },
      { asked: 2, method: 'POST', status: 403 },
      { asked: 2, body: 1 },
    ],
  ),
  rule('RFC 9111 §4', 'OPTIONS passes through and changes nothing', cc('max-age=60'), [
    { asked: 1, body: 1 },
    { asked: 2, method: 'OPTIONS' },
    { asked: 2, body: 1 },
  ]),
  rule('RFC 9111 §3', 'the answer to POST is not kept', cc('max-age=60, public'), [
    { asked: 1, method: 'POST' },
    { asked: 2, body: 2 },
  ]),
];

export const SHOWN_RULES: Rule[] = [
  rule('RFC 9211 §2', 'Cache-Status says miss, and then hit', cc('max-age=60'), [
    { asked: 1, fields: { 'cache-status': 'edge; fwd=uri-miss; stored' } },
    { asked: 1, fields: { 'cache-status': 'edge; hit' } },
  ]),
  rule('RFC 9211 §2', 'Cache-Status says bypass', cc('no-store'), [
    { asked: 1, fields: { 'cache-status': 'edge; fwd=bypass' } },
  ]),
  rule('RFC 9110 §7.6.3', 'Via names the cache', cc('max-age=60'), [{ asked: 1, fields: { via: '1.1 edge' } }]),
  rule(
    'surrogate',
    'tags are for caches',
    cc('max-age=60', { 'surrogate-key': 'a b', 'cache-tag': 'c', 'surrogate-control': 'max-age=1' }),
    [
      { asked: 1, fields: { 'surrogate-key': null, 'cache-tag': null, 'surrogate-control': null } },
      { asked: 1, fields: { 'surrogate-key': null, 'cache-tag': null } },
    ],
  ),
  {
    ...rule('13.1', 'browser_ttl_seconds is what browsers see', cc('max-age=600', { age: '100' }), [
      { asked: 1, fields: { 'cache-control': 'max-age=7', age: '0' } },
      { asked: 1, fields: { 'cache-control': 'max-age=7', age: '0', expires: null } },
    ]),
    cache: { browser_ttl_seconds: 7 },
  },
  rule(
    'RFC 9110 §7.6.1',
    'fields of one connection stay there',
    cc('max-age=60', { connection: 'x-hop', 'x-hop': '1', 'x-end': '2' }),
    [
      { asked: 1, fields: { 'x-hop': null, 'x-end': '2' } },
      { asked: 1, fields: { 'x-hop': null, 'x-end': '2' } },
    ],
  ),
  rule(
    'safety',
    'half of a response is never kept',
    [{ ...cc('max-age=60'), body: 'x'.repeat(20_000), breaks: 'body' }, cc('max-age=60')],
    [
      { asked: 1, status: 0 },
      { asked: 2, body: 2 },
    ],
  ),
];
