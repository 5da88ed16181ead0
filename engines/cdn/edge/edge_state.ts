// State of the edge: zones by host name, the client for their origins, traffic counters, and the cache.
import type { CdnTraffic, CdnZoneSpec, PurgeSpec } from '../cdn';
import type { OriginClient } from './origin';
import type { Visit } from './visit';

export interface EdgeState {
  zones: Map<string, Zone>;
  hosts: Map<string, { zone: Zone; domain_id: string }>;
  origins: OriginClient;
  traffic: Map<string, CdnTraffic>;
  cache: ObjectCache;
  /** Proves to the ingress that a request comes from the platform. */
  token: string;
  log(message: string, error: unknown): void;
}

/** Stores the objects. */
export interface ObjectCache {
  /** Responds to a GET or HEAD without a body. */
  serve(visit: Visit): Promise<void> | void;
  /** Purges objects invalidated by a write (RFC 9111 §4.4). */
  invalidate(zoneId: string, purge: PurgeSpec): Promise<void>;
}

export interface Zone {
  id: string;
  spec: CdnZoneSpec;
}

export function trafficOf({ traffic }: EdgeState, zone_id: string, domain_id: string): CdnTraffic {
  const name = `${zone_id} ${domain_id}`;
  const known = traffic.get(name);
  if (known) return known;
  const responses = { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0 };
  const made = { zone_id, domain_id, requests: 0, hits: 0, bytes: 0, responses, origin_requests: 0 };
  traffic.set(name, made);
  return made;
}

export function setZone(state: EdgeState, id: string, spec: CdnZoneSpec): void {
  forgetZone(state, id);
  const zone = { id, spec };
  state.zones.set(id, zone);
  for (const { host, domain_id } of spec.hosts) state.hosts.set(host, { zone, domain_id });
}

export function forgetZone({ zones, hosts }: EdgeState, id: string): void {
  for (const { host } of zones.get(id)?.spec.hosts ?? []) if (hosts.get(host)?.zone.id === id) hosts.delete(host);
  zones.delete(id);
}
