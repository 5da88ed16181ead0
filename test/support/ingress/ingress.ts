// An ingress and applications behind it, for tests: everything real, on free ports of the loopback interface.
import http, { type IncomingHttpHeaders, type IncomingMessage, type RequestListener } from 'node:http';
import { connect, type AddressInfo, type Server, type Socket } from 'node:net';
import type { AccessLine, Certificate, IngressDriver, Route, Target } from '../../../engines/ingress/ingress';
import { openIngress, type IngressOptions } from '../../../engines/ingress/http/http';

export interface App extends Target {
  server: http.Server;
  close(): Promise<void>;
}

export interface Front {
  ingress: IngressDriver;
  port: number;
  lines: AccessLine[];
  certificates: Map<string, Certificate>;
  asked: string[];
  tokens: Map<string, string>;
  close(graceMs?: number): Promise<void>;
}

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  rawHeaders: string[];
  body: string;
  trailers: NodeJS.Dict<string>;
}

export interface Question {
  host?: string;
  path?: string;
  method?: string;
  headers?: http.OutgoingHttpHeaders;
  body?: string | Buffer;
  agent?: http.Agent;
}

const CONFIRM_EVERY_MS = 500;

const opened: (() => Promise<void>)[] = [];
let apps = 0;

/** To be called after each test. */
export async function closeAll(): Promise<void> {
  for (const close of opened.splice(0).reverse()) await close();
}

export async function startApp(listener: RequestListener): Promise<App> {
  const server = http.createServer(listener);
  const port = await listening(server);
  apps += 1;
  const close = (): Promise<void> =>
    new Promise((resolve) => (server.close(() => resolve()), server.closeAllConnections()));
  opened.push(close);
  return { instance_id: `ins_${apps}`, port, server, close };
}

/** An application that says its name and what it saw. */
export const mirror = (name: string): Promise<App> =>
  startApp((request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ name, url: request.url, headers: request.headers, raw: request.rawHeaders }));
  });

/** An application that speaks no HTTP of Node's: each connection goes to the function. */
export async function startRawApp(onSocket: (socket: Socket) => void): Promise<Target & { sockets: Set<Socket> }> {
  const sockets = new Set<Socket>();
  const { createServer } = await import('node:net');
  const server = createServer((socket) => {
    sockets.add(socket.on('close', () => sockets.delete(socket)).on('error', () => undefined));
    onSocket(socket);
  });
  const port = await listening(server);
  opened.push(
    () => new Promise((resolve) => (server.close(() => resolve()), sockets.forEach((socket) => socket.destroy()))),
  );
  apps += 1;
  return { instance_id: `ins_${apps}`, port, sockets };
}

/** Its routes are confirmed all the time, unless `confirmed` says otherwise. */
export async function openFront(
  routes: Route[],
  { confirmed = 'always', ...options }: Partial<IngressOptions> & { confirmed?: 'always' | 'never' } = {},
): Promise<Front> {
  const lines: AccessLine[] = [];
  const certificates = new Map<string, Certificate>();
  const tokens = new Map<string, string>();
  const asked: string[] = [];
  const parts = {
    certificate: async (host: string) => (asked.push(host), certificates.get(host) ?? null),
    challenge: async (token: string) => tokens.get(token) ?? null,
    line: (line: AccessLine) => void lines.push(line),
  };
  const ingress = await openIngress({ host: '127.0.0.1', port: 0, tlsPort: null, parts, ...options });
  ingress.replaceRoutes(routes);
  if (confirmed === 'always') ingress.confirmRoutes(0);
  const confirming = setInterval(() => confirmed === 'always' && ingress.confirmRoutes(0), CONFIRM_EVERY_MS).unref();
  const close = (graceMs = 0): Promise<void> => (clearInterval(confirming), ingress.close(graceMs));
  opened.push(close);
  return { ingress, port: ingress.ports.http, lines, certificates, asked, tokens, close };
}

export function routeOf(targets: Target[], over: Partial<Route> = {}): Route {
  return {
    application_id: 'app_1',
    preview_id: null,
    hosts: ['app.example.com'],
    targets: targets.map(({ instance_id, port }) => ({ instance_id, port })),
    state: 'running',
    maintenance: false,
    force_https: false,
    request_timeout_ms: 5_000,
    sticky: false,
    ...over,
  };
}

/**
 * One request and its whole answer, on a connection of its own unless an agent is given.
 * @throws the errno, with `reusedSocket` as Node.js has it of requests
 */
export function ask(front: { port: number }, question: Question = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = open(front, question);
    request.on('response', (response) => void whole(response).then(resolve, reject));
    request.on('error', (error) => reject(Object.assign(error, { reusedSocket: request.reusedSocket })));
    request.end(question.body);
  });
}

/** The request without its end, for those that come in pieces. */
export function open(
  front: { port: number },
  { host = 'app.example.com', path = '/', method = 'GET', headers = {}, agent }: Question = {},
): http.ClientRequest {
  return http.request({
    port: front.port,
    host: '127.0.0.1',
    method,
    path,
    agent: agent ?? false,
    headers: { host, ...headers },
  });
}

export async function whole(response: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    rawHeaders: response.rawHeaders,
    body: Buffer.concat(chunks).toString(),
    trailers: response.trailers,
  };
}

/** Sends bytes and reads until the other side closes. */
export function raw(port: number, bytes: string | Buffer, withinMs = 5_000): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    const timer = setTimeout(
      () => (socket.destroy(), reject(new Error(`still open after ${withinMs} ms: ${text}`))),
      withinMs,
    );
    socket.on('data', (chunk) => (text += chunk.toString('latin1')));
    socket.on('error', () => undefined);
    socket.on('close', () => (clearTimeout(timer), resolve(text)));
    socket.on('end', () => socket.end());
  });
}

/** Waits until something holds; fails after ten seconds. */
export async function until(holds: () => boolean): Promise<void> {
  for (const end = Date.now() + 10_000; !holds();) {
    if (Date.now() > end) throw new Error(`still not: ${String(holds)}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function listening(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', 4_096, () => resolve((server.address() as AddressInfo).port));
  });
}
