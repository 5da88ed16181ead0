// One request by node:http: `fetch` of Node 20 costs a quarter of a second of processor time at its first use.
import * as http from 'node:http';
import * as https from 'node:https';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { openTunnel, proxyAuthorization, proxyFor } from './proxy';

export interface HttpRequest {
  method: string;
  url: URL;
  headers?: Record<string, string>;
  body?: string | Buffer | (() => Readable);
  /** How long the server may be silent. Default: 90 seconds, more than it waits with `Prefer: wait`. */
  idleMs?: number;
  signal?: AbortSignal;
}

export interface HttpAnswer {
  status: number;
  headers: http.IncomingHttpHeaders;
  text: string;
}

const IDLE_MS = 90_000;
const agents = { 'http:': new http.Agent({ keepAlive: true }), 'https:': new https.Agent({ keepAlive: true }) };

/** Sends the request and reads the whole answer. @throws the error of the network as Node has it */
export async function sendRequest(request: HttpRequest): Promise<HttpAnswer> {
  const response = await openResponse(request);
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text: Buffer.concat(parts).toString('utf8'),
  };
}

/** Sends the request. The caller reads the body of the answer. */
export async function openResponse(request: HttpRequest): Promise<http.IncomingMessage> {
  const { url } = request;
  const proxy = proxyFor(url);
  const options: https.RequestOptions = {
    method: request.method,
    headers: { 'User-Agent': `svc/${SVC_VERSION} node/${process.versions.node}`, ...request.headers },
    agent: agents[url.protocol as 'http:' | 'https:'],
    ...(request.signal && { signal: request.signal }),
  };
  if (!proxy) return exchange(request, (url.protocol === 'https:' ? https : http).request(url, options));
  if (url.protocol === 'http:') return exchange(request, throughProxy(proxy, url, options));
  const socket = await openTunnel(proxy, url);
  // An agent, even `false`, would make a connection of its own.
  return exchange(request, https.request(url, { ...options, agent: undefined, createConnection: () => socket }));
}

function throughProxy(proxy: URL, url: URL, options: https.RequestOptions): http.ClientRequest {
  const { request, defaultPort } =
    proxy.protocol === 'https:' ? { ...https, defaultPort: 443 } : { ...http, defaultPort: 80 };
  return request({
    ...options,
    agent: false,
    host: proxy.hostname,
    port: proxy.port || defaultPort,
    path: url.href,
    headers: { ...(options.headers as object), Host: url.host, ...proxyAuthorization(proxy) },
  });
}

function exchange(request: HttpRequest, sent: http.ClientRequest): Promise<http.IncomingMessage> {
  const { body, idleMs = IDLE_MS } = request;
  return new Promise((resolve, reject) => {
    sent.setTimeout(idleMs, () =>
      sent.destroy(Object.assign(new Error('the server did not answer in time'), { code: 'ETIMEDOUT' })),
    );
    sent.once('response', resolve);
    sent.once('error', reject);
    if (typeof body === 'function') pipeline(body(), sent).catch(reject);
    else sent.end(body);
  });
}
