// One health check of an instance.
import http from 'node:http';
import net from 'node:net';
import type { ReleaseSettings } from '../../models/release';

type Check = ReleaseSettings['health_check'];

const LOOPBACK = '127.0.0.1';

/**
 * Probes the port on the loopback interface, within the time-out of the check.
 * @param host name that a request carries
 * @returns null when it is healthy, else what it did: `answered GET /health with status 500`
 */
export function probeHealth(check: Check, port: number, host: string, signal: AbortSignal): Promise<string | null> {
  const ms = check.timeout_seconds * 1000;
  return check.type === 'http' ? get(port, check.path ?? '/', host, ms, signal) : connect(port, ms, signal);
}

/** How `probeHealth` says that nothing listens on the port. */
export const CONNECTION_REFUSED = 'refused the connection';

function connect(port: number, ms: number, signal: AbortSignal): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = net.connect({ host: LOOPBACK, port, signal });
    const end = (failure: string | null): void => {
      socket.destroy();
      resolve(failure);
    };
    socket.setTimeout(ms, () => end(timeoutFailure('did not take a connection', ms)));
    socket.once('connect', () => end(null));
    socket.once('error', (error) => end(socketFailureOf(error)));
  });
}

function get(port: number, path: string, host: string, ms: number, signal: AbortSignal): Promise<string | null> {
  return new Promise((resolve) => {
    const headers = { Host: host, 'User-Agent': 'platform-health-check', Connection: 'close' };
    const request = http.get(
      { host: LOOPBACK, port, path: encodePath(path), headers, agent: false, signal },
      (response) => {
        const { statusCode = 0 } = response;
        response.destroy();
        clearTimeout(timer);
        resolve(statusCode >= 200 && statusCode < 400 ? null : `answered GET ${path} with status ${statusCode}`);
      },
    );
    // For the whole response: a body that arrives byte by byte would keep the socket's own timeout from firing.
    const timer = setTimeout(() => {
      resolve(timeoutFailure(`did not answer GET ${path}`, ms));
      request.destroy();
    }, ms);
    request.once('error', (error) => {
      clearTimeout(timer);
      resolve(socketFailureOf(error));
    });
  });
}

// As browsers send it: a path may have letters of all languages.
function encodePath(path: string): string {
  return path.replace(/[^\x21-\x7e]/gu, encodeURIComponent);
}

function socketFailureOf(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED') return CONNECTION_REFUSED;
  return code === 'ECONNRESET' ? 'closed the connection' : `could not be reached (${code ?? error.name})`;
}

function timeoutFailure(what: string, ms: number): string {
  return `${what} within ${ms / 1000} seconds`;
}
