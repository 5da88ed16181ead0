// What is not well formed is ignored, or in the past; it never makes a response public (RFC 9111, RFC 9213).
import { answer, cc, date, DAY_MS, ETAG, kept, notKept, rule, type OriginAnswer, type Rule } from './cdn_rule';

const targeted = (text: string | string[], own: string): OriginAnswer =>
  answer({ 'cdn-cache-control': text, 'cache-control': own });

const NO_DICTIONARIES = [
  'max-age="10000"',
  'max-age=10000, &&&&&',
  'max-age=1, &&&',
  'max-age=60.0',
  'max-age=-1',
  'max-age=?1',
  'max-age=sixty',
  'max-age=(60)',
  'max-age',
  'max-age =60',
  'max-age= 60',
  'max-age=60;',
  'max-age=60,',
  'max-age=60 public',
  'Max-Age=60',
  'max-age=1234567890123456',
  's-maxage="60"',
  'max-age=60, stale-while-revalidate=1.5',
  'max-age=60, stale-if-error="60"',
  'max-age=60, x="open',
  '"max-age=60"',
  ',',
  ' ',
];

export const TARGETED_MALFORMED_RULES: Rule[] = [
  ...NO_DICTIONARIES.map((text) =>
    rule(
      'RFC 9213 §2.1',
      `CDN-Cache-Control \`${text}\` is ignored, and no-store counts`,
      targeted(text, 'no-store'),
      notKept,
    ),
  ),
  rule(
    'RFC 9213 §2.1',
    'Cache-Control counts beside a CDN-Cache-Control that is no dictionary',
    targeted('no-store, &&&', 'max-age=60'),
    kept,
  ),
  rule('RFC 9213 §2.1', 'parameters of a directive are ignored', targeted('max-age=60;x=1', 'no-store'), kept),
  rule(
    'RFC 9213 §2.1',
    'directives of other types that nobody knows do no harm',
    targeted('x="no-store, max-age=0", y=1.5, z=(a b), max-age=60', 'no-store'),
    kept,
  ),
  rule('RFC 9651 §3.2', 'of a repeated member the last counts', targeted('max-age=60, max-age=0', 'no-store'), notKept),
  rule('RFC 9651 §3.2', 'two lines are one dictionary', targeted(['max-age=60', 'no-store'], 'max-age=60'), notKept),
  rule('RFC 9213 §2.1', 'private with a value is private', targeted('private="x", max-age=60', 'max-age=60'), notKept),
];

const EXPIRES_THAT_ARE_NONE = [
  'Thu, 18 Aug 2050 02:01:18 UTC',
  'Thu, 18 Aug 2050 02:01:18 AEST',
  'Thu, 18 Aug 2050 02:01:18 +0000',
  'Thu, 18 Aug 2050 02:01:18',
  'Thu, 18 Aug 50 02:01:18 GMT',
  'Thu 18 Aug 2050 02:01:18 GMT',
  'Thu, 18  Aug  2050 02:01:18 GMT',
  'Thu, 18-Aug-2050 02:01:18 GMT',
  'Thu, 18 Aug 2050 2:01:18 GMT',
  'Thu, 18 Aug 2050 25:01:18 GMT',
  'Thu, 31 Feb 2050 02:01:18 GMT',
  'Thu, 8 Aug 2050 02:01:18 GMT',
  '18 Aug 2050 02:01:18 GMT',
  '2050-08-18T02:01:18Z',
  '2050-08-18',
  '2050',
  '2556144000',
  'Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:18 GMT',
];
const EXPIRES_OF_THE_FUTURE = [
  'Thu, 18 Aug 2050 02:01:18 GMT',
  'THU, 18 aug 2050 02:01:18 gmt',
  'Thursday, 18-Aug-50 02:01:18 GMT',
  'Thu Aug 18 02:01:18 2050',
  'Mon Aug  8 02:01:18 2050',
];

