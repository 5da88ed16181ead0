// A server of the platform behind an ingress of the test, and what it was asked.
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { listenToIngress, visitorOf, type Visitor } from '../../../core/process/ingress_connections';
import https from 'node:https';
import { memoize } from '../../../core/memoize';
import type { ServedService } from '../../../engines/ingress/platform_services';
import { openFront, whole, type Answer, type Front } from './ingress';
import { makeSignedCertificate } from './ingress_certificate';

export interface OwnServer {
  served: ServedService;
  /** Requests in the order in which they came. */
  asked: { request: IncomingMessage; visitor: Visitor | null; body: string }[];
  /** Listens again after `stop`. */
  start(listener?: RequestListener): Promise<void>;
  /** Takes no connections, and ends those that are there after their responses. */
  stop(): Promise<void>;
  /** Ends at once, as when it is killed. */
  kill(): void;
  close(): Promise<void>;
}

export const HOST = 'platform.example.com';
const HOSTS = [HOST, '*.s3.example.com', '*.web.example.com'];

type FrontArguments = Parameters<typeof openFront>;

export type BoundFront = (options?: FrontArguments[1], routes?: FrontArguments[0]) => Promise<Front>;

const certificate = memoize(() => makeSignedCertificate(HOST, '*.s3.example.com'));

/** Of the certificate of the names, PEM. */
export function ownAuthority(): string {
  return certificate().ca;
}

/** An ingress before the server, with TLS. */
export async function openOwnFront(
  own: OwnServer,
  options: FrontArguments[1] = {},
  routes: FrontArguments[0] = [],
): Promise<Front> {
  const front = await openFront(routes, { services: [own.served], tlsPort: 0, ...options });
  for (const name of [HOST, 'data.s3.example.com']) front.certificates.set(name, certificate());
  front.ingress.forgetCertificate(null);
  return front;
}

export function askSecurely(
  front: Front,
  options: https.RequestOptions & { body?: string } = {},
  host = HOST,
): Promise<Answer> {
  const { body, headers, ...more } = options;
  return new Promise((resolve, reject) => {
    const request = https.request({
      ...{ host: '127.0.0.1', port: front.ingress.ports.https, servername: host, ca: ownAuthority(), agent: false },
      ...{ headers: { host, ...headers }, ...more },
    });
    request.on('error', reject).on('response', (response) => void whole(response).then(resolve, reject));
    request.end(body);
  });
}

/** @param listener called when the body is there; default: answers what it got */
export async function openOwnServer(listener?: RequestListener): Promise<OwnServer> {
  const directory = mkdtempSync(path.join(tmpdir(), 'own-server-'));
  // Longer than the path of a Unix socket may be.
  const socket = path.join(directory, 'a-long-name-'.repeat(8), 'api.sock');
  const rest = { plainHosts: ['*.web.example.com'], port: 443, baseUrl: 'https://platform.example.com' };
  const asked: OwnServer['asked'] = [];
  let running = await listen(socket, asked, listener);
  return {
    served: { name: 'api', hosts: HOSTS, ...rest, socket },
    asked,
    async start(other = listener) {
      running = await listen(socket, asked, other);
    },
    stop: () => running.stop(),
    kill: () => running.kill(),
    async close() {
      running.kill();
      await running.stop();
      rmSync(directory, { recursive: true });
    },
  };
}

async function listen(
  socket: string,
  asked: OwnServer['asked'],
  listener: RequestListener = (_, response) => void response.end('served'),
): Promise<{ stop(): Promise<void>; kill(): void }> {
  const server = createServer((request, response) => {
    const one = { request, visitor: visitorOf(request), body: '' };
    asked.push(one);
    request.on('data', (bytes: Buffer) => (one.body += bytes.toString()));
    request.on('end', () => listener(request, response));
  });
  // An echo, after the handshake.
  server.on('upgrade', (request, stream, head) => {
    asked.push({ request, visitor: visitorOf(request), body: '' });
    stream.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    stream.write(head);
    stream.on('data', (bytes: Buffer) => stream.write(bytes)).on('error', () => undefined);
    stream.on('end', () => stream.end());
  });
  const taken = await listenToIngress(server, socket);
  const sockets = new Set<{ destroy(): void }>();
  server.on('connection', (one) => sockets.add(one));
  return {
    stop() {
      const closed = taken.close();
      const idle = setInterval(() => server.closeIdleConnections(), 20);
      return closed.finally(() => clearInterval(idle));
    },
    kill() {
      void taken.close();
      for (const one of sockets) one.destroy();
    },
  };
}
