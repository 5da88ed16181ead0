// Content delivery: caches between visitors and origins.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Credentials } from '../../core/protocols/sigv4';

export interface CdnZoneSpec {
  /** Host names of the zone, with the id of the custom domain; '' for the zone's own name. */
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
  /** Host header of requests to the origin. */
  host_header: string;
  /** Operated by the platform: its address may be a private one. */
  is_internal: boolean;
  /** The origin is a bucket: requests are signed, and a path is an object key. */
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

/** Traffic of one host name of a zone since the last call. */
export interface CdnTraffic {
  zone_id: string;
  domain_id: string;
  requests: number;
  hits: number;
  bytes: number;
  /** By the first digit of the status code. */
  responses: Record<'2xx' | '3xx' | '4xx' | '5xx', number>;
  origin_requests: number;
}

export interface CdnDriver {
  readonly name: string;
  /** The zone is served according to the spec once this resolves. */
  ensureZone(id: string, spec: CdnZoneSpec): Promise<void>;
  /** Also removes the objects of the zone. A missing zone is success. */
  removeZone(id: string): Promise<void>;
  /** Once this resolves, no purged object is served to new requests. */
  purge(id: string, purge: PurgeSpec): Promise<void>;
  takeTraffic(): CdnTraffic[];
}

/** Header field that marks requests of a zone to the ingress, which then trusts their visitor fields. */
export const EDGE_FIELD = 'x-platform-edge';

/** Interface of the ingress to the cache in its process. */
export interface Edge {
  has(host: string): boolean;
  /** Whether HTTP is redirected to HTTPS once the host has a certificate. */
  forcesHttps(host: string): boolean;
  handle(request: IncomingMessage, response: ServerResponse, visitor: Visitor): void;
  /** Whether the request comes from a zone whose origin is an application. */
  isOwn(request: Pick<IncomingMessage, 'headers'>): boolean;
}

export interface Visitor {
  host: string;
  scheme: 'http' | 'https';
  address: string;
  requestId: string;
  /** Target of the redirect to HTTPS; absent: no redirect. */
  redirect?: string;
}
