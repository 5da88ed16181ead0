// Bounds of the ingress. Times in ms, sizes in bytes.

export interface IngressLimits {
  /** Open connections of clients, plain and TLS together. More are closed at once. */
  connections: number;
  /** Open requests of one application, WebSockets and previews included. More are answered 503 `busy`. */
  applicationRequests: number;
  /**
   * Open requests of one client address at an application that has half of its own: more are answered 429. An IPv6
   * address counts as its /64.
   */
  addressRequests: number;
  /** Body of a request. */
  bodyBytes: number;
  /** Request line and headers of a request; of an answer too. */
  headerBytes: number;
  headers: number;
  /** For a client to send its headers. */
  headersMs: number;
  /** A body may come slowly for this long; then it must have come at `uploadBytesPerSecond` on average. */
  uploadGraceMs: number;
  uploadBytesPerSecond: number;
  /** A client that neither sends nor takes bytes for this long is slow: its request ends. */
  clientIdleMs: number;
  /** An idle connection of a client. */
  keepAliveMs: number;
  /**
   * For an instance to accept a connection. The kernel does that for it unless hundreds wait; then it tries again after
   * 1, 3, 7 s.
   */
  connectMs: number;
  /** An answer that has begun, without a byte from the instance. */
  streamIdleMs: number;
  /** A WebSocket without bytes in either direction. */
  tunnelIdleMs: number;
  /** How long a drain waits for WebSockets. */
  tunnelDrainMs: number;
  /** How often timeouts are enforced: the precision of all of them. */
  sweepMs: number;
}

export const INGRESS_LIMITS: IngressLimits = {
  connections: 20_000,
  applicationRequests: 1_000,
  addressRequests: 100,
  bodyBytes: 100 * 1024 * 1024,
  headerBytes: 32 * 1024,
  headers: 200,
  headersMs: 20_000,
  uploadGraceMs: 20_000,
  uploadBytesPerSecond: 500,
  clientIdleMs: 60_000,
  keepAliveMs: 65_000,
  connectMs: 5_000,
  streamIdleMs: 600_000,
  tunnelIdleMs: 600_000,
  tunnelDrainMs: 5_000,
  sweepMs: 250,
};
