// An HTTP/1.1 connection of a visitor with simple requests only. The request side of node:http costs more than the rest
// of the ingress; here it is a parser, the routing and one write. At the first other request, the connection and the
// bytes read so far move to node:http for good.
import type { Socket } from 'node:net';
import { rawOf } from '../../../core/process/connection_gate';
import { refuseClient } from './client_error';
import { writeDeferred } from './deferred_writes';
import type { IngressState } from '../ingress_state';
import { serveSite } from './request_handler';
import { closeAfterResponse, isClosingAfterResponse } from './response';
import { findSite } from '../route_table';
import { parseSimpleRequest } from './simple_request';
import { simpleResponse, type SimpleResponse } from './simple_response';

export interface SimpleConnection {
  ingress: IngressState;
  socket: Socket;
  listener: 'http' | 'https';
  /** Moves the socket and all further input to node:http. */
  handOver: (socket: Socket) => void;
  /** The pending response. */
  response: SimpleResponse | null;
  /** Input received before the response was complete. */
  early: Buffer | null;
  /** Time of the accept, or of the end of the last response. */
  idleSince: number;
  hasServed: boolean;
  /** Callback of all responses on the connection. */
  onFinish: (error?: Error | null) => void;
  stop: () => void;
}

/** By the connection below TLS. */
const accepted = new WeakMap<Socket, SimpleConnection>();
const http2 = new WeakSet<Socket>();

/** Path of ACME challenges, which take precedence over applications. */
const WELL_KNOWN = '/.well-known/';
const LATE = Object.assign(new Error('no request came'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });

export function acceptVisitor(
  ingress: IngressState,
  socket: Socket,
  listener: 'http' | 'https',
  handOver: (socket: Socket) => void,
): void {
  const onData = (bytes: Buffer): void => receive(connection, bytes);
  const onDrain = (): void => drain(connection);
  const onEnd = (): void => (writeDeferred(), socket.destroySoon());
  const onClose = (): void => close(connection);
  const onError = (): void => void socket.destroy();
  const connection: SimpleConnection = {
    ingress,
    socket,
    listener,
    handOver,
    response: null,
    early: null,
    idleSince: performance.now(),
    hasServed: false,
    onFinish: (error) => void (error || finish(connection)),
    stop() {
      ingress.visitors.delete(connection);
      socket.off('data', onData).off('drain', onDrain).off('end', onEnd).off('close', onClose).off('error', onError);
    },
  };
  ingress.visitors.add(connection);
  accepted.set(rawOf(socket), connection);
  socket.on('data', onData).on('drain', onDrain).on('end', onEnd).on('close', onClose).on('error', onError);
}

/** Whether a connection may end to make room: before a request, also before its handshake, and between requests. */
export function isIdleVisitor(raw: Socket): boolean {
  const visitor = accepted.get(raw);
  if (visitor === undefined) return !http2.has(raw);
  return visitor.response === null && visitor.ingress.visitors.has(visitor);
}

/** Notes that a connection goes on in HTTP/2, which closes it when it is idle. */
export function noteHttp2(socket: Socket): void {
  http2.add(rawOf(socket));
}

/** Ends connections whose client has been idle for too long. */
export function endIdleVisitors(ingress: IngressState, now: number): void {
  const { headersMs, keepAliveMs } = ingress.limits;
  for (const { response, hasServed, idleSince, socket } of ingress.visitors) {
    if (response !== null || now - idleSince <= (hasServed ? keepAliveMs : headersMs)) continue;
    if (hasServed) socket.destroySoon();
    else refuseClient(LATE, socket);
  }
}

/** Ends kept-alive connections without a pending request. */
export function closeIdleVisitors(ingress: IngressState): void {
  for (const { response, hasServed, socket } of ingress.visitors)
    if (response === null && hasServed) socket.destroySoon();
}

function receive(connection: SimpleConnection, bytes: Buffer): void {
  const { ingress, socket, listener } = connection;
  if (isClosingAfterResponse(socket) || socket.writableEnded) return;
  if (connection.response !== null) {
    connection.early = connection.early === null ? bytes : Buffer.concat([connection.early, bytes]);
    return void socket.pause();
  }
  const request = parseSimpleRequest(bytes, socket, ingress.limits);
  const site = request && findSite(ingress.table, request.authority);
  if (request === null || site === null || request.url.startsWith(WELL_KNOWN)) return passOn(connection, bytes);
  const { keepAliveMs } = ingress.limits;
  const response = simpleResponse(socket, request.method, Math.floor(keepAliveMs / 1000), connection.onFinish);
  connection.response = response;
  if (request.isLast) closeAfterResponse(response);
  const inbound = { request, response, listener, expects: false, upgrade: null };
  serveSite(ingress, inbound, site, { authority: request.authority, target: request.url });
}

function passOn(connection: SimpleConnection, bytes: Buffer): void {
  const { socket, handOver } = connection;
  connection.stop();
  handOver(socket);
  socket.unshift(bytes);
}

function finish(connection: SimpleConnection): void {
  const { response, socket, early } = connection;
  if (response === null || socket.destroyed) return;
  response.writableFinished = true;
  connection.response = null;
  connection.idleSince = performance.now();
  connection.hasServed = true;
  response.onClose?.();
  if (!response.shouldKeepAlive) return void socket.destroySoon();
  if (early === null) return;
  connection.early = null;
  socket.resume();
  receive(connection, early);
}

function drain({ response }: SimpleConnection): void {
  if (response === null) return;
  const { onDrain } = response;
  response.writableNeedDrain = false;
  response.onDrain = null;
  onDrain?.();
}

function close(connection: SimpleConnection): void {
  connection.ingress.visitors.delete(connection);
  connection.response?.onClose?.();
  connection.response = null;
}
