// Listening, and why it fails.
import type { Server } from 'node:http';
import { StartupError } from '../../core/startup_error';

/**
 * @param waiting a server whose port is taken over, with the connections that wait there
 * @throws StartupError for a taken port or an address that is not this machine's
 */
export function listenOrFail(
  server: Server,
  { host, port }: { host: string; port: number },
  waiting: Server | null = null,
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(new StartupError(`can't listen on ${host}:${port}: ${listenErrorReason(error)}`)),
    );
    if (waiting) server.listen(waiting, resolve);
    else server.listen(port, host, resolve);
  });
}

/** The meaning of a listen error. */
export function listenErrorReason(error: NodeJS.ErrnoException): string {
  if (error.code === 'EADDRINUSE') return 'the port is taken';
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND') return 'the address is not one of this machine';
  if (error.code === 'EACCES') return 'the port needs more rights';
  return error.code ?? error.message;
}
