// An engine of CDN zones without a platform around it: an origin that answers as it is told, and visitors.
import http, { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CdnCacheRules, CdnZoneSpec } from '../../../engines/cdn/cdn';
import type { CdnEngine, EdgeOptions } from '../../../engines/cdn/edge/edge';
import { openOutbound, type OutboundRules } from '../../../core/outbound';
import type { OriginAnswer } from '../../conformance/cdn_rule';

export interface Seen {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface CdnBench {
  engine: CdnEngine;
  originUrl: string;
  /** Where visitors come. */
  port: number;
  origin(path: string, answers: OriginAnswer[]): void;
  /** Sends what is held back of all bodies. */
  release(): void;
  /** What came for a path. */
  asked(path: string): { method: string; target: string; headers: IncomingHttpHeaders }[];
  /** @returns its host name */
  zone(id: string, cache?: Partial<CdnCacheRules>, more?: Partial<CdnZoneSpec>): Promise<string>;
  /** status 0: the answer broke off. */
  visit(host: string, target: string, more?: VisitOptions): Promise<Seen>;
  purge(id: string, type: 'all' | 'urls' | 'prefixes' | 'tags', values?: string[]): Promise<void>;
  close(): Promise<void>;
}

interface VisitOptions {
  method?: string;
  headers?: Record<string, string>;
  scheme?: 'http' | 'https';
  body?: string;
}

const RULES: CdnCacheRules = {
  ...{ default_ttl_seconds: 3600, browser_ttl_seconds: null, respect_origin_headers: true },
  ...{ query_string: 'include', serve_stale: false },
};

export function testEdgeOptions(rules: Partial<OutboundRules> = {}): EdgeOptions {
  const outbound = openOutbound({ isAllowed: () => true, hostsFile: true, resolvers: [], caFile: null, ...rules });
  return { outbound, log: () => undefined };
}

export async function startCdnBench(open: () => Promise<CdnEngine> | CdnEngine): Promise<CdnBench> {
  const told = new Map<string, OriginAnswer[]>();
  const asked = new Map<string, ReturnType<CdnBench['asked']>>();
  const held: (() => void)[] = [];
  const origin = await listen((request, response) => {
    const target = request.url ?? '/';
    const path = target.split('?', 1)[0] as string;
    const requests = asked.get(path) ?? [];
    asked.set(path, [...requests, { method: request.method ?? '', target, headers: request.headers }]);
    const answers = told.get(path) ?? [{}];
    const answer = answers[Math.min(requests.length, answers.length - 1)] as OriginAnswer;
    void respond(request, response, answer, { number: requests.length + 1, hold: (end) => void held.push(end) });
  });
  const engine = await open();
  const front = await listen((request, response) => {
    const { host = '', 'x-scheme': scheme, ...headers } = request.headers;
    request.headers = { ...headers, host };
    const visitor = { host, address: '192.0.2.9', requestId: 'req' };
    engine.edge.handle(request, response, { ...visitor, scheme: scheme === 'https' ? 'https' : 'http' });
  });
  return {
    ...{ engine, originUrl: origin.url, port: front.port },
    origin: (path, answers) => void told.set(path, answers),
    release: () => held.splice(0).forEach((end) => end()),
    asked: (path) => asked.get(path) ?? [],
    async zone(id, cache = {}, more = {}) {
      const host = `${id}.cdn.example.com`;
      const spec: CdnZoneSpec = {
        hosts: [{ host, domain_id: '' }],
        origin: { url: origin.url, host_header: 'origin.example.com', is_internal: false },
        ...{ enabled: true, cache: { ...RULES, ...cache }, compression: true, force_https: false, ...more },
      };
      await engine.driver.ensureZone(id, spec);
      return host;
    },
    visit: (host, target, more = {}) => visit(front.port, host, target, more),
    async purge(id, type, values = []) {
      await engine.driver.purge(id, { type, values });
    },
    async close() {
      await front.close();
      await engine.close();
      await origin.close();
    },
  };
}

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  { status = 200, headers = {}, body, validates, breaks, delayMs = 0, reflects, framing, holds }: OriginAnswer,
  { number, hold }: { number: number; hold(end: () => void): void },
): Promise<void> {
  const { method, url, headers: asked } = request;
  await sleep(delayMs);
  if (breaks === 'head') return void response.destroy();
  const isSame = asked['if-none-match'] === headers.etag || asked['if-modified-since'] === headers['last-modified'];
  const isAsked = asked['if-none-match'] !== undefined || asked['if-modified-since'] !== undefined;
  if (validates && isAsked && isSame) return void response.writeHead(304, headers).end();
  const text = reflects ? JSON.stringify({ method, url, asked }) : (body ?? `answer ${number}`);
  const own = {
    'content-type': 'text/plain',
    ...(status !== 204 && !framing && { 'content-length': Buffer.byteLength(text) }),
  };
  if (framing === 'close') response.useChunkedEncodingByDefault = false;
  response.writeHead(status, { ...own, ...headers });
  if (holds) {
    response.write(text.slice(0, text.length / 2));
    return hold(() => response.end(text.slice(text.length / 2)));
  }
  if (breaks !== 'body') return void response.end(status === 204 ? undefined : text);
  response.write(text.slice(0, 5));
  await sleep(100);
  response.destroy();
}

async function listen(handle: http.RequestListener): Promise<{ url: string; port: number; close(): Promise<void> }> {
  const server = http.createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    ...{ port, url: `http://127.0.0.1:${port}` },
    close: () => new Promise((resolve) => (server.close(() => resolve()), server.closeAllConnections())),
  };
}

function visit(
  port: number,
  host: string,
  target: string,
  { method = 'GET', headers = {}, scheme = 'http', body }: VisitOptions,
): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const own = { ...headers, host, 'x-scheme': scheme };
    const request = http.request({ host: '127.0.0.1', port, path: target, method, headers: own, agent: false });
    request.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' ? resolve({ status: 0, headers: {}, body: '' }) : reject(error),
    );
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      const end = (status: number): void =>
        resolve({ status, headers: response.headers, body: Buffer.concat(chunks).toString('latin1') });
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', () => end(0));
      response.on('close', () => end(response.complete ? (response.statusCode ?? 0) : 0));
    });
    request.end(body);
  });
}
