// The ingress on node:http: its listeners, and its driver.
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { Server as NetServer, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SecureContext, TLSSocket } from 'node:tls';
import type { IngressDriver, IngressCallbacks, Route } from '../ingress';
import { refuseClient } from './client_error';
import { acceptVisitor, closeIdleVisitors, noteHttp2 } from './simple_connection';
import { tlsContextCache, contextOf, forgetContext, keepContexts } from '../tls_contexts';
import { http2Visitors, type Http2Visitors } from './http2';
import { handleRequest } from './request_handler';
import { openVisitorGate } from './visitor_gate';
import { waitUntilIdle } from './wait_until_idle';
import type { IngressState } from '../ingress_state';
import { INGRESS_LIMITS, type IngressLimits } from '../limits';
import { listenFor, portOf, stopListening, type Listeners, type Predecessor } from '../listeners';
import { addServices, serviceHosts, type ServedService } from '../platform_services';
import { enforceTimeouts } from '../timeouts';
import {
  applyRoutes,
  confirmTable,
  hasDoubts,
  normalizeHost,
  pinRoutes,
  markDrained,
  nextReadNumber,
  restoreRoutes,
  routesOf,
  routeTable,
  siteOfHost,
  updateRoutes,
} from '../route_table';
import { takeCounters, trafficCounters } from '../traffic';
import { endTunnel } from './tunnel';

export interface IngressOptions {
  host: string;
  /** 0 selects a free port. */
  port: number;
  /** null: no TLS. */
  tlsPort: number | null;
  /** Number of proxies in front whose X-Forwarded-* fields are trusted. */
  trustProxy?: number;
  /** The servers of the platform itself. */
  services?: readonly ServedService[];
  parts: IngressCallbacks;
  /** The process whose listeners are taken over, where it has them. */
  predecessor?: Predecessor | null;
  /** Routes served from the first connection on. */
  routes?: { routes: Route[]; isComplete: boolean; confirmedMsAgo?: number | null } | null;
  limits?: Partial<IngressLimits>;
}

type Scheme = 'http' | 'https';

/** Time for clients to see `Connection: close` before their idle connections are closed. */
const QUIET_MS = 500;
/** Where a successor takes new connections, nothing presses, and clients of a busy machine are slow. */
const QUIET_WHEN_REPLACED_MS = 5_000;

/**
 * Opens the ingress, without routes. Rejects with the error of `listen`, e.g. EADDRINUSE, where a port cannot be bound.
 */
export async function openIngress(options: IngressOptions): Promise<IngressDriver> {
  return (await openIngressServer(options)).driver;
}

/** Like openIngress; also returns the listeners, for a handover to a successor process. */
export async function openIngressServer(
  options: IngressOptions,
): Promise<{ driver: IngressDriver; listeners: Listeners }> {
  const ingress = newIngressState(options);
  addServices(ingress.table, options.services ?? []);
  if (options.routes) restoreRoutes(ingress.table, options.routes.routes);
  ingress.table.complete = options.routes?.isComplete ?? false;
  const confirmedMsAgo = options.routes?.confirmedMsAgo ?? null;
  if (confirmedMsAgo !== null) confirmTable(ingress.table, performance.now() - confirmedMsAgo);
  const plain = http.createServer(serverOptions(ingress.limits));
  const secure =
    options.tlsPort === null ? null : https.createServer({ ...serverOptions(ingress.limits), ...tlsOptions(ingress) });
  const servers: http.Server[] = secure === null ? [plain] : [plain, secure];
  const sockets = new Set<Socket>();
  const guard = openVisitorGate(ingress, sockets);
  attachHandlers(ingress, plain, 'http');
  acceptPlain(ingress, plain);
  if (secure !== null) attachHandlers(ingress, secure, 'https');
  const visitors = secure && openHttp2(ingress, secure, servers);
  for (const server of secure === null ? [plain] : [plain, secure]) guard(server);
  const listeners: Listeners = new Map();
  const { host, port, tlsPort, predecessor } = options;
  try {
    await listenFor(plain, { scheme: 'http', host, port, predecessor }, listeners);
    if (secure !== null) await listenFor(secure, { scheme: 'https', host, port: tlsPort ?? 0, predecessor }, listeners);
  } catch (error) {
    for (const listener of listeners.values()) listener.close();
    throw error;
  }
  const portOfScheme = (scheme: Scheme): number => portOf(listeners.get(scheme) as NetServer);
  ingress.httpsPort = secure && portOfScheme('https');
  const timer = setInterval(() => enforceTimeouts(ingress), ingress.limits.sweepMs).unref();
  const warming = keepContexts(ingress.certificates, serviceHosts(ingress.table));
  const ports = { http: portOfScheme('http'), https: ingress.httpsPort };
  return {
    driver: driver(ingress, ports, () => (clearInterval(timer), clearInterval(warming)), {
      servers,
      listeners,
      sockets,
      visitors,
    }),
    listeners,
  };
}

