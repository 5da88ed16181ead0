// The end of HTTP servers: nothing new, and what is under way is finished.
import type { Server } from 'node:http';
import type { IngressListener } from './ingress_connections';

const IDLE_CHECK_MS = 50;

/**
 * Stops accepting; resolves when the open requests have ended, or their connections were closed after `graceMs`.
 * @param ofIngress further listeners of the servers
 */
export async function closeServers(
  servers: readonly Server[],
  ofIngress: readonly IngressListener[],
  graceMs: number,
): Promise<void> {
  const closed = servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
  const idle = setInterval(() => servers.forEach((server) => server.closeIdleConnections()), IDLE_CHECK_MS);
  const late = setTimeout(() => servers.forEach((server) => server.closeAllConnections()), graceMs);
  await Promise.all([...closed, ...ofIngress.map((listener) => listener.close())]);
  clearInterval(idle);
  clearTimeout(late);
}
