// What stands between a client and an API server, and cuts all connections when it is told to.
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface CuttingProxy {
  /** On 127.0.0.1. */
  port: number;
  /** Connections that were open when they were cut. */
  readonly cuts: number;
  cut(): void;
  close(): void;
}

export async function startCuttingProxy(to: number, host: string): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  let cuts = 0;
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
    return socket;
  };
  const server = createServer((inside) => {
    const outside = keep(connect(to, host));
    keep(inside).pipe(outside).pipe(inside);
  });
  const cut = (): void => {
    cuts += sockets.size / 2;
    for (const socket of sockets) socket.resetAndDestroy();
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): void => {
    server.close();
    cut();
  };
  const { port } = server.address() as AddressInfo;
  return {
    ...{ port, cut, close },
    get cuts() {
      return cuts;
    },
  };
}
