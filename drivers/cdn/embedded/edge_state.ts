// What the parts of one cache share.
import type { CdnTraffic, CdnZoneSpec } from '../../cdn';
import type { Flight } from './flight';
import type { OriginClient } from './origin';
import type { ObjectStore } from './store';

export interface EdgeState {
  zones: Map<string, Zone>;
  hosts: Map<string, { zone: Zone; domain_id: string }>;
  store: ObjectStore;
  origins: OriginClient;
  /** Bytes of the largest object that is kept. */
  objectBytesMax: number;
  /** Requests to origins that others may wait for. */
  fetches: Map<string, Fetch>;
  /** Addresses whose last response could not be kept, until when they are passed through. */
  passed: Map<string, number>;
  traffic: Map<string, CdnTraffic>;
  log(message: string, error: unknown): void;
}

export interface Zone {
  id: string;
  spec: CdnZoneSpec;
}

/** A request to an origin on its way. */
export interface Fetch {
  zone_id: string;
  key: string;
  /** Empty before the head of the response. */
  tags: string[];
  hasHead: boolean;
  isCancelled: boolean;
  flight: Flight | null;
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
