// HTTP transport of acme-client. Its default transport waits and retries by itself, beyond the deadline of a job step,
// and loses the cause of a broken connection.
import type { axios } from 'acme-client';
import { trusted } from '../../core/outbound/client';
import { version } from '../../package.json';
import { toClockError, toOutage, toRefusal, type AcmeProblem } from './acme_problem';

type Adapter = Extract<(typeof axios)['defaults']['adapter'], (...given: never[]) => unknown>;

export interface AcmeTransport {
  adapter: Adapter;
  /** A resource that needs no signature. Rejects with a DriverError for each error response. */
  get(url: string): Promise<{ text: string; retryAfterMs: number | null }>;
  head(url: string): Promise<void>;
  /** By how much the clock here is ahead of the server's, in its last answer. */
  clockAheadMs(): number | null;
}

interface Reply {
  status: number;
  headers: Headers;
  text: string;
}

interface Sent {
  method: string;
  headers?: Record<string, string>;
  body?: string;
}

/** RFC 8555 section 6.1 demands one. */
const AGENT = `platform-api/${version}`;
const RESPONSE_TIMEOUT_MS = 15_000;
const RESPONSE_BYTES_MAX = 1 << 20;
/** A longer delay than a day is a mistake of the authority, or of its clock. */
const RETRY_AFTER_MAX_MS = 86_400_000;
/** Of the certificate of the authority itself. */
const CLOCK = /^CERT_(?:NOT_YET_VALID|HAS_EXPIRED)$/;
/** Of a proxy, or of maintenance. */
const PAGE = /^\s*</;
const BAD_NONCE = 'urn:ietf:params:acme:error:badNonce';

/** @param roots PEM, additional trusted roots. Its adapter rejects with a DriverError for each error response. */
export function openAcmeTransport(roots: string | null): AcmeTransport {
  let aheadMs: number | null = null;
  const exchange = async (url: string, request: Sent): Promise<Reply> => {
    const reply = await send(url, roots, { ...request, headers: { 'User-Agent': AGENT, ...request.headers } });
    // A cache may have kept what was got.
    if (request.method !== 'GET') aheadMs = aheadMsOf(reply.headers.get('date')) ?? aheadMs;
    return reply;
  };
  return {
    async adapter(config) {
      const headers = config.headers.toJSON() as Record<string, string>;
      const method = (config.method ?? 'get').toUpperCase();
      const body = config.data as string | undefined;
      const reply = await exchange(config.url ?? '', { method, headers, ...(body !== undefined && { body }) });
      requireSuccess(reply);
      const { status, headers: answered, text } = reply;
      return { data: text, status, statusText: '', headers: Object.fromEntries(answered), config };
    },
    async get(url) {
      const reply = await exchange(url, { method: 'GET' });
      requireSuccess(reply);
      return { text: reply.text, retryAfterMs: retryAfterMsOf(reply.headers.get('retry-after')) };
    },
    async head(url) {
      requireSuccess(await exchange(url, { method: 'HEAD' }));
    },
    clockAheadMs: () => aheadMs,
  };
}

/** The header has whole seconds: the middle of its second is assumed. */
function aheadMsOf(date: string | null): number | null {
  const at = Date.parse(date ?? '');
  return Number.isNaN(at) ? null : Date.now() - at - 500;
}

async function send(url: string, roots: string | null, request: Sent): Promise<Reply> {
  const bounds = { within: { ms: RESPONSE_TIMEOUT_MS, of: 'response' }, bodyBytesMax: RESPONSE_BYTES_MAX } as const;
  try {
    const response = await trusted(url, { ...request, ...bounds, ca: roots, redirects: 'returned' });
    return { status: response.status, headers: response.headers, text: await response.text() };
  } catch (error) {
    const { code, name } = error as NodeJS.ErrnoException;
    const what = name === 'TimeoutError' ? 'no response in time' : (code ?? name);
    throw Object.assign(CLOCK.test(what) ? toClockError(what) : toOutage(what, null), { cause: error });
  }
}

function requireSuccess({ status, headers, text }: Reply): void {
  const isPage = PAGE.test(text);
  if (status >= 200 && status < 300 && !isPage) return;
  const pause = retryAfterMsOf(headers.get('retry-after'));
  const problem = parse(text);
  // acme-client retries with the nonce of this response (section 6.5).
  if (problem.type === BAD_NONCE) return;
  if (status === 429) throw toRefusal({ ...problem, type: 'rateLimited' }, pause);
  if (isPage && status < 300) throw toOutage('it answers with a web page', pause);
  if (status >= 500 || !problem.type) throw Object.assign(toOutage(`status ${status}`, pause), { status });
  throw toRefusal(problem, pause);
}

function parse(text: string): AcmeProblem {
  try {
    return (JSON.parse(text) as AcmeProblem | null) ?? {};
  } catch {
    return {};
  }
}

/** Seconds or a date (RFC 9110 section 10.2.3). */
function retryAfterMsOf(header: string | null): number | null {
  if (header === null) return null;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return ms > 0 ? Math.min(ms, RETRY_AFTER_MAX_MS) : null;
}
