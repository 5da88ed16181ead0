// An origin that answers as its address says, and a visitor of the ingress.
import http, { type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Visited {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface CdnOrigin {
  url: string;
  /** Requests that came for a path. */
  requests(path: string): { method: string; headers: IncomingHttpHeaders }[];
  /** Requests for the path are broken off from now on. */
  breakDown(path: string): void;
  visit(port: number, host: string, target: string, headers: Record<string, string>, method: string): Promise<Visited>;
  close(): Promise<void>;
}

export async function startCdnOrigin(): Promise<CdnOrigin> {
  const requests = new Map<string, { method: string; headers: IncomingHttpHeaders }[]>();
  const broken = new Set<string>();
  const server = http.createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://origin');
    const method = request.method ?? '';
    requests.set(pathname, [...(requests.get(pathname) ?? []), { method, headers: request.headers }]);
    if (broken.has(pathname)) return void request.socket.destroy();
    void answer(request, response, searchParams);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests: (path) => requests.get(path) ?? [],
    breakDown: (path) => void broken.add(path),
    visit,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(
  request: http.IncomingMessage,
  response: http.ServerResponse,
  asked: URLSearchParams,
): Promise<void> {
  const text = (name: string): string | null => asked.get(name);
  const varied = text('vary');
  const etag = text('etag') === null ? null : `"${text('etag')}"`;
  const headers: Record<string, string> = {
    'Content-Type': 'text/plain',
    ...(text('max-age') !== null && { 'Cache-Control': `max-age=${text('max-age')}` }),
    ...(text('cc') !== null && { 'Cache-Control': String(text('cc')) }),
    ...(text('set-cookie') !== null && { 'Set-Cookie': 'session=1' }),
    ...(text('tag') !== null && { 'Surrogate-Key': String(text('tag')) }),
    ...(varied !== null && { Vary: varied }),
    ...(etag !== null && { ETag: etag }),
  };
  await sleep(Number(text('ms') ?? 0));
  if (etag !== null && request.headers['if-none-match'] === etag) {
    response.writeHead(304, headers);
    return void response.end();
  }
  const body =
    text('bytes') === null
      ? JSON.stringify({ path: request.url, ...(varied && { [varied]: request.headers[varied] }) })
      : 'x'.repeat(Number(text('bytes')));
  response.writeHead(200, { ...headers, 'Content-Length': Buffer.byteLength(body) });
  if (text('half') === null) return void response.end(body);
  response.write(body.slice(0, 5));
  await sleep(50);
  response.destroy();
}

function visit(
  port: number,
  host: string,
  target: string,
  headers: Record<string, string>,
  method: string,
): Promise<Visited> {
  return new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port,
      path: target,
      method,
      headers: { ...headers, Host: host },
      agent: false,
    };
    const request = http.request(options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('close', () => {
        if (!response.complete) return reject(new Error('the answer broke off'));
        const body = Buffer.concat(chunks).toString('utf8');
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
      });
    });
    request.on('error', reject);
    request.end();
  });
}
