// What balances load in front of several processes: a connection goes to the next one that accepts it.
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface Balancer {
  port: number;
  close(): Promise<void>;
}

/** @param ports of processes on loopback, which may be away */
export async function openBalancer(ports: readonly number[]): Promise<Balancer> {
  let next = 0;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const pass = (tries: number): void => {
      const port = ports[(next += 1) % ports.length] as number;
      const onward = connect(port, '127.0.0.1');
      sockets.add(onward);
      onward.once('connect', () => client.pipe(onward).pipe(client));
      onward.on('close', () => (sockets.delete(onward), onward.connecting || client.destroy()));
      onward.on('error', () => (onward.pending && tries > 1 ? pass(tries - 1) : client.destroy()));
      client.on('close', () => onward.destroy());
    };
    sockets.add(client);
    client.on('error', () => undefined);
    client.on('close', () => sockets.delete(client));
    pass(ports.length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
