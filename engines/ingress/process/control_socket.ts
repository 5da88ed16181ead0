// The Unix socket by which a control plane finds the ingress process of its directory.
import { chmodSync, closeSync, mkdirSync, openSync, renameSync, statSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import path from 'node:path';

const NAME = 'control.sock';

/** Connects, or answers null where no process listens. */
export function connectControl(directory: string): Promise<Socket | null> {
  return atShortPath(directory, (short) => {
    const socket = connect(path.join(short, NAME));
    return new Promise((resolve) => {
      socket.once('connect', () => resolve(socket));
      socket.once('error', () => resolve(null));
    });
  });
}

/**
 * Listens under the name, also where another process does: connections go to whoever was last. The socket is of this
 * user alone.
 */
export function listenControl(directory: string, onSocket: (socket: Socket) => void): Promise<Server> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  chmodSync(directory, 0o700);
  return atShortPath(directory, async (short) => {
    const server = createServer(onSocket);
    // A server that ends removes the path that it has bound: the successor's, if both had bound the same.
    const draft = path.join(short, `${process.pid}.sock`);
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(draft, resolve));
    renameSync(draft, path.join(short, NAME));
    return server;
  });
}

/** Changes when another process listens, or the directory goes; null where it is gone. */
export function controlIdentity(directory: string): string | null {
  const stats = statSync(path.join(directory, NAME), { throwIfNoEntry: false });
  return stats ? `${stats.dev}:${stats.ino}` : null;
}

// The path of a Unix socket has at most 107 bytes (unix(7)); that of a directory's descriptor is always short.
async function atShortPath<T>(directory: string, use: (directory: string) => Promise<T>): Promise<T> {
  if (process.platform !== 'linux' || directory.length < 80) return use(directory);
  let descriptor: number;
  try {
    descriptor = openSync(directory, 'r');
  } catch {
    return use(directory);
  }
  try {
    return await use(`/proc/self/fd/${descriptor}`);
  } finally {
    closeSync(descriptor);
  }
}
