// The way from networks of an ordinary user to servers of the platform on this host: a socket for each port, which the
// program of a network connects to (gate.js). Tenants cannot: their sandboxes do not show the directory.
import { mkdir, rename, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import path from 'node:path';

/** Lies beside the directories of networks, but is not a network. */
const DIRECTORY = '.services';

interface ServiceSockets {
  close(): Promise<void>;
}

/** The last one that opens them has them: a successor does while its predecessor still ends. */
export async function openServiceSockets(directory: string, ports: readonly number[]): Promise<ServiceSockets> {
  const place = path.join(directory, DIRECTORY);
  await rm(place, { recursive: true, force: true });
  if (!ports.length) return { close: () => Promise.resolve() };
  await mkdir(place, { recursive: true, mode: 0o700 });
  const clients = new Set<Socket>();
  const servers = await Promise.all(ports.map((port) => listen(path.join(place, String(port)), port, clients)));
  return {
    async close() {
      const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)));
      for (const client of clients) client.destroy();
      await Promise.all(closed);
    },
  };
}

async function listen(socket: string, port: number, clients: Set<Socket>): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const service = connect({ host: '127.0.0.1', port, noDelay: true, allowHalfOpen: true });
    clients.add(client.pipe(service).pipe(client));
    service.on('error', () => client.destroy());
    service.on('close', () => client.destroy());
    client.on('error', () => service.destroy());
    client.on('close', () => (clients.delete(client), service.destroy()));
  });
  // A closing server removes the socket path that it has bound, which must not be its successor's.
  const draft = `${socket}.${process.pid}`;
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(draft, resolve));
  await rename(draft, socket);
  return server;
}
