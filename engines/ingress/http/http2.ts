// HTTP/2 for visitors over TLS (RFC 9113), including WebSockets (RFC 8441). Each stream becomes an HTTP/1.1 request on
// an in-memory connection to the HTTP/1.1 server, so that rules, limits and log lines exist once.
import { randomBytes } from 'node:crypto';
import http, { type ClientRequest, type IncomingMessage, type Server } from 'node:http';
import http2, {
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { duplexPair, type Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { HOP_BY_HOP } from '../../../core/protocols/hop_by_hop';
import type { IngressLimits } from '../limits';

export interface Http2Visitors {
  /** Takes over a connection that negotiated `h2`. */
  accept(socket: TLSSocket): void;
  /** Accepts no new streams: sessions end after their last stream (RFC 9113 section 6.8). */
  close(): void;
}

type Origin = Pick<TLSSocket, 'remoteAddress' | 'remotePort'>;
type Field = [name: string, value: string];

const STREAMS = 100;
const { NGHTTP2_NO_ERROR, NGHTTP2_INTERNAL_ERROR } = http2.constants;
/** Fields that belong to the in-memory connection only (RFC 9113 section 8.2.2). */
const DROPPED = new Set(HOP_BY_HOP);
const OF_HANDSHAKE = new Set(['sec-websocket-protocol', 'sec-websocket-extensions', 'set-cookie', 'x-request-id']);

/** `server` handles the requests; it has no listener itself. */
export function http2Visitors(server: Server, limits: IngressLimits): Http2Visitors {
  const sessions = new Set<ServerHttp2Session>();
  return {
    accept(socket) {
      const session = http2.performServerHandshake(socket, {
        maxHeaderListPairs: limits.headers,
        settings: { maxConcurrentStreams: STREAMS, maxHeaderListSize: limits.headerBytes, enableConnectProtocol: true },
      });
      const origin = { remoteAddress: socket.remoteAddress, remotePort: socket.remotePort };
      sessions.add(session);
      session.on('close', () => sessions.delete(session));
      session.on('error', () => undefined); // the session closes itself
      session.setTimeout(limits.keepAliveMs, () => session.close());
      session.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, raw: string[]) =>
        serveStream(stream, headers, raw, { origin, server, limits }),
      );
    },
    // Streams on their way get REFUSED_STREAM, after which clients ask again by themselves (RFC 9113 section 8.7): Node
    // offers no notice that would serve them.
    close: () => sessions.forEach((session) => session.close()),
  };
}

function serveStream(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  raw: readonly string[],
  { origin, server, limits }: { origin: Origin; server: Server; limits: IngressLimits },
): void {
  stream.on('error', () => undefined); // the stream closes itself
  const isTunnel = headers[':method'] === 'CONNECT';
  if (isTunnel && headers[':protocol'] !== 'websocket') return stream.respond({ ':status': 501 }, { endStream: true });
  const connection = connect(server, origin);
  const request = requestOf(stream, headers, fieldsOf(headers, raw, stream.endAfterHeaders), connection, limits);
  if (request === null) return;
  // Once the response has begun, its own events report that it was aborted or is complete.
  request.on('error', () => void (stream.headersSent || breakOff(stream)));
  stream.on('close', () => request.destroy());
  request.on('information', ({ statusCode, rawHeaders }) => informOf(stream, statusCode, rawHeaders));
  request.on('response', (response) => sendResponse(stream, response));
  request.on('upgrade', (response, socket, head) => openTunnel(stream, response, socket, head));
  if (isTunnel || stream.endAfterHeaders) return void request.end();
  stream.on('trailers', (trailers: IncomingHttpHeaders) => request.addTrailers(trailers as Record<string, string>));
  stream.pipe(request);
}

/** null: the request cannot be sent, and was rejected. */
function requestOf(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  fields: Field[],
  connection: Duplex,
  limits: IngressLimits,
): ClientRequest | null {
  const isTunnel = headers[':method'] === 'CONNECT';
  const key = randomBytes(16).toString('base64');
  const upgrade: Field[] = [
    ['Connection', 'Upgrade'],
    ['Upgrade', 'websocket'],
    ['Sec-WebSocket-Key', key],
  ];
  try {
    const request = http.request({
      createConnection: () => connection,
      method: isTunnel ? 'GET' : headers[':method'],
      path: headers[':path'],
      headers: (isTunnel ? [...fields, ...upgrade] : fields).flat(),
      // For the headers of the application and those that the ingress adds.
      maxHeaderSize: 2 * limits.headerBytes,
    });
    request.maxHeadersCount = 0;
    return request;
  } catch {
    connection.destroy();
    stream.respond({ ':status': 400 }, { endStream: true });
    return null;
  }
}

