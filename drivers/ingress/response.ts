// The end of an exchange: the last bytes to the client, and the books.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AccessLine } from '../ingress';
import type { Exchange } from './exchange';
import { render, type Page } from './pages';
import { countBytes, countRequest } from './traffic';
import { cutLine, leave } from './upstream';

const LINGER_MS = 2_000;
const PATH_LENGTH = 2_048;
/** As nginx has it: the client went away before it had its answer. */
const CLIENT_GONE = 499;
const ending = new WeakSet<object>();

/** This answer is the last one of its connection: what comes after the request is not served, also if it is there already. */
export function makeLast(response: ServerResponse): void {
  response.shouldKeepAlive = false;
  if (response.socket !== null) ending.add(response.socket);
}

/** Whether the last answer on a connection is on its way. */
export function isEnding(socket: object): boolean {
  return ending.has(socket);
}

/** Answers with a page of the ingress. */
export function say(exchange: Exchange, page: Page, more: Record<string, string> = {}): void {
  const { response, request, caller } = exchange;
  if (exchange.closed || response.headersSent) return void response.destroy();
  const { headers, body } = render(page, request, caller.requestId);
  if (exchange.gate.closing || exchange.body === 'waiting' || (!request.complete && exchange.body !== 'none'))
    makeLast(response);
  exchange.status = page.status;
  exchange.reason = page.reason;
  exchange.answered = true;
  exchange.ended = true;
  exchange.touchedMs = performance.now();
  exchange.sentBytes += request.method === 'HEAD' ? 0 : Buffer.byteLength(body);
  response.writeHead(page.status, { ...headers, ...more });
  endResponse(exchange, body);
}

/** The answer has not come, or no byte of it for too long. */
export function giveUp(exchange: Exchange, page: Page): void {
  abandon(exchange);
  if (!exchange.answered) return say(exchange, page);
  exchange.reason = page.reason;
  exchange.response.destroy();
}

/** Takes the request off its instance, whatever stage it is in. */
export function abandon(exchange: Exchange): void {
  if (exchange.line !== null) cutLine(exchange.line);
  depart(exchange);
}

/** The instance has nothing more to do with the request. */
export function depart(exchange: Exchange): void {
  const { upstream } = exchange;
  exchange.line = null;
  exchange.upstream = null;
  if (upstream !== null) leave(upstream);
}

/** Ends the response. `last` as a string is bytes in latin1, or the text of a page. */
export function endResponse(exchange: Exchange, last: Buffer | string | null): void {
  const { response, request } = exchange;
  const encoding = exchange.reason === null ? 'latin1' : 'utf8';
  if (exchange.body === 'none' || request.complete || exchange.upgrade !== null) return end(response, last, encoding);
  if (last !== null && last.length > 0) write(response, last, encoding);
  linger(request, response);
}

/**
 * Ends a response before its request. A connection that is closed while bytes come in is reset, and with it goes the
 * answer that the client has not read yet (RFC 9112 section 9.6). So what still comes is thrown away for a while.
 */
export function linger(request: IncomingMessage, response: ServerResponse): void {
  makeLast(response);
  const done = (): void => void response.end();
  const timer = setTimeout(done, LINGER_MS).unref();
  request.once('close', () => (clearTimeout(timer), done()));
  request.once('end', () => (clearTimeout(timer), done()));
  request.resume();
}

/** Counts the request out and writes its line. */
export function closeExchange(exchange: Exchange): void {
  if (exchange.closed) return;
  exchange.closed = true;
  const { gate, site, response } = exchange;
  if (!exchange.ended && exchange.status !== 101) {
    exchange.reason ??= 'client_gone';
    if (!exchange.answered) exchange.status = CLIENT_GONE;
  } else if (exchange.status !== 101 && !response.writableFinished) exchange.reason ??= 'client_gone';
  abandon(exchange);
  gate.running.delete(exchange);
  site.application.open -= 1;
  const duration = performance.now() - exchange.startedMs;
  if (exchange.status !== 101) {
    countRequest(gate.book, exchange.owner, exchange.status, duration);
    countBytes(gate.book, exchange.owner, exchange.receivedBytes, exchange.sentBytes);
  }
  gate.parts.line(lineOf(exchange, duration));
}

function end(response: ServerResponse, last: Buffer | string | null, encoding: BufferEncoding): void {
  if (last === null) return void response.end();
  response.end(last, encoding);
}

function write(response: ServerResponse, last: Buffer | string, encoding: BufferEncoding): void {
  if (typeof last === 'string') response.write(last, encoding);
  else response.write(last);
}

function lineOf(exchange: Exchange, durationMs: number): AccessLine {
  const { request, owner, target } = exchange;
  const query = target.indexOf('?');
  const path = query < 0 ? target : target.slice(0, query);
  return {
    at: exchange.at,
    application_id: owner.application_id,
    preview_id: owner.preview_id,
    instance_id: owner.instance_id,
    method: request.method ?? '',
    host: exchange.host,
    path: path.length > PATH_LENGTH ? path.slice(0, PATH_LENGTH) : path,
    status: exchange.status,
    duration_ms: Math.round(durationMs * 100) / 100,
    bytes_sent: exchange.sentBytes,
    client_address: exchange.caller.address,
    request_id: exchange.caller.requestId,
    reason: exchange.reason,
  };
}
