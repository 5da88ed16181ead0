// Parses responses of instances (RFC 9112). Strict: ambiguous framing is an error, since connections are reused and one
// response must never leak into the next.
import { HOP_BY_HOP } from '../../../core/protocols/hop_by_hop';

export interface ResponseHead {
  status: number;
  message: string;
  /** Alternating names and values, without hop-by-hop headers. */
  headers: string[];
}

/** Receives parsed responses. Buffers are reused once the parse call has returned: a sink must copy what it keeps. */
export interface ResponseSink {
  /** 1xx except 101. */
  onInformational(head: ResponseHead): void;
  /** 101: the connection is no longer HTTP. `rest` came after the head. */
  onSwitchingProtocols(head: ResponseHead, rest: Buffer): void;
  onHead(head: ResponseHead): void;
  onBodyChunk(chunk: Buffer): void;
  /** The response is complete. `trailers` has the form of `headers`. */
  onComplete(trailers: string[]): void;
}

type Mode = 'idle' | 'head' | 'length' | 'size' | 'chunk' | 'chunk_end' | 'trailers' | 'until_close' | 'over';

export interface ResponseParser {
  mode: Mode;
  /** An incomplete line or head. */
  buffered: Buffer | null;
  remainingBytes: number;
  /** Responses to HEAD have no body. */
  bodyless: boolean;
  /** The instance keeps the connection alive. */
  keepAlive: boolean;
  /** Idle time promised in `Keep-Alive: timeout`, in seconds. */
  keepAliveSeconds: number | null;
  /** Number of 1xx responses so far. */
  informational: number;
}

interface Framing {
  lengths: string[];
  transfer: string | null;
  connection: string;
  keepAliveSeconds: number | null;
  minor: number;
}

const HEAD_END = Buffer.from('\r\n\r\n');
const LINE_END = Buffer.from('\r\n');
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const CHUNK_LINE_BYTES = 1024;
/** Each 1xx costs a head and a write to the visitor. */
const INFORMATIONAL_MAX = 20;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: (.*))?$/;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HAS_CLOSE = /(?:^|,)\s*close\s*(?:,|$)/i;
const HAS_KEEP_ALIVE = /(?:^|,)\s*keep-alive\s*(?:,|$)/i;
const DROPPED = new Set([...HOP_BY_HOP, 'proxy-authenticate']);

export function responseParser(): ResponseParser {
  return {
    mode: 'idle',
    buffered: null,
    remainingBytes: 0,
    bodyless: false,
    keepAlive: false,
    keepAliveSeconds: null,
    informational: 0,
  };
}

/** To be called when a request is sent. */
export function expectResponse(parser: ResponseParser, method: string): void {
  parser.mode = 'head';
  parser.bodyless = method === 'HEAD';
  parser.informational = 0;
}

/**
 * Parses received bytes; afterwards only the sink may hold references to the buffer. Throws an Error for a protocol
 * violation; the connection must not be used then.
 */
export function parseResponse(parser: ResponseParser, sink: ResponseSink, bytes: Buffer, headBytes: number): void {
  let rest: Buffer | null = parser.buffered === null ? bytes : Buffer.concat([parser.buffered, bytes]);
  parser.buffered = null;
  while (rest !== null && rest.length > 0) rest = step(parser, sink, rest, headBytes);
}

/** Whether closing the connection properly ends the current response. */
export function isDelimitedByClose(parser: ResponseParser): boolean {
  return parser.mode === 'until_close';
}

function step(parser: ResponseParser, sink: ResponseSink, bytes: Buffer, headBytes: number): Buffer | null {
  switch (parser.mode) {
    case 'head':
      return readHead(parser, sink, bytes, headBytes);
    case 'length':
      return readLength(parser, sink, bytes);
    case 'size':
      return readSize(parser, bytes);
    case 'chunk':
      return readChunk(parser, sink, bytes);
    case 'chunk_end':
      return readChunkEnd(parser, bytes);
    case 'trailers':
      return readTrailers(parser, sink, bytes, headBytes);
    case 'until_close':
      return (sink.onBodyChunk(bytes), null);
    case 'over':
      return null;
    case 'idle':
      throw new Error('bytes after the end of the response');
  }
}

