// HTTP transport of acme-client. Its default transport waits and retries by itself, beyond the deadline of a job step,
// and loses the cause of a broken connection.
import * as http from 'node:http';
import * as https from 'node:https';
import { rootCertificates } from 'node:tls';
import type { axios } from 'acme-client';
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
  headers: http.IncomingHttpHeaders;
  text: string;
}

/** RFC 8555 section 6.1 demands one. */
const AGENT = `platform-api/${version}`;
const RESPONSE_TIMEOUT_MS = 15_000;
const RESPONSE_BYTES_MAX = 1 << 20;
/** A longer delay than a day is a mistake of the authority, or of its clock. */
const RETRY_AFTER_MAX_MS = 86_400_000;
/** Of the certificate of the authority itself. */
const CLOCK = /^CERT_(?:NOT_YET_VALID|HAS_EXPIRED)$/;
const BAD_NONCE = 'urn:ietf:params:acme:error:badNonce';

/** @param roots PEM, additional trusted roots. Its adapter rejects with a DriverError for each error response. */
export function openAcmeTransport(roots: string | null): AcmeTransport {
  const agent = roots === null ? undefined : new https.Agent({ ca: [...rootCertificates, roots] });
  let aheadMs: number | null = null;
  const exchange = async (url: string, options: https.RequestOptions, body?: string): Promise<Reply> => {
    const headers = { 'User-Agent': AGENT, ...options.headers };
    const reply = await send(new URL(url), { ...options, headers, agent }, body);
    // A cache may have kept what was got.
    if (options.method !== 'GET') aheadMs = aheadMsOf(reply.headers.date) ?? aheadMs;
    return reply;
  };
  return {
    async adapter(config) {
      const headers = config.headers.toJSON() as http.OutgoingHttpHeaders;
      const method = (config.method ?? 'get').toUpperCase();
      const reply = await exchange(config.url ?? '', { method, headers }, config.data as string | undefined);
      requireSuccess(reply);
      const { status, headers: answered, text } = reply;
      return { data: text, status, statusText: '', headers: answered as Record<string, string>, config };
    },
    async get(url) {
      const reply = await exchange(url, { method: 'GET' });
      requireSuccess(reply);
      return { text: reply.text, retryAfterMs: retryAfterMsOf(reply.headers['retry-after']) };
    },
    async head(url) {
      requireSuccess(await exchange(url, { method: 'HEAD' }));
    },
    clockAheadMs: () => aheadMs,
  };
}

/** The header has whole seconds: the middle of its second is assumed. */
function aheadMsOf(date: string | undefined): number | null {
  const at = Date.parse(date ?? '');
  return Number.isNaN(at) ? null : Date.now() - at - 500;
}

function send(url: URL, options: https.RequestOptions, body: string | undefined): Promise<Reply> {
  const client = url.protocol === 'https:' ? https : http;
  const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
  return new Promise<Reply>((resolve, reject) => {
    const request = client.request(
      url,
      { ...options, agent: url.protocol === 'https:' ? options.agent : undefined, signal },
      (response) => {
        collect(response).then(
          (text) => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
          reject,
        );
      },
    );
    request.on('error', reject);
    request.end(body);
  }).catch((error: NodeJS.ErrnoException) => {
    const what = signal.aborted ? 'no response in time' : (error.code ?? error.name);
    throw Object.assign(CLOCK.test(what) ? toClockError(what) : toOutage(what, null), { cause: error });
  });
}

async function collect(response: http.IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > RESPONSE_BYTES_MAX) throw Object.assign(new Error('the response is too long'), { code: 'too long' });
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function requireSuccess({ status, headers, text }: Reply): void {
  if (status >= 200 && status < 300) return;
  const pause = retryAfterMsOf(headers['retry-after']);
  const problem = parse(text);
  // acme-client retries with the nonce of this response (section 6.5).
  if (problem.type === BAD_NONCE) return;
  if (status === 429) throw toRefusal({ ...problem, type: 'rateLimited' }, pause);
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
function retryAfterMsOf(header: string | undefined): number | null {
  if (header === undefined) return null;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return ms > 0 ? Math.min(ms, RETRY_AFTER_MAX_MS) : null;
}
