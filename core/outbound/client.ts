// The three doors of the requests that the platform itself sends over HTTP: `guarded` to addresses that users give,
// `trusted` to servers that the operator has named, `own` to servers of this installation. Each has a limit of time and
// of size, and none is led elsewhere by a redirect unless its caller says so.
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { isIP } from 'node:net';
import { ReadableStream as WebStream } from 'node:stream/web';
import { rootCertificates } from 'node:tls';
import type { Outbound } from '../outbound';
import { bareHost } from '../protocols/addresses';
import { exchange, openExchange, type Answered, type Exchange } from './exchange';
import { followRedirects, type RedirectPolicy } from './follow_redirects';
import { newTrace, timeoutError } from './trace';

/**
 * Sends a request to an address that a user has given: its host is resolved once, judged, and connected to as judged.
 * @throws OutboundError, also where it takes longer than `withinMs` or the signal ends it
 */
export async function guarded(
  outbound: Outbound,
  request: Omit<Exchange, 'verifyTls'>,
  withinMs: number,
  signal?: AbortSignal,
): Promise<Answered> {
  const trace = newTrace();
  const end = AbortSignal.timeout(withinMs);
  const either = signal ? AbortSignal.any([end, signal]) : end;
  try {
    return await exchange(outbound, { ...request, verifyTls: true }, trace, either);
  } catch (error) {
    throw either.aborted ? timeoutError(trace, withinMs / 1000) : error;
  }
}

/** The same, with a body that is read as it comes. @throws OutboundError, TimeoutError, the reason of the signal */
export function guardedStream(outbound: Outbound, url: URL, request: ClientRequest): Promise<Response> {
  const { method = 'GET', headers = {} } = request;
  const target = { url, method, headers: Object.entries(headers).map(([name, value]) => ({ name, value })) };
  return limited(url, request, async (signal) => {
    const { response, close } = await openExchange(outbound, { ...target, verifyTls: true }, newTrace(), signal);
    return response.once('close', close);
  });
}

export interface ClientRequest {
  method?: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Buffer;
  /** Until the whole response has arrived, or its head alone. Then the request ends with a TimeoutError. */
  within: { ms: number; of: 'response' | 'head' };
  signal?: AbortSignal;
  /** Of the response; default 64 MiB. Reading fails beyond it. */
  bodyBytesMax?: number;
  /** PEM, roots to trust besides the usual ones. */
  ca?: string | null;
  /** Default: a redirect is an error. */
  redirects?: 'followed' | 'returned';
}

const BODY_BYTES_MAX = 64 * 2 ** 20;
const REDIRECTS_MAX = 10;
/** Shorter than servers keep connections that are idle. */
const IDLE_MS = 4_000;
const AGENT = { keepAlive: true, timeout: IDLE_MS };
const plainAgent = new http.Agent(AGENT);
const agents = new Map<string | null, https.Agent>();

/**
 * Sends a request to a server that the operator has named. Connections are kept and used again.
 * @throws Error with a `code`, TimeoutError, the reason of the signal
 */
export async function trusted(address: string | URL, request: ClientRequest): Promise<Response> {
  const headers: Record<string, string> = { ...request.headers };
  const first = { url: new URL(address), method: request.method ?? 'GET', headers };
  if (request.redirects !== 'followed') return hopTo(first.url, request);
  return followRedirects(first, FOLLOWED, async ({ url, ...hop }) => {
    const answer = await hopTo(url, { ...request, ...hop, redirects: 'returned' });
    const location = answer.headers.get('location') ?? undefined;
    return { answer, status: answer.status, location, close: () => void answer.body?.cancel() };
  });
}

function hopTo(url: URL, request: ClientRequest): Promise<Response> {
  return send(url, request, { agent: url.protocol === 'https:' ? agentOf(request.ca ?? null) : plainAgent });
}

/** Where a server of this installation is connected to, whatever the host of its URL leads to. */
interface OwnAddress {
  hostname: string;
  port: number;
}

/** Sends a request to a server of this installation, over a connection of its own. @throws like `trusted` */
export function own(address: string | URL, request: ClientRequest, at?: OwnAddress): Promise<Response> {
  const url = new URL(address);
  const ca = request.ca ? { ca: [...rootCertificates, request.ca] } : {};
  const headers = { Host: url.host, ...request.headers };
  const servername = isIP(bareHost(url.hostname)) ? {} : { servername: url.hostname };
  return send(url, { ...request, headers }, { ...at, ...ca, ...servername, agent: false });
}

