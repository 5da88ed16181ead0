// A check over HTTP. Redirects are followed hop by hop, each judged and connected like the first, with the cookies that
// were set on the way.
import { CookieJar } from 'tough-cookie';
import type { UptimeCheck } from '../../core/protocols/checks';
import { formats } from '../../core/formats/formats';
import type { ProbeResponse } from '../monitor';
import { answerText } from './answer_text';
import type { Outbound } from '../../core/outbound';
import { OutboundError, type Trace } from '../../core/outbound/trace';
import { exchange, type Answered } from '../../core/outbound/exchange';

const HOPS_MAX = 5;
const BODY_BYTES_MAX = 1024 * 1024;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const OURS = [
  { name: 'User-Agent', value: 'platform-api-check/1' },
  { name: 'Accept', value: '*/*' },
  { name: 'Accept-Encoding', value: 'identity' },
];

export async function checkHttp(
  outbound: Outbound,
  check: UptimeCheck,
  trace: Trace,
  signal: AbortSignal,
): Promise<ProbeResponse> {
  let [url, method, headers] = [new URL(check.target), check.method as string, headersOf(check)];
  const cookies = new CookieJar();
  for (let hop = 0; ; hop += 1) {
    const asked = { url, method, headers: withCookies(headers, cookies, url) };
    const bounds = { verifyTls: check.verify_tls, bodyBytesMax: BODY_BYTES_MAX };
    const answer = await exchange(outbound, { ...asked, ...bounds }, trace, signal);
    for (const cookie of answer.headers['set-cookie'] ?? [])
      cookies.setCookieSync(cookie, url.href, { ignoreError: true });
    const next = check.follow_redirects ? redirectOf(answer, url) : null;
    if (!next) return evaluateAnswer(check, answer);
    if (hop === HOPS_MAX) throw new OutboundError('body', `It was redirected more than ${HOPS_MAX} times.`, false);
    // Values of headers are secrets of the first host.
    if (next.origin !== url.origin) headers = OURS;
    if (method === 'POST' && answer.status < 307) method = 'GET';
    url = next;
  }
}

function headersOf({ headers }: UptimeCheck): Headers {
  const given = new Set(headers.map(({ name }) => name.toLowerCase()));
  return [...OURS.filter(({ name }) => !given.has(name.toLowerCase())), ...headers];
}

type Headers = UptimeCheck['headers'];

/** Cookies of the check itself come first: one header has all of them (RFC 6265 section 5.4). */
function withCookies(headers: Headers, jar: CookieJar, url: URL): Headers {
  const found = jar.getCookieStringSync(url.href);
  if (found === '') return headers;
  const isCookie = ({ name }: Headers[number]): boolean => name.toLowerCase() === 'cookie';
  const value = [...headers.filter(isCookie).map((header) => header.value), found].join('; ');
  return [...headers.filter((header) => !isCookie(header)), { name: 'Cookie', value }];
}

function redirectOf({ status, headers }: Answered, from: URL): URL | null {
  if (!REDIRECTS.has(status) || headers.location === undefined) return null;
  const refused = new OutboundError('body', 'It was redirected to something that is no web address.', false);
  if (!URL.canParse(headers.location, from.href)) throw refused;
  const url = new URL(headers.location, from.href);
  if (!formats.url(url.href)) throw refused;
  return url;
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
