// The reverse proxy in front of applications: forwards requests by their host name to instances. It stores nothing:
// routes are given to it.
import type { Edge } from '../cdn/cdn';
import type { NetworkLocation } from '../../core/outbound/network_location';

export interface Route {
  application_id: string;
  preview_id: string | null;
  /** Lower case; `*.example.com` leads everything one label below. */
  hosts: string[];
  /** Instances that take requests. */
  targets: Target[];
  /** Why there are no targets, for the page that a visitor sees. */
  state: 'new' | 'running' | 'stopped' | 'crashed';
  maintenance: boolean;
  /** Redirects http to https, for host names that have a certificate. */
  force_https: boolean;
  request_timeout_ms: number;
  sticky: boolean;
}

export interface Target {
  instance_id: string;
  /** On the loopback interface. */
  port: number;
  /** Of the network that it is in; absent: that of the host. */
  location?: NetworkLocation;
}

/** One request, for the router lines of the log. The query string is left out: it may carry secrets. */
export interface AccessLine {
  at: Date;
  application_id: string;
  preview_id: string | null;
  instance_id: string | null;
  method: string;
  host: string;
  path: string;
  status: number;
  duration_ms: number;
  bytes_sent: number;
  client_address: string;
  request_id: string;
  /** Why the ingress itself answered: no_target, refused, timeout, maintenance, … null when the application did. */
  reason: string | null;
}

export { LATENCY_BOUNDS_MS } from '../../core/log/latency';

export interface Traffic {
  application_id: string;
  preview_id: string | null;
  /** null: answered by the ingress itself. */
  instance_id: string | null;
  requests: number;
  /** By first digit of the status. */
  responses: { '2xx': number; '3xx': number; '4xx': number; '5xx': number };
  received_bytes: number;
  sent_bytes: number;
  /** One number per bucket, LATENCY_BOUNDS_MS.length + 1. */
  latency: number[];
}

export interface Certificate {
  /** PEM, leaf first. */
  chain: string;
  /** PEM. */
  key: string;
}

/** What the ingress calls while it serves. */
export interface IngressCallbacks {
  /** Answers for the host names of CDN zones; absent: there are none. */
  edge?: Edge;
  /**
   * Certificate for a host name, null where there is none. Asked once per name and remembered until
   * `forgetCertificate`.
   */
  certificate(host: string): Promise<Certificate | null>;
  /** Answer to an ACME HTTP-01 challenge (RFC 8555 section 8.3), null for an unknown token. */
  challenge(token: string): Promise<string | null>;
  line(line: AccessLine): void;
}

/** Ends a pin: reads of at least this number count again, without one those that begin later. */
export type Unpin = (read?: number) => void;

export interface IngressDriver {
  /** As bound: the plain port, and the one with TLS where it is configured. */
  readonly ports: { http: number; https: number | null };
  /**
   * To be called before routes are read, for `replaceRoutes` and `replaceApplicationRoutes`: of two reads that overlap,
   * the
   * one that began first may end last, and must not bring back old routes.
   */
  beginRead(): number;
  /** Replaces all routes, except those of applications that a later read has replaced. */
  replaceRoutes(routes: Route[], read?: number): void;
  /** Routes of the last run, to serve until `replaceRoutes`. Hosts without one are answered 503 until then, not 404. */
  restoreRoutes(routes: Route[]): void;
  /** Those that are served, and whether they are all that there are. */
  routes(): { routes: Route[]; isComplete: boolean };
  /** Replaces the routes of one application, previews included; none removes them. */
  replaceApplicationRoutes(applicationId: string, routes: Route[], read?: number): void;
  /**
   * Routes that are about to become true: no read replaces them until the returned function is called. Then they should
   * be read again.
   */
  pinRoutes(applicationId: string, routes: Route[]): Unpin;
  /**
   * No new requests to the instance from now on; resolves when its open ones have ended, or after `ms`. WebSockets do
   * not hold it longer than 5 s.
   */
  drain(instanceId: string, ms: number): Promise<void>;
  /** Counters since the last call. */
  takeTraffic(): Traffic[];
  /** Loads the certificate of the host name again when it is next needed, null: those of all names. */
  forgetCertificate(host: string | null): void;
  /** Takes no new connections, lets open requests finish within the grace time. */
  close(graceMs: number): Promise<void>;
}
