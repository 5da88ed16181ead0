// An HTTPS server in the place of an API server, for answers that a real one gives once in a while, or never should.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import type { ClusterAccess, UserAccess } from '../../../drivers/kubernetes/client/access';
import { openKubernetesClient, type KubernetesClient } from '../../../drivers/kubernetes/client/client';
import type { KubernetesError } from '../../../drivers/kubernetes/client/failure';
import { makeAuthority, type Authority } from '../databases/authority';

export interface OddApiServer {
  url: string;
  authority: Authority;
  server: Server;
  /** What came, in order. */
  requests: SeenRequest[];
  /** Open connections. */
  connections: Set<Duplex>;
  /** Replaces what answers. */
  answer(handler: Handler): void;
  /** Access as a user; with the token `secret-token` unless it has another credential. */
  access(user?: Partial<UserAccess>): ClusterAccess;
  close(): Promise<void>;
}

export interface SeenRequest {
  method: string;
  url: URL;
  headers: IncomingMessage['headers'];
  body: string;
  /** Subject of the client certificate. */
  client: string | null;
  at: number;
}

export type Handler = (request: SeenRequest, response: ServerResponse, count: number) => void;

export const TOKEN = 'secret-token';

export async function startOddApiServer(): Promise<OddApiServer> {
  const authority = await makeAuthority();
  const { cert, key } = await authority.issue(['127.0.0.1', 'kubernetes']);
  const options = { cert, key, ca: authority.pem, requestCert: true, rejectUnauthorized: false };
  const requests: SeenRequest[] = [];
  const connections = new Set<Duplex>();
  let handler: Handler = (_request, response) => respond(response, 404, '404 page not found');
  const server = createServer(options, (request, response) => {
    void text(request).then((body) => {
      const { method = '', url = '/', headers, socket } = request;
      const client = (socket as TLSSocket).authorized
        ? ((socket as TLSSocket).getPeerCertificate().subject?.CN as string | undefined)
        : undefined;
      const seen = { method, url: new URL(url, 'https://x'), headers, body, client: client ?? null, at: Date.now() };
      requests.push(seen);
      handler(seen, response, requests.length);
    });
  });
  server.on('connection', (socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ url, authority, server, requests, connections },
    answer(next) {
      requests.length = 0;
      handler = next;
    },
    access: (user = { token: TOKEN }) => ({
      ...{ server: new URL(url), authority: { text: authority.pem }, serverName: null, verifiesServer: true },
      namespace: 'default',
      user: { client: null, token: null, tokenFile: null, exec: null, impersonation: {}, ...user },
    }),
    async close() {
      for (const socket of connections) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Around the tests of a file or a block: a server, and a client of it. */
export function oddApiServer(use: (opened: { api: OddApiServer; client: KubernetesClient }) => void): void {
  let api: OddApiServer;
  let client: KubernetesClient;
  beforeAll(async () => {
    api = await startOddApiServer();
    client = openKubernetesClient(api.access());
    use({ api, client });
  });
  afterAll(async () => {
    client.close();
    await api.close();
  });
}

/** Why a call of the client fails. @throws Error where it does not */
export function failureOf(work: Promise<unknown>): Promise<KubernetesError> {
  return work.then(
    () => Promise.reject(new Error('it was taken')),
    (error: KubernetesError) => error,
  );
}

export function respond(
  response: ServerResponse,
  status: number,
  body: string | object,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}

/** A refusal as API servers write it. */
export function statusOf(code: number, reason: string, message: string, details: object = {}): object {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code, reason, message, details };
}

/** A ConfigMap as in lists and events. */
export function configMap(name: string, resourceVersion: number, data: Record<string, string> = {}): object {
  return {
    metadata: { name, uid: `uid-${name}`, resourceVersion: String(resourceVersion), managedFields: [{}] },
    data,
  };
}

export const listOf = (resourceVersion: number, items: object[], position?: string): object => ({
  ...{ kind: 'ConfigMapList', apiVersion: 'v1' },
  metadata: { resourceVersion: String(resourceVersion), ...(position ? { continue: position } : {}) },
  items,
});
