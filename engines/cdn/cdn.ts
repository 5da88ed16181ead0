// Content delivery: caches between visitors and origins.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Credentials } from '../../core/protocols/sigv4';
import type { DriverContext } from '../../core/driver';

export interface CdnZoneSpec {
  /** Host names at which the zone answers, with the id of the custom domain; '' for the zone's own name. */
  hosts: { host: string; domain_id: string }[];
  origin: CdnOriginSpec;
  enabled: boolean;
  cache: CdnCacheRules;
  compression: boolean;
  force_https: boolean;
}

export interface CdnOriginSpec {
  /** Scheme, host and port to connect to. */
  url: string;
  /** Of the request. */
  host_header: string;
  /** Ours: its address may be a private one. */
  is_internal: boolean;
  /** Of a bucket: requests are signed, and a path is the key of an object. */
  bucket?: { name: string; region: string; credentials: Credentials };
}

export interface CdnCacheRules {
  default_ttl_seconds: number;
  browser_ttl_seconds: number | null;
  respect_origin_headers: boolean;
  query_string: 'ignore' | 'include';
  serve_stale: boolean;
}

export interface PurgeSpec {
  type: 'all' | 'urls' | 'prefixes' | 'tags';
  values: string[];
}

/** Counted since the last call, of one host name of a zone. */
export interface CdnTraffic {
  zone_id: string;
  domain_id: string;
  requests: number;
  hits: number;
  bytes: number;
  /** By first digit of the status. */
  responses: Record<'2xx' | '3xx' | '4xx' | '5xx', number>;
  origin_requests: number;
}

export interface CdnDriver {
  readonly name: string;
  /** The zone answers as the spec says when this resolves. */
  ensureZone(id: string, spec: CdnZoneSpec, ctx: DriverContext): Promise<void>;
  /** Its objects go too. Absent is success. */
  removeZone(id: string, ctx: DriverContext): Promise<void>;
  /** Names of the caches that hold objects: a purge is to be done on each. */
  nodes(): readonly string[];
  /**
   * No request that starts after this has resolved is answered by the node with what was purged. A node that is none of
   * `nodes` is success. @throws DriverError transient where the node can't be reached
   */
  purge(id: string, purge: PurgeSpec, node: string, ctx: DriverContext): Promise<void>;
  takeTraffic(): CdnTraffic[];
}

/** Shows the ingress that a request comes from a zone before an application, and is right about its visitor. */
export const EDGE_FIELD = 'x-platform-edge';

/** What the ingress passes to the cache of its own process. */
export interface Edge {
  has(host: string): boolean;
  /** Whether http is redirected where the host has a certificate. */
  forcesHttps(host: string): boolean;
  handle(request: IncomingMessage, response: ServerResponse, visitor: Visitor): void;
  /** Whether the request is that of a zone whose origin is an application. */
  isOwn(request: Pick<IncomingMessage, 'headers'>): boolean;
}

export interface Visitor {
  host: string;
  scheme: 'http' | 'https';
  address: string;
  requestId: string;
  /** Where the visitor is sent instead; absent: nowhere. */
  redirect?: string;
}
