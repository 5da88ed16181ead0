// What machines reach of a server on loopback of the machine of the tests.
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface Relay {
  port: number;
  close(): void;
}

/**
 * @param from address it listens on
 * @param targets URLs, or paths of sockets: it leads to the first that accepts a connection
 */
export async function openRelay(from: string, targets: () => readonly string[]): Promise<Relay> {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
  };
  const server = createServer((inside) => {
    keep(inside);
    const pass = ([target, ...others]: readonly string[]): void => {
      if (target === undefined) return void inside.destroy();
      const outside = keep(connected(target).setTimeout(CONNECT_MS));
      let isConnected = false;
      outside.once('connect', () => {
        isConnected = true;
        outside.setTimeout(0);
        inside.pipe(outside).pipe(inside);
      });
      outside.once('timeout', () => outside.destroy());
      outside.once('close', () => (isConnected ? inside.destroy() : pass(others)));
      inside.once('close', () => outside.destroy());
    };
    pass(targets());
  });
  await new Promise<void>((resolve) => server.listen(0, from, resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

const CONNECT_MS = 500;

function connected(target: string): Socket {
  if (target.startsWith('/')) return connect(target);
  const { hostname, port } = new URL(target);
  return connect(Number(port || 80), hostname);
}