export const DATES_MALFORMED_RULES: Rule[] = [
  ...EXPIRES_THAT_ARE_NONE.map((expires) =>
    rule('RFC 9111 §5.3', `Expires \`${expires}\` is in the past`, answer({ expires }), notKept),
  ),
  ...EXPIRES_OF_THE_FUTURE.map((expires) =>
    rule('RFC 9110 §5.6.7', `Expires \`${expires}\` is in the future`, answer({ expires }), kept),
  ),
  rule(
    'RFC 9110 §5.6.7',
    'a year of two digits more than 50 years ahead is one of the last century',
    answer({ expires: 'Thursday, 18-Aug-95 02:01:18 GMT' }),
    notKept,
  ),
  ...['2001-01-01', 'yesterday', 'Mon, 01 Jan 2001 00:00:00 UTC'].map((text) =>
    rule('RFC 9110 §6.6.1', `Date \`${text}\` is no age`, cc('max-age=60', { date: text }), kept),
  ),
  rule('RFC 9110 §13.1.3', 'If-Modified-Since that is no date is ignored', cc('max-age=60', lastModified()), [
    { asked: 1, body: 1 },
    { asked: 1, status: 200, body: 1, headers: { 'if-modified-since': '2050-08-18' } },
    { asked: 1, status: 200, body: 1, headers: { 'if-modified-since': 'Thu, 18 Aug 2050 02:01:18 UTC' } },
    { asked: 1, status: 304, body: '', headers: { 'if-modified-since': 'Monday, 01-Jan-24 00:00:00 GMT' } },
  ]),
];

function lastModified(): Record<string, string> {
  return { 'last-modified': 'Mon, 01 Jan 2024 00:00:00 GMT' };
}

export const AGES_MALFORMED_RULES: Rule[] = [
  ...['7200.0', '7200;x=1', '7200s', '-7200', '+7200', '0x7200', '7e3', 'old', '"7200"', '7 200', ' '].map((age) =>
    rule('RFC 9111 §5.1', `Age \`${age}\` is ignored`, cc('max-age=60', { age }), kept),
  ),
  ...['7200, 0', '2147483648', '99999999999999999999', '7200 , x'].map((age) =>
    rule('RFC 9111 §5.1', `Age \`${age}\` is beyond max-age`, cc('max-age=60', { age }), notKept),
  ),
  rule('RFC 9111 §5.1', 'of several Age the first counts', cc('max-age=60', { age: ['7200', '0'] }), notKept),
];

const STALE_AT_ONCE = [
  'max-age=60.0',
  'max-age=6e1',
  'max-age=+60',
  "max-age='60'",
  'max-age=0x3c',
  'max-age',
  'max-age=',
  'max-age=""',
  'max-age="-1"',
  's-maxage=abc, max-age=60',
  's-maxage=-1, max-age=60',
  'max-age=60, MAX-AGE="0"',
];
const RESTRICTED = [
  'max-age=60,no-store',
  'max-age=60;no-store',
  'max-age=60 private',
  'max-age=60, private=""',
  'max-age=60, no-store=1',
  '"no-store", max-age=60',
  'private, s-maxage=60, public',
  'max-age=60, x="open, no-store',
];

export const DIRECTIVES_MALFORMED_RULES: Rule[] = [
  ...STALE_AT_ONCE.map((text) => rule('RFC 9111 §4.2.1', `\`${text}\` is stale at once`, cc(text), notKept)),
  ...RESTRICTED.map((text) => rule('RFC 9111 §5.2.2', `\`${text}\` is not kept`, cc(text), notKept)),
  rule(
    'RFC 9111 §5.2',
    'a directive inside the value of another one is none',
    cc('x="a, no-store", y="b\\", private", max-age=60'),
    kept,
  ),
  {
    ...rule('RFC 9111 §5.2', 'the value of a directive gives no life', cc('x="a, max-age=60"'), notKept),
    cache: { default_ttl_seconds: 0 },
  },
  rule('RFC 9111 §3.5', 'what is allowed inside a value is not allowed', cc('max-age=60, x="public, s-maxage=60"'), [
    { asked: 1, body: 1, headers: { authorization: 'Bearer a' } },
    { asked: 2, body: 2 },
  ]),
];

