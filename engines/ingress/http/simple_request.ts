// Parses simple requests, which are the large majority: HTTP/1.1 with a path, no body or one received together with the
// head, and no unusual fields. All other input goes to the parser of node:http unchanged: this parser neither rejects
// nor repairs anything.
import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { EDGE_FIELD } from '../../cdn';
import type { IngressLimits } from '../limits';
import type { VisitorRequest } from '../visitor';

interface SimpleRequest extends VisitorRequest {
  readonly method: string;
  readonly url: string;
  readonly authority: string;
  /** The client closes the connection after the response. */
  readonly isLast: boolean;
}

/**
 * RFC 9112 §2 to §5 without its optional leniency: no leading empty line, single spaces, a path of visible characters
 * without `#`, CRLF only, no folded line, no space before a colon, no control character but a tab in a value.
 */
const SIMPLE = /^([A-Z]{3,7}) (\/[!"$-~]*) HTTP\/1\.1\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*\r\n)+\r\n$/;
const HEAD_END = Buffer.from('\r\n\r\n');
/** `GET / HTTP/1.1`, its line end, and the end of the head. */
const SHORTEST = 18;
const VERSION_LENGTH = ' HTTP/1.1\r\n'.length;
const LINE_END = '\r\n';
const SPACE = 0x20;
const TAB = 0x09;
const CLOSE_OR_KEEP = /^(?:close|keep-alive)$/i;
const LENGTH = /^(?:0|[1-9]\d{0,8})$/;
const WITHOUT_BODY = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS']);
const WITH_BODY = new Set(['POST', 'PUT', 'PATCH']);

/** Chunked bodies, protocol upgrades, and the alias of `Connection` that Node's parser also honours. */
const UNUSUAL = new Set(['transfer-encoding', 'expect', 'upgrade', 'trailer', 'te', 'proxy-connection']);
/** Fields that the ingress reads. Each may occur once. */
const READ = new Set([
  ...['host', 'connection', 'content-length', 'cookie', 'accept'],
  ...['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port', 'x-request-id'],
  EDGE_FIELD,
]);

const NO_TRAILERS: string[] = [];

/** Null where the bytes are not exactly one complete simple request. */
export function parseSimpleRequest(bytes: Buffer, socket: Socket, limits: IngressLimits): SimpleRequest | null {
  const headLength = bytes.indexOf(HEAD_END) + HEAD_END.length;
  if (headLength < SHORTEST || headLength > limits.headerBytes) return null;
  const text = bytes.toString('latin1', 0, headLength);
  const [, method, path] = SIMPLE.exec(text) ?? [];
  if (method === undefined || path === undefined) return null;
  const pathAt = method.length + 1;
  const rawHeaders: string[] = [];
  const headers = readHeaders(bytes, text, pathAt + path.length + VERSION_LENGTH, rawHeaders);
  if (headers?.host === undefined || rawHeaders.length > limits.headers * 2) return null;
  const { connection } = headers;
  if (connection !== undefined && !CLOSE_OR_KEEP.test(connection)) return null;
  if (!isWhole(method, headers['content-length'], bytes.length - headLength)) return null;
  return {
    httpVersionMajor: 1,
    httpVersionMinor: 1,
    method,
    // A copy: log entries must not keep the whole head in memory.
    url: bytes.toString('latin1', pathAt, pathAt + path.length),
    authority: headers.host,
    isLast: connection !== undefined && connection.length === 'close'.length,
    headers,
    rawHeaders,
    rawTrailers: NO_TRAILERS,
    socket,
    complete: true,
    body: bytes.length === headLength ? null : bytes.subarray(headLength),
    on: ignore,
    once: ignore,
    pause: ignore,
    resume: ignore,
    isPaused: isNever,
  };
}

/**
 * Whether the bytes after the head are exactly the complete body, and the method is supported here. RFC 9112 §6.3:
 * without a length there is no body.
 */
function isWhole(method: string, length: string | undefined, bytes: number): boolean {
  if (length === undefined) return bytes === 0 && (WITHOUT_BODY.has(method) || WITH_BODY.has(method));
  return WITH_BODY.has(method) && LENGTH.test(length) && Number(length) === bytes;
}

/** Reads the headers of a text that matches SIMPLE. Null where one of them makes the request unusual. */
function readHeaders(bytes: Buffer, text: string, from: number, raw: string[]): IncomingHttpHeaders | null {
  const headers: Record<string, string> = {};
  for (let at = from; at < text.length - LINE_END.length;) {
    const colon = text.indexOf(':', at);
    const lineEnd = text.indexOf(LINE_END, colon);
    const name = text.slice(at, colon);
    let [begin, end] = [colon + 1, lineEnd];
    while (begin < end && isSpace(bytes[begin])) begin += 1;
    while (begin < end && isSpace(bytes[end - 1])) end -= 1;
    const lower = name.toLowerCase();
    if (UNUSUAL.has(lower) || headers[lower] !== undefined) return null;
    if (READ.has(lower)) headers[lower] = bytes.toString('latin1', begin, end);
    raw.push(name, text.slice(begin, end));
    at = lineEnd + LINE_END.length;
  }
  return headers;
}

function isSpace(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB;
}

function ignore(): void {
  // The whole body has been received.
}

function isNever(): boolean {
  return false;
}
