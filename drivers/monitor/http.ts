// HTTP check. Redirects are followed hop by hop, each checked and connected like the first, with the cookies set so
// far.
import { CookieJar } from 'tough-cookie';
import type { UptimeCheck } from '../../core/protocols/checks';
import { formats } from '../../core/formats/formats';
import type { ProbeResponse } from '../monitor';
import { answerText } from './answer_text';
import type { Outbound } from '../../core/outbound';
import { OutboundError, type Trace } from '../../core/outbound/trace';
import { exchange, type Answered } from '../../core/outbound/exchange';
import { followRedirects, type RedirectPolicy } from '../../core/outbound/follow_redirects';

const HOPS_MAX = 5;
const BODY_BYTES_MAX = 1024 * 1024;
const OURS = [
  { name: 'User-Agent', value: 'platform-api-check/1' },
  { name: 'Accept', value: '*/*' },
  { name: 'Accept-Encoding', value: 'identity' },
];

type Headers = UptimeCheck['headers'];

const REDIRECTS: RedirectPolicy<Headers, Answered> = {
  redirectsMax: HOPS_MAX,
  writes: 'rewritten',
  allows: ({ href }) => formats.url(href) !== null,
  // Values of headers are secrets of the first host.
  headersElsewhere: () => OURS,
  refusal(why) {
    const message =
      why === 'count'
        ? `The request was redirected more than ${HOPS_MAX} times.`
        : 'The request was redirected to an address that is not a valid http or https URL.';
    return new OutboundError('body', message, false);
  },
};

export async function checkHttp(
  outbound: Outbound,
  check: UptimeCheck,
  trace: Trace,
  signal: AbortSignal,
): Promise<ProbeResponse> {
  const cookies = new CookieJar();
  const first = { url: new URL(check.target), method: check.method as string, headers: headersOf(check) };
  const answer = await followRedirects(first, REDIRECTS, async ({ url, method, headers }) => {
    const asked = { url, method, headers: withCookies(headers, cookies, url) };
    const bounds = { verifyTls: check.verify_tls, bodyBytesMax: BODY_BYTES_MAX };
    const got = await exchange(outbound, { ...asked, ...bounds }, trace, signal);
    for (const cookie of got.headers['set-cookie'] ?? [])
      cookies.setCookieSync(cookie, url.href, { ignoreError: true });
    const location = check.follow_redirects ? got.headers.location : undefined;
    return { answer: got, status: got.status, location };
  });
  return evaluateAnswer(check, answer);
}

function headersOf({ headers }: UptimeCheck): Headers {
  const given = new Set(headers.map(({ name }) => name.toLowerCase()));
  return [...OURS.filter(({ name }) => !given.has(name.toLowerCase())), ...headers];
}

/** Cookies of the check itself come first: one header has all of them (RFC 6265 section 5.4). */
function withCookies(headers: Headers, jar: CookieJar, url: URL): Headers {
  const found = jar.getCookieStringSync(url.href);
  if (found === '') return headers;
  const isCookie = ({ name }: Headers[number]): boolean => name.toLowerCase() === 'cookie';
  const value = [...headers.filter(isCookie).map((header) => header.value), found].join('; ');
  return [...headers.filter((header) => !isCookie(header)), { name: 'Cookie', value }];
}

async function evaluateAnswer(
  { expected_status_codes, expected_body }: UptimeCheck,
  answer: Answered,
): Promise<ProbeResponse> {
  const { status, body } = answer;
  const fits = expected_status_codes.length ? expected_status_codes.includes(status) : status >= 200 && status < 400;
  if (!fits) return { status_code: status, error: `The answer had the status ${status}.` };
  if (expected_body === null) return { status_code: status, error: null };
  const text = await answerText(answer, BODY_BYTES_MAX);
  if (text.includes(expected_body)) return { status_code: status, error: null };
  const where = Math.max(body.length, Buffer.byteLength(text)) >= BODY_BYTES_MAX ? ' in its first MiB' : '';
  return { status_code: status, error: `The answer did not contain the expected text${where}.` };
}
