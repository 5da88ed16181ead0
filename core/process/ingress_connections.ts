// Connections by which the ingress of this host hands requests over to the API, the S3 endpoint and the registry: over
// a Unix socket that nobody else may open. What it says of the visitor is believed, whatever TRUST_PROXY is.
import type { IncomingMessage, Server as HttpServer } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { listenAtFile } from './named_socket';

/**
 * The first byte on such a connection: it will be served. Before it nothing is sent, so a request that meets the end of
 * the server can wait for the next one without being sent twice.
 */
export const TAKEN = '+';

export interface IngressListener {
  /** Accepts no further connections; those that are there are served on. Resolves when the last one has ended. */
  close(): Promise<void>;
}

/** The one who sent a request, as far as the ingress knows. */
export interface Visitor {
  address: string;
  isSecure: boolean;
}

const connections = new WeakSet<Socket>();

/**
 * Takes connections of the ingress at this file.
 * @param owner the processes of a cluster that share the listener have the same one
 */
export async function listenToIngress(server: HttpServer, file: string, owner?: number): Promise<IngressListener> {
  const listener = createServer({ allowHalfOpen: true }, (socket) => {
    connections.add(socket);
    socket.write(TAKEN);
    server.emit('connection', socket);
  });
  await listenAtFile(listener, file, owner);
  // An accept that fails, as for want of descriptors, is not the end of the listener.
  listener.on('error', () => undefined);
  return { close: () => new Promise((resolve) => listener.close(() => resolve())) };
}

/** Whether the connection is one of the ingress, which limits those of its visitors itself. */
export function isOfIngress(socket: Socket): boolean {
  return connections.has(socket);
}

/** The visitor whose request the ingress hands over; null for a request that came another way. */
export function visitorOf({ socket, headers }: IncomingMessage): Visitor | null {
  if (!connections.has(socket)) return null;
  return {
    address: String(headers['x-forwarded-for'] ?? ''),
    isSecure: headers['x-forwarded-proto'] === 'https',
  };
}