/** Creates an in-memory connection: the server gets one end, this function returns the other. */
function connect(server: Server, origin: Origin): Duplex {
  const [ours, theirs] = duplexPair();
  const destroySoon = (): void => void theirs.end(() => theirs.destroy());
  // A side that is closed without an end was aborted: abort the other side too.
  for (const [one, other] of [
    [ours, theirs],
    [theirs, ours],
  ] as const) {
    one.on('error', () => undefined);
    one.on('close', () => void (one.writableFinished || other.destroy()));
  }
  server.emit('connection', Object.assign(likeSocket(theirs), { ...origin, encrypted: true, destroySoon }));
  return ours;
}

/** Adds the socket properties that node:http and responses use: bytesWritten and an idle timeout. */
function likeSocket(stream: Duplex): Duplex {
  const write = stream._write.bind(stream);
  let bytesWritten = 0;
  let silence: NodeJS.Timeout | undefined;
  stream._write = (chunk: Buffer, encoding, done) => {
    bytesWritten += chunk.length;
    silence?.refresh();
    write(chunk, encoding, (error) => {
      silence?.refresh();
      done(error);
    });
  };
  const setSilence = (ms: number): Duplex => {
    clearTimeout(silence);
    silence = ms > 0 ? setTimeout(() => stream.emit('timeout'), ms).unref() : undefined;
    return stream;
  };
  stream.on('close', () => setSilence(0));
  return Object.defineProperties(stream, {
    bytesWritten: { get: () => bytesWritten },
    setTimeout: { value: setSilence },
  });
}

// `:authority` replaces the Host of HTTP/1.1: where both exist and differ, both are passed on, and the request is
// rejected. Cookies may be split into several fields (RFC 9113 section 8.2.3).
function fieldsOf(headers: IncomingHttpHeaders, raw: readonly string[], isWhole: boolean): Field[] {
  const authority = headers[':authority'];
  const fields: Field[] = authority === undefined ? [] : [['Host', authority]];
  const cookies: string[] = [];
  for (let index = 0; index < raw.length; index += 2) {
    const [name, value] = [raw[index] as string, raw[index + 1] as string];
    if (name === 'cookie') cookies.push(value);
    else if (!name.startsWith(':') && !(name === 'host' && value === authority)) fields.push([name, value]);
  }
  if (cookies.length > 0) fields.push(['cookie', cookies.join('; ')]);
  if (!isWhole && headers['content-length'] === undefined && headers[':method'] !== 'CONNECT')
    fields.push(['Transfer-Encoding', 'chunked']);
  return fields;
}

function informOf(stream: ServerHttp2Stream, status: number, raw: readonly string[]): void {
  if (stream.headersSent || stream.destroyed || status === 101) return;
  stream.additionalHeaders({ ...outgoing(raw), ':status': status });
}

function sendResponse(stream: ServerHttp2Stream, response: IncomingMessage): void {
  if (stream.destroyed) return;
  response.on('error', () => breakOff(stream));
  stream.on('wantTrailers', () => stream.sendTrailers(outgoing(response.rawTrailers)));
  // Stops an upload that is no longer read.
  stream.on('finish', () => void (stream.readableEnded || stream.close(NGHTTP2_NO_ERROR)));
  try {
    stream.respond({ ...outgoing(response.rawHeaders), ':status': response.statusCode }, { waitForTrailers: true });
  } catch {
    return breakOff(stream); // a repeated field that must be unique
  }
  response.pipe(stream);
}

function openTunnel(stream: ServerHttp2Stream, response: IncomingMessage, socket: Duplex, head: Buffer): void {
  if (stream.destroyed) return void socket.destroy();
  const fields = Object.entries(outgoing(response.rawHeaders)).filter(([name]) => OF_HANDSHAKE.has(name));
  stream.respond({ ...Object.fromEntries(fields), ':status': 200 });
  if (head.length > 0) stream.write(head);
  socket.on('close', () => stream.close(NGHTTP2_NO_ERROR));
  stream.on('close', () => socket.destroy());
  socket.pipe(stream);
  stream.pipe(socket);
}

function breakOff(stream: ServerHttp2Stream): void {
  if (!stream.destroyed && !stream.writableFinished) stream.close(NGHTTP2_INTERNAL_ERROR);
}

function outgoing(raw: readonly string[]): OutgoingHttpHeaders {
  const headers: Record<string, string[]> = {};
  for (let index = 0; index < raw.length; index += 2) {
    const name = (raw[index] as string).toLowerCase();
    if (!DROPPED.has(name)) (headers[name] ??= []).push(raw[index + 1] as string);
  }
  return Object.fromEntries(
    Object.entries(headers).map(([name, values]) => [name, values.length === 1 ? values[0] : values]),
  );
}
