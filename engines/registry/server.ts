// Listener of the container registry.
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { limits } from '../../core/limits';
import { closeServers } from '../../core/process/close_servers';
import { listenToIngress } from '../../core/process/ingress_connections';
import { guardHttp } from '../../core/process/connection_gate';

export interface RegistryServerOptions {
  listen: string;
  port: number;
  /** Certificate and key files; null: plain HTTP. */
  certificate: { certFile: string; keyFile: string } | null;
  /** Default: the limit of the service. */
  connectionsPerAddress?: number;
  /** Path of the Unix socket for requests of the ingress; null: it sends none. */
  ingressSocket: string | null;
  /** Of open requests when the server is closed. */
  graceMs: number;
}

interface RegistryServer {
  port: number;
  close(): Promise<void>;
}

/** @throws Error with the code EADDRINUSE where the port is taken */
export async function openRegistryServer(
  options: RegistryServerOptions,
  listener: RequestListener,
): Promise<RegistryServer> {
  const server = serverOf(options, listener);
  await listen(server, options);
  const { ingressSocket, graceMs } = options;
  const ofIngress = ingressSocket === null ? [] : [await listenToIngress(server, ingressSocket)];
  const { port } = server.address() as AddressInfo;
  return { port, close: () => closeServers([server], ofIngress, graceMs) };
}

function serverOf(
  { certificate, connectionsPerAddress: perAddress = limits.connectionsPerAddress }: RegistryServerOptions,
  listener: RequestListener,
): Server {
  // Layers of gigabytes take long; the socket timeout disconnects idle clients.
  const options = { requestTimeout: 0, headersTimeout: 10_000, keepAliveTimeout: 65_000 };
  const server = certificate
    ? createTlsServer(
        { ...options, cert: readFileSync(certificate.certFile), key: readFileSync(certificate.keyFile) },
        listener,
      )
    : createServer(options, listener);
  server.setTimeout(60_000);
  guardHttp(server, { perAddress });
  return server;
}

function listen(server: Server, { listen: host, port }: RegistryServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}