function readHead(parser: ResponseParser, sink: ResponseSink, bytes: Buffer, headBytes: number): Buffer | null {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd < 0 ? bytes.length > headBytes : headEnd > headBytes) throw new Error('the headers are too large');
  if (headEnd < 0) return bufferLines(parser, bytes);
  const lines = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const [, minor, status, message = ''] = STATUS_LINE.exec(lines[0] as string) ?? [];
  if (status === undefined) throw new Error('no status line');
  const framing: Framing = {
    lengths: [],
    transfer: null,
    connection: '',
    keepAliveSeconds: null,
    minor: Number(minor),
  };
  const head = { status: Number(status), message, headers: readHeaders(lines, 1, framing) };
  const rest = bytes.subarray(headEnd + HEAD_END.length);
  if (head.status === 101) return ((parser.mode = 'over'), sink.onSwitchingProtocols(head, rest), null);
  if (head.status < 200) {
    parser.informational += 1;
    if (parser.informational > INFORMATIONAL_MAX) throw new Error('too many informational responses');
    return (sink.onInformational(head), rest);
  }
  if (head.status === 204) head.headers = withoutLength(head.headers);
  setFraming(parser, head.status, framing);
  sink.onHead(head);
  return finishEmpty(parser, sink, rest);
}

function readHeaders(lines: string[], from: number, framing: Framing): string[] {
  const headers: string[] = [];
  for (let index = from; index < lines.length; index += 1) {
    const line = lines[index] as string;
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(colon, 0));
    if (!NAME.test(name)) throw new Error('a header is malformed');
    const value = line.slice(colon + 1).trim();
    if (value.includes('\n')) throw new Error('a line ends in a bare line feed');
    if (isHopByHop(name, value, framing)) continue;
    headers.push(name, value);
  }
  return framing.connection === '' ? headers : withoutNamed(headers, framing.connection);
}

// By length first: this excludes most headers without a lower-case copy.
function isHopByHop(name: string, value: string, framing: Framing): boolean {
  const { length } = name;
  if (length !== 14 && length !== 10 && length !== 17 && length !== 7 && length !== 2 && length !== 16 && length !== 18)
    return false;
  const lower = name.toLowerCase();
  if (lower === 'content-length') return framing.lengths.push(value) > 1;
  if (lower === 'connection') framing.connection += `${framing.connection && ','}${value}`;
  if (lower === 'transfer-encoding')
    framing.transfer = framing.transfer === null ? value : `${framing.transfer}, ${value}`;
  if (lower === 'keep-alive') framing.keepAliveSeconds = Number(/timeout=(\d{1,6})/i.exec(value)?.[1] ?? NaN) || null;
  return DROPPED.has(lower);
}

/** Removes headers named by `Connection`, except for framing. */
export function withoutNamed(headers: string[], connection: string): string[] {
  const named = new Set(
    connection
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  );
  if ([...named].every((name) => name === 'close' || name === 'keep-alive' || name === 'upgrade')) return headers;
  return headers.filter((_, index) => {
    const name = (headers[index - (index % 2)] as string).toLowerCase();
    return name === 'content-length' || name === 'host' || !named.has(name);
  });
}

/** RFC 9110 section 8.6: a server must not send a length with 204. */
function withoutLength(headers: string[]): string[] {
  return headers.filter((_, index) => (headers[index - (index % 2)] as string).toLowerCase() !== 'content-length');
}

// RFC 9112 section 6.3.
function setFraming(parser: ResponseParser, status: number, framing: Framing): void {
  parser.keepAlive =
    framing.minor === 1 ? !HAS_CLOSE.test(framing.connection) : HAS_KEEP_ALIVE.test(framing.connection);
  parser.keepAliveSeconds = framing.keepAliveSeconds;
  const [length, ...more] = framing.lengths;
  if (length !== undefined && (!/^\d{1,15}$/.test(length) || more.some((other) => other !== length)))
    throw new Error('Content-Length is malformed');
  if (framing.transfer !== null && (length !== undefined || framing.minor === 0))
    throw new Error('the length of the body is ambiguous');
  if (framing.transfer !== null && framing.transfer.toLowerCase() !== 'chunked')
    throw new Error('the transfer coding is unknown');
  parser.remainingBytes = length === undefined ? 0 : Number(length);
  if (parser.bodyless || status === 204 || status === 304) return setMode(parser, 'idle');
  if (framing.transfer !== null) return setMode(parser, 'size');
  setMode(parser, length === undefined ? 'until_close' : parser.remainingBytes === 0 ? 'idle' : 'length');
  if (parser.mode === 'until_close') parser.keepAlive = false;
}

