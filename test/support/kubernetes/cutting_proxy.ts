// What stands between a client and an API server, and cuts all connections when it is told to.
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import path from 'node:path';

export interface CuttingProxy {
  /** On 127.0.0.1. */
  port: number;
  /** Connections that were open when they were cut. */
  readonly cuts: number;
  cut(): void;
  /** Cuts, and takes no connection until `resume`. */
  pause(): void;
  resume(): void;
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
  let isPaused = false;
  const server = createServer((inside) => {
    if (isPaused) return void inside.on('error', () => undefined).resetAndDestroy();
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
    pause() {
      isPaused = true;
      cut();
    },
    resume: () => void (isPaused = false),
    get cuts() {
      return cuts;
    },
  };
}

/** The same access, through the proxy. @returns path of the file, beside the other */
export function kubeconfigThrough(kubeconfig: string, { port }: Pick<CuttingProxy, 'port'>): string {
  const config = JSON.parse(readFileSync(kubeconfig, 'utf8')) as { clusters: { cluster: object }[] };
  const server = { server: `https://127.0.0.1:${port}`, 'tls-server-name': 'kubernetes' };
  const clusters = config.clusters.map((one) => ({ ...one, cluster: { ...one.cluster, ...server } }));
  const file = path.join(path.dirname(kubeconfig), `kubeconfig-${port}`);
  writeFileSync(file, JSON.stringify({ ...config, clusters }), { mode: 0o600 });
  return file;
}
