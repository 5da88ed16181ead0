// Streams the request body to the instance, with backpressure.
import type { ProxiedRequest } from './proxied_request';
import { forwardedTrailers, isChunked } from './forwarded_head';
import { fixedPage } from '../pages';
import { failRequest } from './response';
import type { VisitorRequest } from '../visitor';

/** `held`: untouched, so that another instance can be tried. `waiting`: until the instance sends 100. */
export type BodyState = 'none' | 'held' | 'waiting' | 'flowing' | 'sent';

/**
 * An instance that ignores `Expect` sends no 100: after this time the body is sent anyway (RFC 9110 section 10.1.1).
 */
const INVITATION_MS = 1_000;

export function bodyOf(request: VisitorRequest): BodyState {
  const length = request.headers['content-length'];
  return isChunked(request) || (length !== undefined && length !== '0') ? 'held' : 'none';
}

/**
 * Returns the whole body of a simple request, to be sent together with the head. It is marked as sent, and counted
 * once, even if another instance gets it again after a refused connection.
 */
export function takeWholeBody(proxied: ProxiedRequest): string {
  const body = proxied.request.body ?? null;
  if (body === null) return '';
  proxied.body = 'sent';
  proxied.receivedBytes = body.length;
  return body.toString('latin1');
}

/** Starts sending the body, once. A client that waits for 100 gets it when the instance has sent it: `invited`. */
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
  if (socket === null) return; // the response came early: discard the rest
  if (proxied.site.service === null && proxied.receivedBytes > proxied.ingress.limits.bodyBytes)
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
