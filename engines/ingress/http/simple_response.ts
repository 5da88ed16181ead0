// Writes the response to a simple request: head and small body in one write. Same rules as node:http: a default `Date`,
// chunked encoding without a length, and no characters that could inject a line.
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { deferWrite } from './deferred_writes';
import type { VisitorResponse } from '../visitor';

export interface SimpleResponse extends VisitorResponse {
  /** Set until the head is written. */
  head: string | null;
  isChunked: boolean;
  isBodyless: boolean;
  trailers: string;
  headersSent: boolean;
  /** The response is complete: the connection may serve the next request. */
  isEnded: boolean;
  writableFinished: boolean;
  writableNeedDrain: boolean;
  keepAliveSeconds: number;
  onClose: (() => void) | null;
  onDrain: (() => void) | null;
  onFinish: (error?: Error | null) => void;
  socket: Socket;
}

/** Characters not allowed in a head: control characters other than a tab, and line ends other than CRLF. */
const UNFIT = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f\u0100-\uffff]|\r(?!\n)|(?<!\r)\n/;
const NO_CONTENT = 204;
const NOT_MODIFIED = 304;

/** `onFinish` is called once the kernel has accepted the last byte. */
export function simpleResponse(
  socket: Socket,
  method: string,
  keepAliveSeconds: number,
  onFinish: SimpleResponse['onFinish'],
): SimpleResponse {
  return {
    shouldKeepAlive: true,
    head: null,
    isChunked: false,
    isBodyless: method === 'HEAD',
    trailers: '',
    headersSent: false,
    isEnded: false,
    writableFinished: false,
    writableNeedDrain: false,
    keepAliveSeconds,
    onClose: null,
    onDrain: null,
    onFinish,
    socket,
    writeHead,
    flushHeaders,
    writeContinue: ignore,
    writeEarlyHints,
    addTrailers,
    write,
    end,
    destroy,
    on,
    once,
  };
}

function writeHead(
  this: SimpleResponse,
  status: number,
  message: string | Record<string, string | number>,
  list: string[] = [],
): void {
  const isList = typeof message === 'string';
  const headers = isList ? list : Object.entries(message).flatMap(([name, value]) => [name, String(value)]);
  let head = `HTTP/1.1 ${status} ${isList ? message : STATUS_CODES[status]}\r\n`;
  let hasDate = false;
  let hasLength = false;
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index] as string;
    if (name.length === 4) hasDate ||= name.toLowerCase() === 'date';
    else if (name.length === 14) hasLength ||= name.toLowerCase() === 'content-length';
    head += `${name}: ${headers[index + 1]}\r\n`;
  }
  if (UNFIT.test(head)) throw new Error('a header has a character that must not stand there');
  if (!hasDate) head += `Date: ${dateText()}\r\n`;
  head += this.shouldKeepAlive
    ? `Connection: keep-alive\r\nKeep-Alive: timeout=${this.keepAliveSeconds}\r\n`
    : 'Connection: close\r\n';
  this.isBodyless ||= status === NO_CONTENT || status === NOT_MODIFIED;
  this.isChunked = !hasLength && !this.isBodyless;
  this.head = `${head}${this.isChunked ? 'Transfer-Encoding: chunked\r\n' : ''}\r\n`;
  this.headersSent = true;
}

function flushHeaders(this: SimpleResponse): void {
  const { head } = this;
  if (head === null) return;
  this.head = null;
  this.socket.write(head, 'latin1');
}

function writeEarlyHints(this: SimpleResponse, { link }: { link: string[] }): void {
  const head = `HTTP/1.1 103 Early Hints\r\nLink: ${link.join(', ')}\r\n\r\n`;
  if (!UNFIT.test(head)) this.socket.write(head, 'latin1');
}

function addTrailers(this: SimpleResponse, trailers: [string, string][]): void {
  const text = trailers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  if (UNFIT.test(text)) throw new Error('a trailer has a character that must not stand there');
  this.trailers = text;
}

function write(this: SimpleResponse, chunk: Buffer | string, encoding: BufferEncoding = 'utf8'): boolean {
  const { socket, isChunked } = this;
  if (this.isBodyless || this.isEnded || chunk.length === 0) return true;
  socket.cork();
  flushHeaders.call(this);
  const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk;
  if (isChunked) socket.write(`${bytes.length.toString(16)}\r\n`, 'latin1');
  socket.write(bytes);
  if (isChunked) socket.write('\r\n', 'latin1');
  socket.uncork();
  this.writableNeedDrain = socket.writableNeedDrain;
  return !this.writableNeedDrain;
}

function end(this: SimpleResponse, last: Buffer | string | null = null, encoding: BufferEncoding = 'utf8'): void {
  const { socket, isChunked } = this;
  if (this.isEnded) return;
  let text = this.head ?? '';
  const hasBody = last !== null && last.length > 0 && !this.isBodyless;
  if (hasBody && typeof last === 'string' && encoding === 'latin1') {
    text += isChunked ? `${last.length.toString(16)}\r\n${last}\r\n` : last;
  } else if (hasBody) {
    write.call(this, last, encoding);
    text = '';
  }
  this.head = null;
  this.isEnded = true;
  if (isChunked) text += `0\r\n${this.trailers}\r\n`;
  deferWrite(socket, text, this.onFinish);
}

function destroy(this: SimpleResponse): void {
  if (!this.writableFinished) this.socket.destroy();
}

function on(this: SimpleResponse, event: 'close' | 'error', listener: () => void): void {
  if (event === 'close') this.onClose = listener;
}

function once(this: SimpleResponse, _event: 'drain', listener: () => void): void {
  this.onDrain = listener;
}

let dateAt = 0;
let date = '';

function dateText(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== dateAt) [dateAt, date] = [second, new Date(second * 1000).toUTCString()];
  return date;
}

function ignore(): void {
  // The body of a simple request is always complete, so no client waits for 100.
}
