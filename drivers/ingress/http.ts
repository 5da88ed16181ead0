// The ingress on node:http: its listeners, and the driver.
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import net, { type AddressInfo, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SecureContext } from 'node:tls';
import { mintRequestId } from '../../core/ids';
import type { IngressDriver, IngressCallbacks } from '../ingress';
import { tlsContextCache, contextOf, forgetContext } from './tls_contexts';
import { handleRequest } from './request_handler';
import type { IngressState } from './ingress_state';
import { INGRESS_LIMITS, type IngressLimits } from './limits';
import { fixedPage, render } from './pages';
import { isClosingAfterResponse } from './response';
import { enforceTimeouts } from './timeouts';
import {
  applyRoutes,
  normalizeHost,
  pinRoutes,
  markDrained,
  nextReadNumber,
  restoreRoutes,
  routeTable,
  siteOfHost,
  updateRoutes,
} from './route_table';
import { takeCounters, trafficCounters } from './traffic';
import { endTunnel } from './tunnel';
import type { Upstream } from './upstream';

export interface IngressOptions {
  host: string;
  /** 0 takes a free one. */
  port: number;
  /** null: no TLS. */
  tlsPort: number | null;
  /** How many proxies in front have their X-Forwarded-* believed. */
  trustProxy?: number;
  parts: IngressCallbacks;
  limits?: Partial<IngressLimits>;
}

type Scheme = 'http' | 'https';

const IPV4_LOOPBACK = '127.0.0.1';
const IPV6_LOOPBACK = '::1';

/**
 * Opens the ingress, without routes. Rejects with the error of `listen`, e.g. EADDRINUSE, when a port cannot be had.
 */
export async function openIngress(options: IngressOptions): Promise<IngressDriver> {
  const ingress = newIngressState(options);
  const plain = http.createServer(serverOptions(ingress.limits));
  const secure =
    options.tlsPort === null ? null : https.createServer({ ...serverOptions(ingress.limits), ...tlsOptions(ingress) });
  const servers: [http.Server, Scheme][] =
    secure === null
      ? [[plain, 'http']]
      : [
          [plain, 'http'],
          [secure, 'https'],
        ];
  const sockets = new Set<Socket>();
  for (const [server, scheme] of servers) attachHandlers(ingress, server, scheme, sockets);
  const listeners: net.Server[] = [];
  try {
    await listen(plain, options.port, options.host, listeners);
    if (secure !== null) await listen(secure, options.tlsPort ?? 0, options.host, listeners);
  } catch (error) {
    for (const listener of listeners) listener.close();
    throw error;
  }
  ingress.httpsPort = secure && portOf(secure);
  const timer = setInterval(() => enforceTimeouts(ingress), ingress.limits.sweepMs).unref();
  return driver(ingress, { http: portOf(plain), https: ingress.httpsPort }, () => clearInterval(timer), {
    servers: servers.map(([server]) => server),
    listeners,
    sockets,
  });
}

interface OpenSockets {
  servers: http.Server[];
  listeners: net.Server[];
  sockets: Set<Socket>;
}

function driver(
  ingress: IngressState,
  ports: IngressDriver['ports'],
  stopTimer: () => void,
  open: OpenSockets,
): IngressDriver {
  return {
    ports,
    beginRead: () => nextReadNumber(ingress.table),
    replaceRoutes: (routes, reading = nextReadNumber(ingress.table)) => applyRoutes(ingress.table, routes, reading),
    restoreRoutes: (routes) => restoreRoutes(ingress.table, routes),
    replaceApplicationRoutes: (applicationId, routes, reading = nextReadNumber(ingress.table)) =>
      updateRoutes(ingress.table, applicationId, routes, reading),
    pinRoutes: (applicationId, routes) => pinRoutes(ingress.table, applicationId, routes),
    drain: async (instanceId, ms) => {
      await Promise.all(
        markDrained(ingress.table, instanceId, performance.now()).map((upstream) =>
          waitUntilIdle(ingress, upstream, ms),
        ),
      );
    },
    takeTraffic: () => takeCounters(ingress.traffic),
    forgetCertificate: (host) => forgetContext(ingress.certificates, host === null ? null : normalizeHost(host)),
    close: async (graceMs) => {
      await closeAll(ingress, open, graceMs);
      stopTimer();
    },
  };
}

function newIngressState(options: IngressOptions): IngressState {
  return {
    limits: { ...INGRESS_LIMITS, ...options.limits },
    parts: options.parts,
    table: routeTable(),
    traffic: trafficCounters(),
    certificates: tlsContextCache((host) => options.parts.certificate(host)),
    running: new Set(),
    tunnels: new Set(),
    trustProxy: options.trustProxy ?? 0,
    httpsPort: null,
    closing: false,
  };
}

// requestTimeout would end long uploads; a client that has stopped sending is found by enforceTimeouts.
function serverOptions(limits: IngressLimits): http.ServerOptions {
  return {
    insecureHTTPParser: false,
    requireHostHeader: true,
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersMs,
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveMs,
    noDelay: true,
    connectionsCheckingInterval: Math.max(limits.sweepMs, Math.min(5_000, limits.headersMs / 4)),
  };
}

