// The listening sockets of the ingress: bound here, or taken over from the previous process.
import type { Server as HttpServer } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';

/** By scheme; `6` is the additional listener on the IPv6 loopback address. */
export type ListenerName = 'http' | 'http6' | 'https' | 'https6';

export type Listeners = Map<ListenerName, net.Server>;

/** A process that owned the listeners, and keeps running until it is stopped. */
export interface Predecessor {
  /**
   * Connections are passed to `onSocket` as soon as the listener arrives; null where it has no listener of that name.
   */
  take(name: ListenerName, onSocket: (socket: Socket) => void): Promise<net.Server | null>;
}

interface ListenOptions {
  scheme: 'http' | 'https';
  host: string;
  /** 0 selects a free port. */
  port: number;
  predecessor?: Predecessor | null;
}

const IPV4_LOOPBACK = '127.0.0.1';
const IPV6_LOOPBACK = '::1';
const BACKLOG = 4_096;

/** Adds the listeners of a server. Rejects with the error of `listen`, e.g. EADDRINUSE. */
export async function listenFor(server: HttpServer, options: ListenOptions, listeners: Listeners): Promise<void> {
  const { scheme, host, port, predecessor } = options;
  const second: ListenerName = `${scheme}6`;
  const onSocket = (socket: Socket): void => void server.emit('connection', socket);
  const inherited = await predecessor?.take(scheme, onSocket);
  if (inherited) {
    listeners.set(scheme, inherited);
    // On `listening`, node:http starts its connection tracking, which the timeouts need.
    server.emit('listening');
    const other = await predecessor?.take(second, onSocket);
    if (other) listeners.set(second, other);
    return;
  }
  await bind(server, port, host);
  listeners.set(scheme, server);
  if (host !== IPV4_LOOPBACK) return;
  // Browsers resolve *.localhost to either loopback address.
  const other = net.createServer({ allowHalfOpen: true, noDelay: true }, onSocket);
  await bind(other, portOf(server), IPV6_LOOPBACK).then(
    () => void listeners.set(second, other),
    () => undefined,
  );
}

export function portOf(server: net.Server): number {
  return (server.address() as AddressInfo).port;
}

/** Stops accepting. Unlike http.Server.close, this leaves idle connections open. */
export function stopListening(server: net.Server): Promise<void> {
  return new Promise((resolve) => net.Server.prototype.close.call(server, () => resolve()));
}

function bind(server: net.Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host, backlog: BACKLOG }, () => {
      server.off('error', reject);
      // A failed accept, e.g. for lack of file descriptors, does not end the listener.
      server.on('error', () => undefined);
      resolve();
    });
  });
}
