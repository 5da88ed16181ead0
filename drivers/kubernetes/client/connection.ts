// Requests to an API server: credentials, time limits, answers of bounded size, and what is tried again.
import type { IncomingMessage } from 'node:http';
import { Agent, request as requestHttps, type RequestOptions } from 'node:https';
import type { DriverError } from '../../../core/driver';
import { type DriverContext } from '../../../core/driver';
import { pauseMsAfter } from '../../../core/process/backoff';
import type { ClusterAccess } from './access';
import { openCredentials, type RequestCredentials } from './credentials';
import { hasCode, KubernetesError, kubernetesRefusal, retryAfterMsOf, type Subject } from './failure';
import { pause } from './pause';

export interface ApiRequest {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** From the root of the server, encoded. */
  path: string;
  query?: Query;
  body?: unknown;
  /** Of the body; `application/json` unless it is another. */
  contentType?: string;
  subject: Subject;
}

/** Null and undefined are left out. */
type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Connection {
  /** The JSON object of a 2xx answer. @throws DriverError, mostly KubernetesError */
  send(request: ApiRequest, ctx: DriverContext): Promise<object>;
  /** The body of a 2xx answer as it comes. It breaks off when the signal is aborted. */
  open(request: ApiRequest, ctx: DriverContext): Promise<IncomingMessage>;
  /** For the handshake of a WebSocket. */
  upgradeOptions(request: Pick<ApiRequest, 'path' | 'query'>, ctx: DriverContext): Promise<UpgradeOptions>;
  /** After a handshake that was answered 401. */
  forgetCredentials(): void;
  /** Ends idle connections; what is under way goes on to its end. */
  close(): void;
}

interface UpgradeOptions extends RequestCredentials {
  url: URL;
}

/** Of a whole answer. Pages of lists are the largest. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
const REFUSAL_BYTES_MAX = 64 * 1024;
/** Until the headers of an answer come. API servers end requests that are not watches after 60 s. */
const ANSWER_MS = 65_000;
/** A connection without an answer to these is given up by the kernel: after this time it asks ten times in 10 s. */
const KEEP_ALIVE_MS = 15_000;
const CONNECTIONS_MAX = 32;
const ATTEMPTS_MAX = 6;
/** Whoever is to wait for longer is told so. */
const RETRY_MS_MAX = 30_000;
/** Where the server says nothing. */
const UNTOLD = { firstMs: 500, maxMs: RETRY_MS_MAX };