// Names that lead nowhere are not asked for: strangers choose them.
function tlsOptions(ingress: IngressState): https.ServerOptions {
  const find = (name: string): Promise<SecureContext | null> =>
    siteOfHost(ingress.table, name) === null && !ingress.parts.edge?.has(name)
      ? Promise.resolve(null)
      : contextOf(ingress.certificates, name);
  return {
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: ingress.limits.headersMs,
    SNICallback: (name, answer) => void find(normalizeHost(name)).then((context) => answer(null, context ?? undefined)),
  };
}

function attachHandlers(ingress: IngressState, server: http.Server, listener: Scheme, sockets: Set<Socket>): void {
  server.maxHeadersCount = 0; // Node would leave out what is above it, even Content-Length, and serve the rest
  const on = (expects: boolean) => (request: IncomingMessage, response: ServerResponse) =>
    handleRequest(ingress, { request, response, listener, expects, upgrade: null });
  server.on('request', on(false));
  server.on('checkContinue', on(true));
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) =>
    onUpgrade(ingress, request, socket as Socket, head, listener),
  );
  server.on('clientError', onClientError);
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  server.on('connection', (socket: Socket) => {
    if (sockets.size >= ingress.limits.connections) return void socket.destroy();
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
}

// Node hands over the bare connection for every protocol; what is no WebSocket is served as if it had not been asked,
// for an instance that spoke e.g. h2c on it would be out of our sight.
function onUpgrade(
  ingress: IngressState,
  request: IncomingMessage,
  socket: Socket,
  head: Buffer,
  listener: Scheme,
): void {
  const protocol =
    request.headers.upgrade?.toLowerCase() === 'websocket' && request.method === 'GET' ? 'websocket' : null;
  const response = new http.ServerResponse(request);
  response.shouldKeepAlive = false;
  socket.on('error', () => socket.destroy());
  socket.on('drain', () => response.emit('drain'));
  response.assignSocket(socket);
  response.on('finish', () => socket.destroySoon());
  handleRequest(ingress, { request, response, listener, expects: false, upgrade: { socket, head, protocol } });
}

/** What is not HTTP, or comes too slowly, before there is a request. */
function onClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (isClosingAfterResponse(socket)) return; // its answer is under way, and closes it
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy();
  const statuses: Record<string, [number, string]> = {
    HPE_HEADER_OVERFLOW: [431, 'Request Header Fields Too Large'],
    ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout'],
  };
  const [status, title] = statuses[error.code ?? ''] ?? [400, 'Bad Request'];
  const { headers, body } = render({ ...fixedPage('malformed'), status, title }, null, mintRequestId());
  const lines = Object.entries({ ...headers, Connection: 'close' }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${title}\r\n${lines.join('')}\r\n${body}`);
}

// Browsers lead *.localhost to either loopback address.
async function listen(server: http.Server, port: number, host: string, listeners: net.Server[]): Promise<void> {
  await bind(server, port, host);
  listeners.push(server);
  if (host !== IPV4_LOOPBACK) return;
  const other = net.createServer(
    { allowHalfOpen: true, noDelay: true },
    (socket) => void server.emit('connection', socket),
  );
  await bind(other, portOf(server), IPV6_LOOPBACK).then(
    () => listeners.push(other),
    () => undefined,
  );
}

function bind(server: net.Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host, backlog: 4_096 }, () => {
      server.off('error', reject);
      // An accept that fails, e.g. for want of descriptors, is not the end of the listener.
      server.on('error', () => undefined);
      resolve();
    });
  });
}

function portOf(server: net.Server): number {
  return (server.address() as AddressInfo).port;
}

async function waitUntilIdle(ingress: IngressState, upstream: Upstream, ms: number): Promise<void> {
  if (upstream.open === 0) return;
  const timer = setTimeout(
    () => upstream.tunnels.forEach(endTunnel),
    Math.min(ms, ingress.limits.tunnelDrainMs),
  ).unref();
  const late = new AbortController();
  const empty = new Promise<void>((resolve) => upstream.idleWaiters.push(resolve));
  await Promise.race([empty, sleep(ms, undefined, { signal: late.signal, ref: false }).catch(() => undefined)]);
  late.abort();
  clearTimeout(timer);
}

async function closeAll(
  ingress: IngressState,
  { servers, listeners, sockets }: OpenSockets,
  graceMs: number,
): Promise<void> {
  ingress.closing = true;
  const closed = Promise.all(
    listeners.map((listener) => new Promise<void>((resolve) => listener.close(() => resolve()))),
  );
  const until = performance.now() + graceMs;
  const tunnelsUntil = performance.now() + Math.min(graceMs, ingress.limits.tunnelDrainMs);
  while (ingress.running.size + ingress.tunnels.size > 0 && performance.now() < until) {
    await sleep(20);
    for (const server of servers) server.closeIdleConnections();
    if (performance.now() >= tunnelsUntil) ingress.tunnels.forEach(endTunnel);
  }
  for (const server of servers) server.closeIdleConnections();
  await sleep(20); // the last answers are on their way
  for (const socket of sockets) socket.destroy();
  for (const upstream of ingress.table.upstreams.values())
    for (const connection of upstream.idle) connection.socket.destroy();
  await closed;
}