const renewal = (more: Record<string, string>): OriginAnswer => ({ ...cc('max-age=60', more), validates: true });
const stale = cc('max-age=0', { etag: ETAG });

export const RENEWALS_RULES: Rule[] = [
  rule(
    'safety',
    'a cookie that a 304 sets is nobody else’s',
    [stale, renewal({ etag: ETAG, 'set-cookie': 'session=1' })],
    [
      { asked: 1, body: 1 },
      { asked: 2, body: 1 },
      { asked: 3, body: 1, fields: { 'set-cookie': null } },
      { asked: 4, body: 1, fields: { 'set-cookie': null } },
    ],
  ),
  ...['no-store', 'private, max-age=60', 'no-store, max-age=60'].map((text) =>
    rule(
      'RFC 9111 §4.3.4',
      `a 304 with ${text} makes nothing fresh`,
      [stale, { ...cc(text, { etag: ETAG }), validates: true }],
      [
        { asked: 1, body: 1 },
        { asked: 2, body: 1 },
        { asked: 3, body: 1 },
      ],
    ),
  ),
];

export const TAGS_RULES: Rule[] = [
  rule('surrogate', 'what has more tags than purges know is not kept', tagged(1_001), notKept),
  rule('surrogate', 'a thousand tags are kept', tagged(1_000), kept),
];

function tagged(count: number): OriginAnswer {
  const tags = Array.from({ length: count }, (_, index) => index.toString(36));
  return cc('max-age=60', { 'surrogate-key': tags.join(' ') });
}

export const CONDITIONS_MALFORMED_RULES: Rule[] = [
  rule('RFC 9110 §8.8.3', 'a comma is a part of an entity tag', cc('max-age=60', { etag: '"a,b"' }), [
    { asked: 1, body: 1 },
    { asked: 1, status: 304, body: '', headers: { 'if-none-match': '"a,b"' } },
    { asked: 1, status: 304, body: '', headers: { 'if-none-match': '"x" , W/"a,b"' } },
    { asked: 1, status: 200, body: 1, headers: { 'if-none-match': '"a", "b"' } },
  ]),
  rule('RFC 9110 §13.1.2', '* among entity tags is none', cc('max-age=60', { etag: ETAG }), [
    { asked: 1, body: 1 },
    { asked: 1, status: 200, body: 1, headers: { 'if-none-match': '"x", *' } },
    { asked: 1, status: 304, body: '', headers: { 'if-none-match': '*' } },
  ]),
  rule(
    'RFC 9110 §13.1.5',
    'If-Range with a weak entity tag, or another date, sends the whole',
    answer({ 'cache-control': 'max-age=60', etag: 'W/"v1"', ...lastModified() }, { body: '0123456789' }),
    [
      { asked: 1 },
      ...['W/"v1"', '"v1"', date(DAY_MS), '2024'].map((condition) => ({
        ...{ asked: 1, status: 200, body: '0123456789' },
        headers: { range: 'bytes=0-1', 'if-range': condition },
      })),
    ],
  ),
  rule(
    'RFC 9110 §14.2',
    'a Range that is none, or of several parts, sends the whole',
    answer({ 'cache-control': 'max-age=60' }, { body: '0123456789' }),
    [
      { asked: 1 },
      ...['bytes=a-b', 'bytes=4-2', 'bytes=', 'bytes=-', 'bytes 0-1', 'items=0-1', 'bytes=0-1,3-4', 'bytes=0.5-1'].map(
        (range) => ({ asked: 1, status: 200, body: '0123456789', headers: { range } }),
      ),
      { asked: 1, status: 206, body: '9', headers: { range: 'bytes=9-99999999999999999999' } },
      { asked: 1, status: 416, headers: { range: 'bytes=-0' } },
    ],
  ),
  ...[['x-color', '*'], '*, *', ',*', 'x-color,,*', ' * '].map((vary) =>
    rule('RFC 9110 §12.5.5', `Vary \`${String(vary)}\` is never kept`, cc('max-age=60', { vary }), notKept),
  ),
];