interface OpenSockets {
  servers: http.Server[];
  listeners: Listeners;
  sockets: Set<Socket>;
  visitors: Http2Visitors | null;
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
    routes: () => routesOf(ingress.table),
    restoreRoutes: (routes) => restoreRoutes(ingress.table, routes),
    replaceApplicationRoutes: (applicationId, routes, reading = nextReadNumber(ingress.table)) =>
      updateRoutes(ingress.table, applicationId, routes, reading),
    pinRoutes: (applicationId, routes) => pinRoutes(ingress.table, applicationId, routes),
    hasDoubts: () => hasDoubts(ingress.table),
    confirmRoutes: (ageMs) => confirmTable(ingress.table, performance.now() - ageMs),
    drain: async (instanceId, ms) => {
      await Promise.all(
        markDrained(ingress.table, instanceId, performance.now()).map((upstream) =>
          waitUntilIdle(ingress, upstream, ms),
        ),
      );
    },
    takeTraffic: () => takeCounters(ingress.traffic),
    forgetCertificate: (host) => forgetContext(ingress.certificates, host === null ? null : normalizeHost(host)),
    close: async (graceMs, tunnelGraceMs = ingress.limits.tunnelDrainMs) => {
      await closeAll(ingress, open, graceMs, tunnelGraceMs);
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
    visitors: new Set(),
    tunnels: new Set(),
    trustProxy: options.trustProxy ?? 0,
    httpsPort: null,
    closing: false,
  };
}

// requestTimeout would abort long uploads; enforceTimeouts finds clients that have stopped sending.
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

// Certificates are looked up only for host names with a route: the client chooses the SNI name.
function tlsOptions(ingress: IngressState): https.ServerOptions {
  const find = (name: string): Promise<SecureContext | null> =>
    siteOfHost(ingress.table, name) || ingress.parts.edge?.has(name) || ingress.parts.isServedElsewhere?.(name)
      ? contextOf(ingress.certificates, name)
      : Promise.resolve(null);
  return {
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['h2', 'http/1.1'],
    handshakeTimeout: ingress.limits.headersMs,
    SNICallback: (name, answer) => void find(normalizeHost(name)).then((context) => answer(null, context ?? undefined)),
  };
}

/** Connections that negotiated HTTP/2 are detached from the HTTPS server, which would parse them as HTTP/1.1. */
function openHttp2(ingress: IngressState, secure: https.Server, servers: http.Server[]): Http2Visitors {
  const server = http.createServer(serverOptions(ingress.limits));
  attachHandlers(ingress, server, 'https');
  servers.push(server);
  const visitors = http2Visitors(server, ingress.limits);
  const [serveHttp1] = secure.listeners('secureConnection') as ((socket: TLSSocket) => void)[];
  secure.removeAllListeners('secureConnection');
  secure.on('secureConnection', (socket) => {
    if (socket.alpnProtocol !== 'h2')
      return acceptVisitor(ingress, socket, 'https', () => serveHttp1?.call(secure, socket));
    noteHttp2(socket);
    visitors.accept(socket);
  });
  return visitors;
}

function acceptPlain(ingress: IngressState, plain: http.Server): void {
  const [serveHttp1] = plain.listeners('connection') as ((socket: Socket) => void)[];
  plain.removeAllListeners('connection');
  plain.on('connection', (socket: Socket) =>
    acceptVisitor(ingress, socket, 'http', () => serveHttp1?.call(plain, socket)),
  );
}

function attachHandlers(ingress: IngressState, server: http.Server, listener: Scheme): void {
  server.maxHeadersCount = 0; // Node would drop further headers, even Content-Length, and serve the request
  const on = (expects: boolean) => (request: IncomingMessage, response: ServerResponse) =>
    handleRequest(ingress, { request, response, listener, expects, upgrade: null });
  server.on('request', on(false));
  server.on('checkContinue', on(true));
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) =>
    onUpgrade(ingress, request, socket as Socket, head, listener),
  );
  server.on('clientError', refuseClient);
  server.on('tlsClientError', (_error, socket) => socket.destroy());
}

// Node emits `upgrade` for every protocol. Anything but WebSocket is served as if Upgrade were absent: the ingress
// could not supervise e.g. h2c.
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
  const detach = (): void => response.detachSocket(socket);
  handleRequest(ingress, { request, response, listener, expects: false, upgrade: { socket, head, protocol, detach } });
}

async function closeAll(
  ingress: IngressState,
  { servers, listeners, sockets, visitors }: OpenSockets,
  graceMs: number,
  tunnelGraceMs: number,
): Promise<void> {
  ingress.closing = true;
  const closed = Promise.all([...listeners.values()].map(stopListening));
  visitors?.close();
  const until = performance.now() + graceMs;
  const tunnelsUntil = performance.now() + Math.min(graceMs, tunnelGraceMs);
  // On a connection that is closed once idle, a request may already be in transit (RFC 9112 section 9.6).
  const quietMs = tunnelGraceMs > ingress.limits.tunnelDrainMs ? QUIET_WHEN_REPLACED_MS : QUIET_MS;
  const quietUntil = performance.now() + Math.min(graceMs, quietMs);
  while (sockets.size > 0 && performance.now() < until) {
    await sleep(20);
    if (performance.now() >= quietUntil) closeIdle(ingress, servers);
    if (performance.now() >= tunnelsUntil) ingress.tunnels.forEach(endTunnel);
  }
  closeIdle(ingress, servers);
  await sleep(20); // the last responses are in transit
  for (const socket of sockets) socket.destroy();
  for (const upstream of ingress.table.upstreams.values())
    for (const connection of upstream.idle) connection.socket?.destroy();
  await closed;
  for (const server of servers) server.close(); // also stops its timeout checks
}

function closeIdle(ingress: IngressState, servers: http.Server[]): void {
  for (const server of servers) server.closeIdleConnections();
  closeIdleVisitors(ingress);
}