/** Credentials are for the first origin alone. */
const FOLLOWED: RedirectPolicy<Record<string, string>, Response> = {
  redirectsMax: REDIRECTS_MAX,
  writes: 'refused',
  allows: (to, from) => to.protocol === 'https:' || (to.protocol === 'http:' && from.protocol === 'http:'),
  headersElsewhere: (headers) =>
    Object.fromEntries(Object.entries(headers).filter(([name]) => !/^(authorization|cookie)$/i.test(name))),
  refusal: () => redirected(),
};

function agentOf(ca: string | null): https.Agent {
  const known = agents.get(ca);
  if (known) return known;
  const agent = new https.Agent({ ...AGENT, ...(ca !== null && { ca: [...rootCertificates, ca] }) });
  agents.set(ca, agent);
  return agent;
}

function send(url: URL, request: ClientRequest, connection: https.RequestOptions): Promise<Response> {
  return limited(url, request, (signal) => headOf(url, request, { ...connection, signal }));
}

async function limited(
  url: URL,
  { method, within, signal, redirects, bodyBytesMax = BODY_BYTES_MAX }: ClientRequest,
  open: (signal: AbortSignal) => Promise<IncomingMessage>,
): Promise<Response> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(lateError(within.ms)), within.ms).unref();
  const either = signal ? AbortSignal.any([limit.signal, signal]) : limit.signal;
  const stop = (): void => clearTimeout(timer);
  try {
    const message = await open(either);
    if (within.of === 'head') stop();
    else message.once('close', stop);
    const { statusCode: status = 0 } = message;
    const isAnswer = status < 300 || status >= 400 || status === 304 || redirects === 'returned';
    if (isAnswer) return responseOf(message, { url, method, bodyBytesMax, signal: either });
    message.destroy();
    throw redirected();
  } catch (error) {
    stop();
    throw either.aborted ? either.reason : error;
  }
}

function lateError(ms: number): Error {
  return Object.assign(new Error(`no answer within ${ms} ms`), { name: 'TimeoutError', code: 'ETIMEDOUT' });
}

function redirected(): Error {
  return Object.assign(new Error('the server redirects to another address'), { code: 'redirect' });
}

async function headOf(url: URL, request: ClientRequest, options: https.RequestOptions): Promise<IncomingMessage> {
  const { method = 'GET', headers, body } = request;
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
  const client = url.protocol === 'https:' ? https : http;
  for (;;) {
    const fields = { 'accept-encoding': 'identity', ...headers, ...length };
    const sent = client.request(url, { ...options, method, headers: fields });
    try {
      return await new Promise<IncomingMessage>((resolve, reject) => {
        sent.once('response', resolve).on('error', reject);
        sent.end(body);
      });
    } catch (error) {
      // The server had closed the connection while it was idle: it has not seen the request.
      if (!sent.reusedSocket || (error as NodeJS.ErrnoException).code !== 'ECONNRESET' || method === 'POST')
        throw error;
    }
  }
}

/** Statuses without a body, for which the `Response` constructor accepts none (RFC 9110 section 6.4.1). */
export const WITHOUT_BODY = new Set([204, 205, 304]);

/** An answer of node:http in the form of `fetch`. Reading fails after `bodyBytesMax` bytes. */
function responseOf(message: IncomingMessage, about: ResponseOptions): Response {
  const { statusCode: status = 0 } = message;
  const isEmpty = WITHOUT_BODY.has(status) || about.method === 'HEAD';
  if (isEmpty) message.resume();
  const body = isEmpty ? null : (WebStream.from(piecesOf(message, about)) as ReadableStream<Uint8Array<ArrayBuffer>>);
  const response = new Response(body, { status, headers: responseFieldsOf(message.headers) });
  return Object.defineProperty(response, 'url', { value: about.url.href });
}

interface ResponseOptions {
  url: URL;
  method: string | undefined;
  bodyBytesMax: number;
  signal: AbortSignal;
}

/** Fields of a response, also those that come several times. */
export function responseFieldsOf(headers: Answered['headers']): [string, string][] {
  return Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((one): [string, string] => [name, one]),
  );
}

async function* piecesOf(
  message: IncomingMessage,
  { bodyBytesMax: max, signal }: ResponseOptions,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  try {
    for await (const piece of message as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > max) throw Object.assign(new Error(`the response is longer than ${max} bytes`), { code: 'too long' });
      yield piece;
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  }
}