export function openConnection(access: ClusterAccess): Connection {
  const credentials = openCredentials(access);
  const agents = {
    send: new Agent({ keepAlive: true, maxSockets: CONNECTIONS_MAX }),
    // Each has a connection of its own for as long as it lasts.
    open: new Agent({ keepAlive: false }),
  };
  const attempt = async (kind: keyof typeof agents, request: ApiRequest, ctx: DriverContext) => {
    const current = await credentials.current(ctx);
    return perform(access, request, { ...current, agent: agents[kind] }, ctx);
  };
  const answered = (kind: keyof typeof agents, request: ApiRequest, ctx: DriverContext): Promise<IncomingMessage> =>
    withRetries(
      () => attempt(kind, request, ctx),
      request.subject,
      () => credentials.forget(),
      ctx,
    );
  return {
    async send(request, ctx) {
      const text = await readAnswerText(await answered('send', request, ctx), ANSWER_BYTES_MAX, ctx.signal);
      return parseAnswer(text);
    },
    open: (request, ctx) => answered('open', request, ctx),
    async upgradeOptions({ path, query }, ctx) {
      const url = addressOf(access.server, path, query);
      return { url, ...(await credentials.current(ctx)) };
    },
    forgetCredentials: () => credentials.forget(),
    close() {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

/**
 * What a server that has too much to do refuses is tried again when it says so; what a connection lost that had been
 * idle, at once: the server closed it before it saw the request. All our requests can be repeated.
 */
async function withRetries(
  attempt: () => Promise<IncomingMessage>,
  subject: Subject,
  forgetCredentials: () => void,
  ctx: DriverContext,
): Promise<IncomingMessage> {
  for (let count = 1; ; count += 1) {
    const response = await attempt().catch((error: unknown) => {
      if (error instanceof IdleConnectionLost && count < ATTEMPTS_MAX) return null;
      throw error;
    });
    if (response === null) continue;
    const { statusCode: status = 0, headers } = response;
    if (status >= 200 && status < 300) return response;
    const body = await readAnswerText(response, REFUSAL_BYTES_MAX, ctx.signal).catch(() => '');
    const refusal = kubernetesRefusal(status, body, subject, headers['retry-after']);
    if (status === 401 && count === 1) forgetCredentials();
    else if (status === 429 && count < ATTEMPTS_MAX) await pauseAsTold(refusal, count, headers['retry-after'], ctx);
    else throw refusal;
  }
}

async function pauseAsTold(
  refusal: KubernetesError,
  count: number,
  header: string | undefined,
  ctx: DriverContext,
): Promise<void> {
  const told = retryAfterMsOf(header) ?? pauseMsAfter(count, UNTOLD);
  const ms = told * (1 + Math.random() / 4);
  if (told > RETRY_MS_MAX || Date.now() + ms >= ctx.deadline) throw refusal;
  await pause(ms, ctx.signal);
  if (ctx.signal.aborted) throw refusal;
}

/** The server closed a connection that had been idle before it could read the request. */
class IdleConnectionLost extends KubernetesError {}

type Sent = RequestCredentials & { agent: Agent };

function perform(
  access: ClusterAccess,
  request: ApiRequest,
  { headers, tls, agent }: Sent,
  ctx: DriverContext,
): Promise<IncomingMessage> {
  const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
  const options: RequestOptions = {
    ...{ method: request.method, agent, ...tls, signal: ctx.signal },
    headers: {
      ...{ ...headers, Accept: 'application/json, */*', 'User-Agent': 'platform-api' },
      ...(body && { 'Content-Type': request.contentType ?? 'application/json', 'Content-Length': body.length }),
    },
  };
  return new Promise((resolve, reject) => {
    const sent = requestHttps(addressOf(access.server, request.path, request.query), options);
    const timer = setTimeout(() => sent.destroy(new Error('timeout')), ANSWER_MS);
    sent.on('socket', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
    sent.on('response', (response) => {
      clearTimeout(timer);
      // Without a listener an answer that breaks off before it is read would end the process.
      response.on('error', () => undefined);
      resolve(response);
    });
    sent.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      reject(connectionError(error, ctx, sent.reusedSocket));
    });
    sent.end(body);
  });
}

function addressOf(server: URL, path: string, query: Query = {}): URL {
  const url = new URL(server);
  url.pathname = url.pathname.replace(/\/$/, '') + path;
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined) url.searchParams.set(name, String(value));
  return url;
}

const UNTRUSTED = /^(CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|ERR_TLS_CERT|HOSTNAME_MISMATCH)/;

/** Names neither the address nor what was sent. */
export function connectionError(error: NodeJS.ErrnoException, ctx: DriverContext, reused = false): DriverError {
  const code = error.code ?? error.name;
  const made = (): DriverError => {
    if (ctx.signal.aborted || error.message === 'timeout')
      return new KubernetesError('transient', 'The API server of the cluster did not answer in time.', 'timeout');
    if (UNTRUSTED.test(code))
      return new KubernetesError(
        'unauthorized',
        `The certificate of the cluster's API server cannot be trusted (${code}).`,
        'unauthorized',
      );
    const message = `The API server of the cluster cannot be reached (${code}).`;
    if (reused && (code === 'ECONNRESET' || code === 'EPIPE'))
      return new IdleConnectionLost('transient', message, 'unreachable');
    return new KubernetesError('transient', message, 'unreachable');
  };
  return Object.assign(made(), { cause: error });
}

/** The whole body as text. @throws KubernetesError `too_large`, `timeout`, `unreachable` */
export async function readAnswerText(
  response: IncomingMessage,
  bytesMax: number,
  signal: AbortSignal,
): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > bytesMax)
        throw new KubernetesError('unsupported', 'The answer of the API server is too large.', 'too_large');
      chunks.push(chunk);
    }
  } catch (error) {
    response.destroy();
    if (hasCode(error, 'too_large')) throw error;
    throw connectionError(error as Error, { signal, deadline: 0 });
  }
  return Buffer.concat(chunks).toString();
}

function parseAnswer(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // As below: what stands in between has answered, and not with JSON.
  }
  throw new KubernetesError('transient', 'The answer of the API server is not a JSON object.', 'malformed');
}
