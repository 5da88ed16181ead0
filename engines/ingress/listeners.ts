// The listening sockets of the ingress: bound here, or taken over from the process that had them before.
import type { Server as HttpServer } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';

/** By scheme; `6` is the loopback address of IPv6 beside that of IPv4. */
export type ListenerName = 'http' | 'http6' | 'https' | 'https6';

export type Listeners = Map<ListenerName, net.Server>;

/** A process that has listened until now, and goes on until it is told to end. */
export interface Predecessor {
  /** Connections go to `onSocket` from the moment the listener is there; null where it has none of that name. */
  take(name: ListenerName, onSocket: (socket: Socket) => void): Promise<net.Server | null>;
}

interface ListenOptions {
  scheme: 'http' | 'https';
  host: string;
  /** 0 takes a free one. */
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
    // What node:http does when it listens itself: it keeps track of connections, for its timeouts.
    server.emit('listening');
    const other = await predecessor?.take(second, onSocket);
    if (other) listeners.set(second, other);
    return;
  }
  await bind(server, port, host);
  listeners.set(scheme, server);
  if (host !== IPV4_LOOPBACK) return;
  // Browsers lead *.localhost to either loopback address.
  const other = net.createServer({ allowHalfOpen: true, noDelay: true }, onSocket);
  await bind(other, portOf(server), IPV6_LOOPBACK).then(
    () => void listeners.set(second, other),
    () => undefined,
  );
}

export function portOf(server: net.Server): number {
  return (server.address() as AddressInfo).port;
}

/** Accepts nothing from now on. Unlike the close of http.Server, it leaves connections that are idle. */
export function stopListening(server: net.Server): Promise<void> {
  return new Promise((resolve) => net.Server.prototype.close.call(server, () => resolve()));
}

function bind(server: net.Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host, backlog: BACKLOG }, () => {
      server.off('error', reject);
      // An accept that fails, e.g. for want of descriptors, is not the end of the listener.
      server.on('error', () => undefined);
      resolve();
    });
  });
}
