// Limits of the ingress. Times in ms, sizes in bytes.
import { limits } from '../../core/limits';

export interface IngressLimits {
  /** Open client connections, plain and TLS together. Beyond them, an idle one of a larger client ends. */
  connections: number;
  /** Those of one public address, without proxies in front. An IPv6 address counts as its /64. */
  addressConnections: number;
  /** Open requests per application, including WebSockets and previews. Further ones get 503 `busy`. */
  applicationRequests: number;
  /**
   * Open requests per client address once an application has half of its own limit: further ones get 429. An IPv6
   * address counts as its /64.
   */
  addressRequests: number;
  /** Open requests per service of the platform, including WebSockets. */
  serviceRequests: number;
  /** Those of one public address. */
  serviceAddressRequests: number;
  /** Requests for a service that wait until it takes connections again. */
  serviceWaiting: number;
  /** A service takes no connections: requests wait until it has been away for so long. */
  serviceAwayMs: number;
  /** Time without a byte from the client of a service, which has limits of its own. */
  serviceClientIdleMs: number;
  /** Time without bytes in either direction of a WebSocket of a service. */
  serviceTunnelIdleMs: number;
  /** Size of a request body. Services have limits of their own. */
  bodyBytes: number;
  /** Request line and headers of a request; also the head of a response. */
  headerBytes: number;
  headers: number;
  /** Time for a client to send its headers. */
  headersMs: number;
  /** Grace time of slow uploads; after it, the average must reach `uploadBytesPerSecond`. */
  uploadGraceMs: number;
  uploadBytesPerSecond: number;
  /** A request ends when its client neither sends nor receives bytes for this long. */
  clientIdleMs: number;
  /** Idle timeout of client connections. */
  keepAliveMs: number;
  /**
   * Time for an instance to accept a connection. The kernel does so unless hundreds are queued; it retries after 1, 3,
   * 7 s.
   */
  connectMs: number;
  /** After this time without a byte, an instance on another machine is tried with a connection of its own. */
  silentMs: number;
  /** Time for that connection. The kernel asks again after 1 s. */
  probeMs: number;
  /** Interval of such connections. */
  probeEveryMs: number;
  /** Time without a byte from the instance within a response. */
  streamIdleMs: number;
  /** Time without bytes in either direction of a WebSocket. */
  tunnelIdleMs: number;
  /** Time that a drain waits for WebSockets. */
  tunnelDrainMs: number;
  /** Interval of the timeout checks, which is their precision. */
  sweepMs: number;
}

export const INGRESS_LIMITS: IngressLimits = {
  connections: 20_000,
  addressConnections: limits.visitorsPerAddress,
  applicationRequests: 1_000,
  addressRequests: 100,
  serviceRequests: 4_000,
  serviceAddressRequests: limits.connectionsPerAddress,
  serviceWaiting: 500,
  serviceAwayMs: 10_000,
  serviceClientIdleMs: limits.silentTimeoutMs,
  serviceTunnelIdleMs: 3_600_000,
  bodyBytes: 100 * 1024 * 1024,
  headerBytes: 32 * 1024,
  headers: 200,
  headersMs: 20_000,
  uploadGraceMs: 20_000,
  uploadBytesPerSecond: 500,
  clientIdleMs: 60_000,
  keepAliveMs: 65_000,
  connectMs: 5_000,
  silentMs: 1_000,
  probeMs: 2_000,
  probeEveryMs: 1_000,
  streamIdleMs: 600_000,
  tunnelIdleMs: 600_000,
  tunnelDrainMs: 5_000,
  sweepMs: 250,
};
