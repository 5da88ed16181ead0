// The reverse proxy in front of applications: routes requests to instances by host name. It persists nothing: the
// control plane provides the routes.
import type { Edge } from '../cdn';
import type { NetworkLocation } from '../../core/outbound/network_location';

export interface Route {
  application_id: string;
  preview_id: string | null;
  /** In lower case; `*.example.com` matches all names one label below. */
  hosts: string[];
  /** Instances that accept requests. */
  targets: Target[];
  /** Why there are no targets, for the error page. */
  state: 'new' | 'running' | 'stopped' | 'crashed';
  maintenance: boolean;
  /** Redirects HTTP to HTTPS for host names with a certificate. */
  force_https: boolean;
  request_timeout_ms: number;
  sticky: boolean;
  /** Workloads of a cluster whose pods serve it, with installation and project: `platform/prj_…/wkl_…`. */
  workloads?: string[];
}

export interface Target {
  instance_id: string;
  /** On the loopback interface. */
  port: number;
  /** Network of the instance; absent: the network of the host. */
  location?: NetworkLocation;
  /** Of the pod that the instance is; absent: it is none. */
  pod_uid?: string;
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
  /** Why the ingress itself responded: no_target, refused, timeout, maintenance, … null where the application did. */
  reason: string | null;
}

export { LATENCY_BOUNDS_MS } from '../../core/log/latency';

export interface Traffic {
  application_id: string;
  preview_id: string | null;
  /** null: responses of the ingress itself. */
  instance_id: string | null;
  requests: number;
  /** By the first digit of the status code. */
  responses: { '2xx': number; '3xx': number; '4xx': number; '5xx': number };
  received_bytes: number;
  sent_bytes: number;
  /** One number per bucket: LATENCY_BOUNDS_MS.length + 1. */
  latency: number[];
}

export interface Certificate {
  /** PEM, leaf first. */
  chain: string;
  /** PEM. */
  key: string;
}

/** Callbacks of the ingress. */
export interface IngressCallbacks {
  /** Serves the host names of CDN zones; absent: there are none. */
  edge?: Edge;
  /** Whether another ingress of this installation serves a host name that has no route here; absent: none does. */
  isServedElsewhere?(host: string): boolean;
  /** Certificate for a host name, or null. Called once per name; the result is cached until `forgetCertificate`. */
  certificate(host: string): Promise<Certificate | null>;
  /**
   * Response to an ACME HTTP-01 challenge (RFC 8555 section 8.3). null for an unknown token, which the application may
   * answer; an empty text where the host name is the platform's and nobody else may prove it.
   */
  challenge(token: string, host: string): Promise<string | null>;
  line(line: AccessLine): void;
  /** A server of the platform takes connections again; absent: nobody asks. */
  serviceIsBack?(absence: ServiceAbsence): void;
}

/** Of a server of the platform, as while it restarted. */
export interface ServiceAbsence {
  name: string;
  awayMs: number;
  /** Requests that waited for it. */
  waited: number;
  /** Of these and of later ones, those that got 503. */
  refused: number;
}

/** Ends a pin. Reads numbered `read` or later apply again; without `read`, reads that begin later. */
export type Unpin = (read?: number) => void;

export interface IngressDriver {
  /** Bound ports: plain HTTP, and HTTPS where it is configured. */
  readonly ports: { http: number; https: number | null };
  /**
   * To be called before routes are read for `replaceRoutes` and `replaceApplicationRoutes`. Of two overlapping reads,
   * the one that began first may end last; its number prevents it from restoring old routes.
   */
  beginRead(): number;
  /** Replaces all routes, except those of applications that a later read has replaced. */
  replaceRoutes(routes: Route[], read?: number): void;
  /** Serves routes of the last run until `replaceRoutes`. Until then, unknown hosts get 503, not 404. */
  restoreRoutes(routes: Route[]): void;
  /** The served routes, whether they are complete, and when they were confirmed last; null: never. */
  routes(): { routes: Route[]; isComplete: boolean; confirmedMsAgo: number | null };
  /** Replaces the routes of one application, including previews; an empty list removes them. */
  replaceApplicationRoutes(applicationId: string, routes: Route[], read?: number): void;
  /**
   * Serves routes that are about to be committed: no read replaces them until the returned function is called. The
   * routes should then be read again.
   */
  pinRoutes(applicationId: string, routes: Route[]): Unpin;
  /**
   * The addresses of the routes given so far were those of their instances `ageMs` ago. Instances on other machines get
   * requests for a while after it, and as long as they accept connections without a gap: docs/decisions/0213.
   */
  confirmRoutes(ageMs: number): void;
  /** Whether an address waits for a newer confirmation, since it has accepted no connection; absent: not known here. */
  hasDoubts?(): boolean;
  /**
   * Sends no new requests to the instance; resolves when its open requests have ended, or after `ms`. WebSockets delay
   * it by at most 5 s.
   */
  drain(instanceId: string, ms: number): Promise<void>;
  /** Counters since the last call. */
  takeTraffic(): Traffic[];
  /**
   * What is counted and noted from now on is for the next control plane; what was before, `takeTraffic` has when this
   * resolves. Absent: it ends with this one.
   */
  holdTraffic?(): Promise<void>;
  /** Reloads the certificate of the host name when it is next needed; null: of all host names. */
  forgetCertificate(host: string | null): void;
  /**
   * Accepts no new connections; open requests may finish within the grace time, and WebSockets within theirs, which is
   * otherwise short: they need not end by themselves.
   */
  close(graceMs: number, tunnelGraceMs?: number): Promise<void>;
}
