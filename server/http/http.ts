// The one HTTP server: /v2 goes to the REST face on plain node http, everything else to Express.
import {
  createServer,
  STATUS_CODES,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { mintRequestId } from '../../core/ids';
import { limits } from '../../core/limits';
import type { Config } from '../../core/config';
import { guardHttp } from '../../core/process/connection_gate';
import { listenToIngress, type IngressListener } from '../../core/process/ingress_connections';
import { StartupError } from '../../core/startup_error';
import { Problem, problem } from '../../core/errors';
import { writeProblem } from '../../rest/problem';
import { parseTarget } from '../../rest/request';
import { NOSNIFF } from '../../rest/send_text';
import { unbindCookies } from './address_cookies';
import { answerCors } from './cors';
import { openDrain } from './drain';
import { framingError } from './framing';
import { listenErrorReason, listenOrFail } from './listen';
import { isUpload } from './source_uploads';

export interface HttpServer {
  port: number;
  /** Takes requests of the ingress too, at this Unix socket. @param owner see listenToIngress */
  listenToIngress(file: string, owner?: number): Promise<void>;
  /** Stops accepting requests, lets open ones finish within the grace time, then closes the remaining connections. */
  close(graceSeconds: number): Promise<void>;
}

type Rest = (request: IncomingMessage, response: ServerResponse, requestId: string) => Promise<void>;

interface Exchange {
  response: ServerResponse;
  requestId: string;
}

interface Faces {
  /** Paths under /v2. */
  rest: Rest;
  others: RequestListener;
  /** Takes the connection of a request that becomes a WebSocket. False: it is a request like any other. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, requestId: string): boolean;
  /** Address of the API, known when the port is. */
  baseUrl(): string;
  /** Whether the ingress of the host serves the name of that address. */
  hasOwnName(): boolean;
  /** Whose pages may call it. */
  corsOrigins(): readonly string[];
}

/** How often time-outs of slow clients are looked at: node's own rhythm of 30 s would triple them. */
const TIMEOUT_CHECK_MS = 1_000;

/**
 * Listens.
 * @param waiting whose port it takes over
 * @throws StartupError for a taken port or an address that is not of this machine
 */
export async function listenHttp(
  config: Pick<Config, 'host' | 'port' | 'trustProxy' | 'webConcurrency'>,
  faces: Faces,
  waiting: Server | null = null,
): Promise<HttpServer> {
  // Node would refuse a request without Host itself, with an empty answer.
  const server = createServer({
    maxHeaderSize: limits.headerBytesMax,
    requireHostHeader: false,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
  });
  server.headersTimeout = limits.headersTimeoutMs;
  server.requestTimeout = limits.requestTimeoutMs;
  server.keepAliveTimeout = limits.keepAliveTimeoutMs;
  server.timeout = limits.silentTimeoutMs;
  guardHttp(server, { perAddress: perAddress(config) }, (socket) =>
    rejectUnparsed(socket, TOO_MANY(), faces.baseUrl()),
  );
  const drain = openDrain();
  const open = new WeakMap<Socket, Exchange>();
  server.on('timeout', (socket: Socket) => void (isWorkingFor(socket, open.get(socket)) || socket.destroy()));
  const handle: RequestListener = (request, response) => {
    const requestId = mintRequestId();
    drain.watch(response);
    open.set(request.socket, { response, requestId });
    dispatch(request, response, requestId, faces);
  };
  server.on('request', handle);
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    // No 100 Continue for a body that will be rejected for its size; uploads send theirs later.
    if (!isUpload(request) && !(Number(request.headers['content-length']) > limits.bodyBytesMax))
      response.writeContinue();
    handle(request, response);
  });
  server.on('checkExpectation', handle);
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (faces.hasOwnName()) unbindCookies(request, null);
    if (!faces.upgrade(request, socket, head, mintRequestId())) handleWithoutUpgrade(server, request, socket, head);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) =>
    rejectRequest(error, socket as Socket, open.get(socket as Socket), faces.baseUrl()),
  );
  await listenOrFail(server, config, waiting);
  const { port } = server.address() as { port: number };
  const listeners: IngressListener[] = [];
  return {
    port,
    async listenToIngress(file, owner) {
      const listening = listenToIngress(server, file, owner);
      listeners.push(
        await listening.catch((error: NodeJS.ErrnoException) => {
          throw new StartupError(`can't listen at ${file} for the ingress: ${listenErrorReason(error)}`);
        }),
      );
    },
    close: (graceSeconds) => drain.run(server, graceSeconds, listeners),
  };
}

/** Behind proxies all clients have a few addresses: they count there. Web processes get connections in turn. */
function perAddress({ trustProxy, webConcurrency }: Pick<Config, 'trustProxy' | 'webConcurrency'>): number {
  return trustProxy > 0 ? Infinity : Math.ceil(limits.connectionsPerAddress / webConcurrency);
}

