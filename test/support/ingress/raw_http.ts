// HTTP as bytes, for requests that fetch would not send.
import { connect } from 'node:net';

export interface RawAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
  /** The body as JSON, null where it is none. */
  json: ({ code?: string; request_id?: string } & Record<string, unknown>) | null;
}

export interface RawOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
  /** Sends this instead of a request made of the other parts. */
  bytes?: string | Buffer;
}

/** Sends one request on a connection of its own and reads until the server closes it. */
export function rawRequest(base: string, target: string, options: RawOptions = {}): Promise<RawAnswer> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(Number(port), hostname, () =>
      socket.write(options.bytes ?? requestBytes(target, `${hostname}:${port}`, options)),
    );
    socket.setTimeout(15_000, () =>
      socket.destroy(new Error(`no answer to ${options.method ?? 'GET'} ${target.slice(0, 100)}`)),
    );
    socket.on('data', (chunk) => chunks.push(chunk));
    // A server that refuses early closes while bytes are still on their way to it: what it said counts.
    socket.on('error', (error) => (chunks.length ? resolve(parse(Buffer.concat(chunks))) : reject(error)));
    socket.on(
      'end',
      () => (
        socket.end(),
        chunks.length ? resolve(parse(Buffer.concat(chunks))) : reject(new Error('closed without an answer'))
      ),
    );
  });
}

function requestBytes(target: string, host: string, { method = 'GET', headers = {}, body }: RawOptions): Buffer {
  const length =
    body === undefined || 'Content-Length' in headers || 'Transfer-Encoding' in headers
      ? {}
      : { 'Content-Length': String(Buffer.byteLength(body)) };
  const all = { Host: host, Connection: 'close', ...length, ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([
    Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1'),
    Buffer.from(body ?? ''),
  ]);
}

function parse(bytes: Buffer): RawAnswer {
  const end = bytes.indexOf('\r\n\r\n');
  const [first = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const raw = bytes.subarray(end + 4).toString();
  const body = headers['transfer-encoding'] === 'chunked' ? unchunk(raw) : raw;
  return {
    status: Number(first.split(' ')[1]),
    headers,
    body,
    json: /json/.test(headers['content-type'] ?? '') && body ? JSON.parse(body) : null,
  };
}

function unchunk(text: string): string {
  let rest = text;
  let body = '';
  for (;;) {
    const mark = rest.indexOf('\r\n');
    const size = Number.parseInt(rest.slice(0, mark), 16);
    if (!size) return body;
    body += rest.slice(mark + 2, mark + 2 + size);
    rest = rest.slice(mark + 2 + size + 2);
  }
}
