// The body of a request on its way to the instance, as it comes and as fast as the instance takes it.
import type { ProxiedRequest } from './proxied_request';
import { forwardedTrailers, isChunked } from './forwarded_head';
import { fixedPage } from '../pages';
import { failRequest } from './response';
import type { VisitorRequest } from '../visitor';

/** `held`: not touched yet, so that another instance may still be asked. `waiting`: until the instance says 100. */
export type BodyState = 'none' | 'held' | 'waiting' | 'flowing' | 'sent';

/** An instance that knows nothing of `Expect` says nothing: the body goes out then (RFC 9110 section 10.1.1). */
const INVITATION_MS = 1_000;

export function bodyOf(request: VisitorRequest): BodyState {
  const length = request.headers['content-length'];
  return isChunked(request) || (length !== undefined && length !== '0') ? 'held' : 'none';
}

/**
 * What goes out in one piece with the head: all of the body of a simple request. It is noted as sent, and counted once,
 * also where the next instance gets it again because the one before refused the connection.
 */
export function takeWholeBody(proxied: ProxiedRequest): string {
  const body = proxied.request.body ?? null;
  if (body === null) return '';
  proxied.body = 'sent';
  proxied.receivedBytes = body.length;
  return body.toString('latin1');
}

/** Begins to send the body, once. A client that waits for 100 gets it when the instance sends it: `invited`. */
export function startSendingBody(proxied: ProxiedRequest, event: 'connected' | 'invited' = 'connected'): void {
  const { body, expects } = proxied;
  if (body === 'held' && expects && event === 'connected') {
    proxied.body = 'waiting';
    setTimeout(() => sendContinue(proxied), INVITATION_MS).unref();
    return;
  }
  if (body === 'held') return sendBody(proxied);
  if (event === 'invited') sendContinue(proxied);
}

function sendContinue(proxied: ProxiedRequest): void {
  if (proxied.body !== 'waiting' || proxied.answered || proxied.closed || proxied.connection === null) return;
  proxied.response.writeContinue();
  sendBody(proxied);
}

function sendBody(proxied: ProxiedRequest): void {
  const { request } = proxied;
  proxied.body = 'flowing';
  const chunked = isChunked(request);
  request.on('data', (chunk: Buffer) => sendBodyChunk(proxied, chunk, chunked));
  request.on('end', () => finishBody(proxied, chunked));
}

function sendBodyChunk(proxied: ProxiedRequest, chunk: Buffer, chunked: boolean): void {
  proxied.receivedBytes += chunk.length;
  proxied.touchedMs = performance.now();
  const socket = proxied.connection?.socket ?? null;
  if (socket === null) return; // answered early: the rest is of no use to anybody
  if (proxied.receivedBytes > proxied.ingress.limits.bodyBytes)
    return failRequest(proxied, fixedPage('body_too_large'));
  socket.cork();
  if (chunked) socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1');
  let more = socket.write(chunk);
  if (chunked) more = socket.write('\r\n', 'latin1');
  socket.uncork();
  if (!more && socket.writableNeedDrain) proxied.request.pause();
}

function finishBody(proxied: ProxiedRequest, chunked: boolean): void {
  proxied.body = 'sent';
  proxied.touchedMs = performance.now();
  if (chunked) {
    const trailers = forwardedTrailers(proxied.request);
    proxied.connection?.socket?.write(`0\r\n${trailers}\r\n`, 'latin1');
  }
}
