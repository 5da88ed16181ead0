// How a server stops without losing a request (RFC 9112 section 9.6): it accepts no new connection, sends `Connection:
// close` in every further response, and closes connections that have been idle for a while. A connection that is closed
// as soon as it is idle may have a request in transit.
import type { Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { IngressListener } from '../../core/process/ingress_connections';
import { setTimeout as sleep } from 'node:timers/promises';

const IDLE_CHECK_MS = 50;
/**
 * A client that keeps a connection busy sends its next request within half a second. Counted in turns of the event
 * loop, so that a process which has been held up first reads what has come meanwhile.
 */
const QUIET_CHECKS = 10;

interface Drain {
  /** Call for each request, before it is handled. */
  watch(response: ServerResponse): void;
  /** Stops the server; connections that are open after the grace time are closed. */
  run(server: Server, graceSeconds: number, others?: readonly IngressListener[]): Promise<void>;
}

export function openDrain(): Drain {
  /** The last response of each connection. */
  const responses = new Map<Socket, ServerResponse>();
  let isDraining = false;
  return {
    watch(response) {
      const { socket } = response.req;
      if (isDraining) response.shouldKeepAlive = false;
      if (!responses.has(socket)) socket.once('close', () => responses.delete(socket));
      responses.set(socket, response);
    },
    async run(server, graceSeconds, others = []) {
      isDraining = true;
      for (const response of responses.values()) if (!response.headersSent) response.shouldKeepAlive = false;
      // Not the close of http.Server, which also closes the connections that are idle at this moment.
      const own = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
      const closed = Promise.all([own, ...others.map((other) => other.close())]);
      const timer = setTimeout(() => server.closeAllConnections(), graceSeconds * 1000);
      let isClosed = false;
      void closed.then(() => (isClosed = true));
      for (let check = 0; check < QUIET_CHECKS && !isClosed; check += 1)
        await Promise.race([closed, sleep(IDLE_CHECK_MS)]);
      const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS);
      await closed;
      clearInterval(idle);
      clearTimeout(timer);
      // Ends the check for slow clients.
      server.close();
    },
  };
}
