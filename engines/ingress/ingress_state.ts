// State shared by all parts of an open ingress, in one file: its types name each other.
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { NetworkLocation, ServerLocation } from '../../core/outbound/network_location';
import type { Caller } from './http/forwarded_head';
import type { ResponseParser, ResponseSink } from './http/response_parser';
import type { SimpleResponse } from './http/simple_response';
import type { IngressCallbacks, Route, ServedService } from './ingress';
import type { IngressLimits } from './limits';
import type { Reason } from './pages';
import type { TlsContextCache } from './tls_contexts';
import type { TrafficCounters, TrafficOwner } from './traffic';
import type { VisitorRequest, VisitorResponse } from './visitor';

export interface IngressState {
  limits: IngressLimits;
  parts: IngressCallbacks;
  table: RouteTable;
  traffic: TrafficCounters;
  certificates: TlsContextCache;
  running: Set<ProxiedRequest>;
  /** Connections not (yet) handed to node:http. */
  visitors: Set<SimpleConnection>;
  tunnels: Set<Tunnel>;
  /** Number of trusted proxies in front. */
  trustProxy: number;
  httpsPort: number | null;
  closing: boolean;
}

export interface ProxiedRequest extends ConnectionUser, InboundRequest {
  ingress: IngressState;
  site: Site;
  caller: Caller;
  /** Counts as an open request of the application. A rejected request whose client is still sending does not. */
  isCounted: boolean;
  /** In lower case, without the port. */
  host: string;
  authority: string;
  /** Path and query string. */
  target: string;
  at: Date;
  startedMs: number;
  /** Time of the last byte in either direction. */
  touchedMs: number;
  owner: TrafficOwner;
  upstream: Upstream | null;
  connection: UpstreamConnection | null;
  tried: Upstream[];
  attempts: number;
  /**
   * The kept-alive connection was closed before the first byte of the response: retried once, with the same instance.
   */
  resending: boolean;
  body: BodyState;
  /**
   * The last chunk of the response so far, held back until it is known whether it is the final one. It is copied before
   * the next read, which reuses the buffer.
   */
  pending: Buffer | null;
  answered: boolean;
  ended: boolean;
  closed: boolean;
  receivedBytes: number;
  /** Time spent waiting for the body of the client. */
  uploadMs: number;
  sentBytes: number;
  status: number;
  reason: Reason | null;
}

export interface InboundRequest {
  request: VisitorRequest;
  response: VisitorResponse;
  listener: 'http' | 'https';
  /** The client sent `Expect: 100-continue` and waits before sending the body. */
  expects: boolean;
  /** The raw connection of a request with `Upgrade`. */
  upgrade: { socket: Duplex; head: Buffer; protocol: string | null; detach(): void } | null;
}

/** `held`: untouched, so that another instance can be tried. `waiting`: until the instance sends 100. */
export type BodyState = 'none' | 'held' | 'waiting' | 'flowing' | 'sent';

export interface SimpleConnection {
  ingress: IngressState;
  socket: Socket;
  listener: 'http' | 'https';
  /** Moves the socket and all further input to node:http. */
  handOver: (socket: Socket) => void;
  /** The pending response. */
  response: SimpleResponse | null;
  /** Input received before the response was complete. */
  early: Buffer | null;
  /** Time of the accept, or of the end of the last response. */
  idleSince: number;
  hasServed: boolean;
  /** Callback of all responses on the connection. */
  onFinish: (error?: Error | null) => void;
  stop: () => void;
}

export interface Tunnel {
  proxied: ProxiedRequest;
  client: Duplex;
  instance: Duplex;
  touchedMs: number;
}

export interface RouteTable {
  /** Names of the platform itself, by host, and by suffix as below. They go before all others. */
  services: Map<string, Site>;
  hosts: Map<string, Site>;
  /** By suffix, e.g. `.example.com`. */
  wildcards: Map<string, Site>;
  applications: Map<string, ApplicationLoad>;
  upstreams: Map<string, Upstream>;
  /** Whether all routes were read once. Until then, an unknown host may have a route. */
  complete: boolean;
  /** Number of the last started read of routes, also of one that another process has numbered. */
  reads: number;
  /** Drained instances, which routes read before the drain must not restore. */
  drained: Map<string, number>;
  /** When the addresses of other machines were known to be those of their instances. */
  confirmedAt: number;
}

export interface Service {
  readonly served: ServedService;
  /** Its connections fail since this time; null: it takes them. */
  awaySince: number | null;
  /** Requests of which nothing was sent, until it takes connections again. */
  readonly waiting: Set<ProxiedRequest>;
  timer: NodeJS.Timeout | undefined;
}

/** A route with its upstreams. */
export interface Site {
  route: Route;
  upstreams: Upstream[];
  application: ApplicationLoad;
  /** Start of the next round-robin search. */
  nextIndex: number;
  /** null: it is an application. */
  service: Service | null;
}

/** State shared by all routes of an application, kept when its routes change. */
export interface ApplicationLoad {
  open: number;
  /** `open` by client address. */
  openByAddress: Map<string, number>;
  sites: Site[];
  readNumber: number;
}

export interface Upstream {
  instanceId: string;
  port: number;
  location: NetworkLocation | ServerLocation;
  /** Value of the sticky session cookie. */
  stickyToken: string;
  /** Number of sites with this instance. */
  references: number;
  /** Open requests, including WebSockets. */
  open: number;
  drained: boolean;
  /** The instance refused a connection: other instances are preferred until this time. */
  avoidUntil: number;
  /** Nobody answers there since this time, see reachability.ts; null: it can be reached, as far as is known. */
  unreachableSince: number | null;
  /** A connection is being tried, without a request. */
  isProbed: boolean;
  probedAt: number;
  readonly isPod: boolean;
  /** Until when its address is trusted, see confirmation.ts. */
  trustedUntil: number;
  confirmedAt: number;
  /** When a connection was not accepted last. */
  doubtedAt: number;
  idle: UpstreamConnection[];
  tunnels: Set<Tunnel>;
  idleWaiters: (() => void)[];
}

/** One connection to an instance. */
export interface UpstreamConnection {
  upstream: Upstream;
  /** null until the instance has accepted the connection. */
  socket: Socket | null;
  /** Cancels a connection attempt. */
  abandon: () => void;
  /** Sent once the connection is established. */
  unsent: string;
  parser: ResponseParser;
  user: ConnectionUser | null;
  /** It has served a request before: the instance may have closed it in the meantime. */
  reused: boolean;
  /** Received bytes belong to a tunnel, and are emitted as `data` of the socket. */
  isDetached: boolean;
  /** A byte was received since the last request. */
  receivedBytes: boolean;
  idleSince: number;
  idleUntil: number;
}

export interface ConnectionUser extends ResponseSink {
  onConnected(): void;
  /** All bytes of one read are delivered. */
  onReadDelivered(): void;
  /** The write buffer of the instance has drained. */
  onDrained(): void;
  onBroken(error: Error): void;
}
