// One health check of an instance.
import http from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type NetworkLocation, connectInto } from '../../../core/outbound/network_location';
import type { ReleaseSettings } from '../../../models/applications/release_settings';

const HTTP_MS = 4_000;
const ANSWERED = 'answered';

type Check = ReleaseSettings['health_check'];

/** Address of an instance within its network. */
interface HealthTarget {
  location: NetworkLocation;
  port: number;
}

/**
 * Probes the port on the loopback interface, within the time-out of the check.
 * @param host name that a request carries
 * @returns null when healthy, else the failure as a predicate: `answered GET /health with status 500`
 */
export function probeHealth(
  check: Check,
  target: HealthTarget,
  host: string,
  signal: AbortSignal,
): Promise<string | null> {
  const ms = check.timeout_seconds * 1000;
  return check.type === 'http' ? get(target, check.path ?? '/', host, ms, signal) : connect(target, ms, signal);
}

/** Whether a web server answers there, with whatever status. */
export async function answersHttp(target: HealthTarget, host: string, signal: AbortSignal): Promise<boolean> {
  const failure = await get(target, '/', host, HTTP_MS, signal);
  return failure === null || failure.startsWith(ANSWERED);
}

/** The failure of `probeHealth` if no program listens on the port. */
export const CONNECTION_REFUSED = 'refused the connection';

function connect({ location, port }: HealthTarget, ms: number, signal: AbortSignal): Promise<string | null> {
  return new Promise((resolve) => {
    const end = (failure: string | null): void => {
      clearTimeout(timer);
      resolve(failure);
    };
    const onConnected = (socket: Socket): void => (socket.destroy(), end(null));
    const onFailed = (error: Error): void => end(socketFailureOf(error));
    const abandon = connectInto(location, port, { onConnected, onFailed }, signal);
    const timer = setTimeout(() => (abandon(), end(timeoutFailure('did not take a connection', ms))), ms);
  });
}

function get(
  { location, port }: HealthTarget,
  path: string,
  host: string,
  ms: number,
  signal: AbortSignal,
): Promise<string | null> {
  return new Promise((resolve) => {
    let abandon = (): void => undefined;
    const createConnection = (_: unknown, done: (error: Error | null, socket: Duplex) => void): undefined => {
      // Without a connection there is no socket to give; node:http looks at the error first.
      const onFailed = (error: Error): void => done(error, undefined as unknown as Duplex);
      abandon = connectInto(location, port, { onConnected: (socket) => done(null, socket), onFailed }, signal);
    };
    const headers = { Host: host, 'User-Agent': 'platform-health-check', Connection: 'close' };
    const request = http.get({ port, path: encodePath(path), headers, signal, createConnection }, (response) => {
      const { statusCode = 0 } = response;
      response.destroy();
      clearTimeout(timer);
      resolve(statusCode >= 200 && statusCode < 400 ? null : `${ANSWERED} GET ${path} with status ${statusCode}`);
    });
    // For the whole response: a body that arrives byte by byte would keep the socket's own timeout from firing.
    const timer = setTimeout(() => {
      resolve(timeoutFailure(`did not answer GET ${path}`, ms));
      abandon();
      request.destroy();
    }, ms);
    request.once('error', (error) => {
      clearTimeout(timer);
      resolve(socketFailureOf(error));
    });
  });
}

// Percent-encoded as by browsers: a path may contain letters of all languages.
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
