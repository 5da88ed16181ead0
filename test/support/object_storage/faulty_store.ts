// A proxy before an S3 service that fails as told.
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** `late`: the request is carried out, and its answer does not come back. `lie`: it is not, and the answer is 200. */
export type Fault = 'none' | 'reset' | 'silent' | 'late' | 'lie' | 'half' | { status: number; code: string };

export interface FaultyStore {
  url: string;
  /** Of the requests that come now. @param methods default: all */
  fail(fault: Fault, methods?: readonly string[]): void;
  /** How many requests of a method have come. */
  count(method: string): number;
  close(): void;
}

export async function openFaultyStore(endpoint: string): Promise<FaultyStore> {
  const { port, hostname } = new URL(endpoint);
  let fault: Fault = 'none';
  let methods: readonly string[] | undefined;
  const counts = new Map<string, number>();
  const pass = (request: IncomingMessage, response: ServerResponse, how: Fault): void => {
    const inner = http.request(
      { hostname, port, method: request.method, path: request.url, headers: request.headers },
      (answer) => {
        if (how === 'late') return void answer.resume();
        response.writeHead(answer.statusCode!, answer.headers);
        if (how !== 'half') return void answer.pipe(response);
        answer.once('data', (piece: Buffer) => {
          response.write(piece.subarray(0, piece.length / 2), () => response.destroy());
          inner.destroy();
        });
      },
    );
    inner.on('error', () => response.destroy());
    request.pipe(inner);
  };
  const server = http.createServer((request, response) => {
    const { method = '' } = request;
    counts.set(method, (counts.get(method) ?? 0) + 1);
    const now = !methods || methods.includes(method) ? fault : 'none';
    if (now === 'reset') return void request.socket.destroy();
    if (now === 'silent') return void request.resume();
    if (now === 'lie') return void request.resume().on('end', () => response.writeHead(200, { ETag: '"0"' }).end());
    if (typeof now === 'string') return pass(request, response, now);
    request.resume().on('end', () => {
      response.writeHead(now.status, { 'Content-Type': 'application/xml' });
      response.end(`<?xml version="1.0"?><Error><Code>${now.code}</Code></Error>`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fail(next, of) {
      [fault, methods] = [next, of];
    },
    count: (method) => counts.get(method) ?? 0,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
