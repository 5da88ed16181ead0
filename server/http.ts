// The one HTTP server: /v2 goes to the REST face on plain node http, everything else to Express.
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { mintRequestId } from '../core/ids';
import { limits } from '../core/limits';
import type { Config } from '../core/config';
import { StartupError } from '../core/startup_error';
import { problem } from '../core/errors';
import { writeProblem } from '../rest/problem';

export interface HttpServer {
  port: number;
  /** Takes no new requests, lets the open ones finish within the grace time, then closes what is left. */
  close(graceSeconds: number): Promise<void>;
}

type Rest = (request: IncomingMessage, response: ServerResponse, requestId: string) => Promise<void>;

interface Faces {
  /** Paths under /v2. */
  rest: Rest;
  others: RequestListener;
  /** Address of the API, known when the port is. */
  baseUrl(): string;
}

/** Listens. @throws StartupError for a taken port or an address that is not this machine's */
export async function listenHttp(config: Pick<Config, 'host' | 'port'>, faces: Faces): Promise<HttpServer> {
  // Node would refuse a request without Host itself, with an empty answer.
  const server = createServer({ maxHeaderSize: limits.headerBytesMax, requireHostHeader: false }, (request, response) => {
    const requestId = mintRequestId();
    response.setHeader('X-Request-Id', requestId);
    if (!request.headers.host && request.httpVersion === '1.1') refuseHostless(request, response, faces.baseUrl(), requestId);
    else if (isRest(request.url ?? '/')) void faces.rest(request, response, requestId);
    else faces.others(request, response);
  });
  server.headersTimeout = limits.headersTimeoutMs;
  server.requestTimeout = limits.requestTimeoutMs;
  server.keepAliveTimeout = limits.keepAliveTimeoutMs;
  server.on('clientError', (error, socket) => refuse(error as NodeJS.ErrnoException, socket as Socket, faces.baseUrl()));
  await bind(server, config);
  const { port } = server.address() as { port: number };
  return { port, close: (graceSeconds) => drain(server, graceSeconds) };
}

function isRest(url: string): boolean {
  return url.startsWith('/v2/') || url === '/v2' || url.startsWith('/v2?');
}

function refuseHostless(request: IncomingMessage, response: ServerResponse, base_url: string, request_id: string): void {
  writeProblem(response, problem('malformed_request', 'The header Host is missing.', {}, { Connection: 'close' }), { base_url, request_id, instance: request.url ?? '/', head: request.method === 'HEAD' });
}

interface Socket {
  writable: boolean;
  end(text: string): void;
  destroy(): void;
}

// What node's parser refuses never becomes a request; the client is still told in the same form.
function refuse(error: NodeJS.ErrnoException, socket: Socket, baseUrl: string): void {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy();
  const code = error.code === 'HPE_HEADER_OVERFLOW' ? 'headers_too_large' : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'request_timeout' : 'malformed_request';
  const failure = problem(code);
  const request_id = mintRequestId();
  const lines: string[] = [];
  const headers = { 'X-Request-Id': request_id, Connection: 'close' };
  const response = {
    writeHead: (status: number, more: object) => lines.push(`HTTP/1.1 ${status} ${failure.code}`, ...Object.entries({ ...headers, ...more }).map(([name, value]) => `${name}: ${value}`)),
    end: (text?: string) => socket.end(`${lines.join('\r\n')}\r\n\r\n${text ?? ''}`),
  };
  writeProblem(response as unknown as ServerResponse, failure, { base_url: baseUrl, request_id, instance: '/', head: false });
}

function bind(server: Server, { host, port }: { host: string; port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(new StartupError(`can't listen on ${host}:${port}: ${reasonOf(error)}`)));
    server.listen(port, host, resolve);
  });
}

/** What a listen error means, in words. */
export function reasonOf(error: NodeJS.ErrnoException): string {
  if (error.code === 'EADDRINUSE') return 'the port is taken';
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND') return 'the address is not one of this machine';
  if (error.code === 'EACCES') return 'the port needs more rights';
  return error.code ?? error.message;
}

async function drain(server: Server, graceSeconds: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), graceSeconds * 1000);
  await closed;
  clearTimeout(timer);
}