function finishEmpty(parser: ResponseParser, sink: ResponseSink, rest: Buffer): Buffer | null {
  if (parser.mode === 'idle') return completeResponse(parser, sink, [], rest);
  return rest;
}

function readLength(parser: ResponseParser, sink: ResponseSink, bytes: Buffer): Buffer | null {
  if (bytes.length < parser.remainingBytes) {
    parser.remainingBytes -= bytes.length;
    return (sink.onBodyChunk(bytes), null);
  }
  sink.onBodyChunk(bytes.length === parser.remainingBytes ? bytes : bytes.subarray(0, parser.remainingBytes));
  return completeResponse(parser, sink, [], bytes.subarray(parser.remainingBytes));
}

function readSize(parser: ResponseParser, bytes: Buffer): Buffer | null {
  const lineEnd = bytes.indexOf(LINE_END);
  if (lineEnd < 0 ? bytes.length > CHUNK_LINE_BYTES : lineEnd > CHUNK_LINE_BYTES)
    throw new Error('the line of a chunk is too long');
  if (lineEnd < 0) return bufferLines(parser, bytes);
  const size = /^([0-9a-f]{1,8})[ \t]*(?:;.*)?$/i.exec(bytes.toString('latin1', 0, lineEnd))?.[1];
  if (size === undefined) throw new Error('the size of a chunk is malformed');
  parser.remainingBytes = Number.parseInt(size, 16);
  setMode(parser, parser.remainingBytes === 0 ? 'trailers' : 'chunk');
  return bytes.subarray(lineEnd + LINE_END.length);
}

function readChunk(parser: ResponseParser, sink: ResponseSink, bytes: Buffer): Buffer | null {
  const size = Math.min(parser.remainingBytes, bytes.length);
  parser.remainingBytes -= size;
  if (parser.remainingBytes === 0) setMode(parser, 'chunk_end');
  sink.onBodyChunk(bytes.subarray(0, size));
  return bytes.subarray(size);
}

function readChunkEnd(parser: ResponseParser, bytes: Buffer): Buffer | null {
  if (bytes.length < LINE_END.length) return bufferRest(parser, bytes);
  if (bytes[0] !== 0x0d || bytes[1] !== 0x0a) throw new Error('a chunk does not end where it should');
  setMode(parser, 'size');
  return bytes.subarray(LINE_END.length);
}

function readTrailers(parser: ResponseParser, sink: ResponseSink, bytes: Buffer, headBytes: number): Buffer | null {
  const empty = bytes.indexOf(LINE_END) === 0;
  const close = empty ? 0 : bytes.indexOf(HEAD_END);
  if (close < 0 ? bytes.length > headBytes : close > headBytes) throw new Error('the trailers are too large');
  if (close < 0) return bufferLines(parser, bytes);
  const framing: Framing = { lengths: [], transfer: null, connection: '', keepAliveSeconds: null, minor: 1 };
  const trailers = empty ? [] : readHeaders(bytes.toString('latin1', 0, close).split('\r\n'), 0, framing);
  // Framing in trailers must not be forwarded (RFC 9110 section 6.5.1).
  if (framing.lengths.length > 0 || framing.transfer !== null) throw new Error('framing in a trailer');
  return completeResponse(parser, sink, trailers, bytes.subarray(close + (empty ? LINE_END : HEAD_END).length));
}

function completeResponse(parser: ResponseParser, sink: ResponseSink, trailers: string[], rest: Buffer): Buffer | null {
  setMode(parser, 'idle');
  if (rest.length > 0) parser.keepAlive = false;
  sink.onComplete(trailers);
  return null;
}

// Buffers incomplete lines. A line with a bare LF would be buffered until the timeout.
function bufferLines(parser: ResponseParser, bytes: Buffer): null {
  for (let at = bytes.indexOf(LINE_FEED); at >= 0; at = bytes.indexOf(LINE_FEED, at + 1))
    if (bytes[at - 1] !== CARRIAGE_RETURN) throw new Error('a line ends in a bare line feed');
  return bufferRest(parser, bytes);
}

function bufferRest(parser: ResponseParser, bytes: Buffer): null {
  parser.buffered = Buffer.from(bytes);
  return null;
}

// A function, so that the compiler does not narrow the mode across calls.
function setMode(parser: ResponseParser, mode: Mode): void {
  parser.mode = mode;
}
