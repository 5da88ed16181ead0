// One HTTP request over a dedicated connection. No agent, no cookies; redirects are followed in follow_redirects.ts.
import { request as requestHttp, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Outbound } from '../outbound';
import { OutboundError, timed, type Trace } from './trace';
import { openSocket, secure, abortable } from './socket';

export interface Exchange {
  url: URL;
  /** Of its host, where a caller has resolved them. They are judged again. */
  addresses?: readonly string[];
  method: string;
  headers: readonly { name: string; value: string }[];
  body?: Buffer | undefined;
  verifyTls: boolean;
  /** Limit of the response body; bytes beyond it are not read. */
  bodyBytesMax: number;
}

export interface Answered {
  status: number;
  headers: IncomingHttpHeaders;
  /** The body, at most `bodyBytesMax` bytes. */
  body: Buffer;
}

/** @throws OutboundError; the reason of the signal */
export async function exchange(
  outbound: Outbound,
  target: Exchange,
  trace: Trace,
  signal: AbortSignal,
): Promise<Answered> {
  const { response, close } = await openExchange(outbound, target, trace, signal);
  try {
    trace.phase = 'body';
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      body: await abortable(signal, read(response, target.bodyBytesMax)),
    };
  } finally {
    close();
  }
}

/** An answer whose body is still to be read. `close` ends the connection. */
export interface OpenAnswer {
  response: IncomingMessage;
  close(): void;
}

/** @throws OutboundError; the reason of the signal */
export async function openExchange(
  outbound: Outbound,
  target: Omit<Exchange, 'bodyBytesMax'>,
  trace: Trace,
  signal: AbortSignal,
): Promise<OpenAnswer> {
  const { url, addresses, verifyTls: verify } = target;
  const isTls = url.protocol === 'https:';
  const host = url.hostname;
  const port = Number(url.port) || (isTls ? 443 : 80);
  const socket = await openSocket(outbound, { host, port, addresses }, trace, signal);
  const destroy = (): void => void socket.destroy();
  const close = (): void => {
    signal.removeEventListener('abort', destroy);
    destroy();
  };
  signal.addEventListener('abort', destroy, { once: true });
  try {
    const used = isTls ? await secure(outbound, socket, { host, verify }, trace, signal) : socket;
    return { response: await timed(trace, 'first_byte_ms', () => abortable(signal, send(used, target))), close };
  } catch (error) {
    close();
    throw error;
  }
}

function send(
  socket: Socket,
  { url, method, headers, body }: Pick<Exchange, 'url' | 'method' | 'headers' | 'body'>,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const failed = ({ code = 'unknown' }: NodeJS.ErrnoException): void => reject(answerError(code));
    const request = requestHttp({
      createConnection: () => socket,
      method,
      path: url.pathname + url.search,
      headers: [
        ...['Host', url.host, 'Connection', 'close'],
        ...headers.flatMap(({ name, value }) => [name, value]),
        ...(body || method === 'POST' ? ['Content-Length', String(body?.length ?? 0)] : []),
      ],
    });
    request.on('error', failed);
    request.once('response', resolve);
    request.once('upgrade', (_, upgraded) => {
      upgraded.destroy();
      reject(answerError('upgrade'));
    });
    request.end(body);
  });
}

function answerError(code: string): OutboundError {
  if (code === 'ECONNRESET' || code === 'EPIPE')
    return new OutboundError('first_byte', 'The connection was closed before an answer came.', false);
  if (code.startsWith('HPE_')) return new OutboundError('first_byte', `The answer is not valid HTTP (${code}).`, false);
  return new OutboundError('first_byte', `The request failed (${code}).`, false);
}

function read(response: IncomingMessage, max: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const done = (): void => resolve(Buffer.concat(chunks).subarray(0, max));
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size < max) return;
      done();
      response.destroy();
    });
    response.once('end', done);
    const broken = (): void => reject(new OutboundError('body', 'The answer broke off before its end.', false));
    response.once('error', broken);
    response.once('close', broken);
  });
}
