// The Unix socket by which a control plane finds the ingress process of its directory.
import { statSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import path from 'node:path';
import { atShortPath, listenAtFile } from '../../../core/process/named_socket';

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
export async function listenControl(directory: string, onSocket: (socket: Socket) => void): Promise<Server> {
  const server = createServer(onSocket);
  await listenAtFile(server, path.join(directory, NAME));
  return server;
}

/** Changes when another process listens, or the directory goes; null where it is gone. */
export function controlIdentity(directory: string): string | null {
  const stats = statSync(path.join(directory, NAME), { throwIfNoEntry: false });
  return stats ? `${stats.dev}:${stats.ino}` : null;
}