/**
 * Whether silence is ours: the request is in, as an archive that is being checked, and nothing waits to be read by the
 * client. Whatever is written starts the time again.
 */
function isWorkingFor(socket: Socket, last: Exchange | undefined): boolean {
  if (!last || last.response.writableEnded) return false;
  return last.response.req.complete && socket.writableLength === 0;
}

const TOO_MANY = (): Problem =>
  problem('rate_limited', 'This address has too many open connections.', {}, { 'Retry-After': '1' });

/**
 * A server may ignore an offer to upgrade (RFC 9110 section 7.8), as that of a client which would rather speak HTTP/2.
 * Node has read the head only: the connection gets it again, without the offer.
 */
function handleWithoutUpgrade(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (!/^(upgrade|http2-settings)$/i.test(rawHeaders[index] as string))
      lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`);
  server.emit('connection', socket);
  // Not unshift: the new parser reads from the handle below the stream.
  socket.emit('data', Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
}

function dispatch(request: IncomingMessage, response: ServerResponse, requestId: string, faces: Faces): void {
  const url = (request.url = originForm(request.url ?? '/'));
  // The REST face writes all headers at once, which is much faster than one by one.
  const rest = isRest(url);
  if (!rest) response.setHeader('X-Request-Id', requestId);
  const wrong = framingError(request) ?? (rest ? null : targetError(url));
  if (wrong) rejectMalformed(request, response, wrong, faces.baseUrl(), requestId);
  else if (answerCors(request, response, faces.corsOrigins())) return;
  else if (url === '*' && request.method === 'OPTIONS') response.writeHead(204, NOSNIFF).end();
  else if (rest) void faces.rest(request, response, requestId);
  else {
    if (faces.hasOwnName()) unbindCookies(request, response);
    faces.others(request, response);
  }
}

/** Clients that think of us as a proxy send the whole address, which a server must take (RFC 9112 section 3.2.2). */
function originForm(url: string): string {
  const whole = /^https?:\/\/[^/?#]*/i.exec(url);
  if (!whole) return url;
  const rest = url.slice(whole[0].length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

function isRest(url: string): boolean {
  return url.startsWith('/v2/') || url === '/v2' || url.startsWith('/v2?');
}

/** Express would answer a path that it cannot decode with a page of its own, and log its stack. */
function targetError(url: string): string | null {
  try {
    parseTarget(url);
    return null;
  } catch (error) {
    if (error instanceof Problem) return error.detail;
    throw error;
  }
}

function rejectMalformed(
  request: IncomingMessage,
  response: ServerResponse,
  detail: string,
  base_url: string,
  request_id: string,
): void {
  writeProblem(response, problem('malformed_request', detail, {}, { Connection: 'close' }), {
    base_url,
    request_id,
    instance: request.url ?? '/',
    head: request.method === 'HEAD',
  });
}

/** @param last of this connection */
function rejectRequest(
  error: NodeJS.ErrnoException,
  socket: Socket,
  last: Exchange | undefined,
  baseUrl: string,
): void {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy();
  // Uploads have a separate time-out.
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && last && isUpload(last.response.req)) return;
  const code =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? 'headers_too_large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? 'request_timeout'
        : 'malformed_request';
  const open = last?.response;
  if (!open || open.writableFinished) return rejectUnparsed(socket, problem(code), baseUrl);
  // The request being answered was complete: the broken one follows it, and an error response would be taken for the
  // response to the first.
  if (open.req.complete || open.headersSent) return void open.once('close', () => socket.destroy());
  const request_id = last.requestId;
  const instance = (open.req.url ?? '/').split('?')[0] as string;
  writeProblem(open, problem(code, undefined, {}, { Connection: 'close' }), {
    base_url: baseUrl,
    request_id,
    instance,
    head: open.req.method === 'HEAD',
  });
  // Answered requests are not aborted with their connection: whoever reads the body would wait for the rest of it.
  open.once('close', () => open.req.destroy(error));
}

// What node's parser refuses never becomes a request; the client still gets a problem document.
function rejectUnparsed(socket: Socket, failure: Problem, baseUrl: string): void {
  const request_id = mintRequestId();
  const lines: string[] = [];
  const headers = { 'X-Request-Id': request_id, Connection: 'close' };
  const response = {
    writeHead: (status: number, more: object) =>
      lines.push(
        `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
        ...Object.entries({ ...headers, ...more }).map(([name, value]) => `${name}: ${value}`),
      ),
    // Whatever the client does: one that keeps its side open would keep the descriptor.
    end: (text?: string) => socket.end(`${lines.join('\r\n')}\r\n\r\n${text ?? ''}`, () => socket.destroySoon()),
  };
  writeProblem(response as unknown as ServerResponse, failure, {
    base_url: baseUrl,
    request_id,
    instance: '/',
    head: false,
  });
}
