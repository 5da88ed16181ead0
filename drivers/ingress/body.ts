// The body of a request on its way to the instance, as it comes and as fast as the instance takes it.
import type { IncomingMessage } from 'node:http';
import type { Exchange } from './exchange';
import { forwardedTrailers, isChunked } from './forward';
import { pageOf } from './pages';
import { giveUp } from './response';

/** `held`: not touched yet, so that another instance may still be asked. `waiting`: until the instance says 100. */
export type BodyState = 'none' | 'held' | 'waiting' | 'flowing' | 'sent';

/** An instance that knows nothing of `Expect` says nothing: the body goes out then (RFC 9110 section 10.1.1). */
const INVITATION_MS = 1_000;

export function bodyOf(request: IncomingMessage): BodyState {
  const length = request.headers['content-length'];
  return isChunked(request) || (length !== undefined && length !== '0') ? 'held' : 'none';
}

/** Begins to send the body, once. A client that waits for 100 gets it when the instance sends it: `invited`. */
export function beginBody(exchange: Exchange, word: 'connected' | 'invited' = 'connected'): void {
  const { body, expects } = exchange;
  if (body === 'held' && expects && word === 'connected') {
    exchange.body = 'waiting';
    setTimeout(() => invite(exchange), INVITATION_MS).unref();
    return;
  }
  if (body === 'held') return flow(exchange);
  if (word === 'invited') invite(exchange);
}

function invite(exchange: Exchange): void {
  if (exchange.body !== 'waiting' || exchange.answered || exchange.closed || exchange.line === null) return;
  exchange.response.writeContinue();
  flow(exchange);
}

function flow(exchange: Exchange): void {
  const { request } = exchange;
  exchange.body = 'flowing';
  const chunked = isChunked(request);
  request.on('data', (chunk: Buffer) => pass(exchange, chunk, chunked));
  request.on('end', () => finish(exchange, chunked));
}

function pass(exchange: Exchange, chunk: Buffer, chunked: boolean): void {
  exchange.receivedBytes += chunk.length;
  exchange.touchedMs = performance.now();
  if (exchange.line === null) return; // answered early: the rest is of no use to anybody
  if (exchange.receivedBytes > exchange.gate.limits.bodyBytes) return giveUp(exchange, pageOf('body_too_large'));
  const { socket } = exchange.line;
  socket.cork();
  if (chunked) socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1');
  let more = socket.write(chunk);
  if (chunked) more = socket.write('\r\n', 'latin1');
  socket.uncork();
  if (!more && socket.writableNeedDrain) exchange.request.pause();
}

function finish(exchange: Exchange, chunked: boolean): void {
  exchange.body = 'sent';
  exchange.touchedMs = performance.now();
  if (chunked && exchange.line !== null)
    exchange.line.socket.write(`0\r\n${forwardedTrailers(exchange.request)}\r\n`, 'latin1');
}
