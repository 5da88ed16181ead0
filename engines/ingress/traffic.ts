// Traffic counters per application, preview and instance, updated once per finished request.
import { LATENCY_BOUNDS_MS, type Traffic } from './ingress';

export interface TrafficCounters {
  entries: Map<string, Traffic>;
}

/** The application or preview that the traffic belongs to. */
export interface TrafficOwner {
  application_id: string;
  preview_id: string | null;
  instance_id: string | null;
}

const BUCKETS = LATENCY_BOUNDS_MS.length + 1;

export function trafficCounters(): TrafficCounters {
  return { entries: new Map() };
}

export function countRequest(counters: TrafficCounters, owner: TrafficOwner, status: number, durationMs: number): void {
  const entry = countersOf(counters, owner);
  entry.requests += 1;
  // The remaining 1xx is 101, a WebSocket, which counts as a success.
  const family = status >= 500 ? '5xx' : status >= 400 ? '4xx' : status >= 300 ? '3xx' : '2xx';
  entry.responses[family] += 1;
  const bucket = LATENCY_BOUNDS_MS.findIndex((bound) => durationMs <= bound);
  const index = bucket < 0 ? BUCKETS - 1 : bucket;
  entry.latency[index] = (entry.latency[index] as number) + 1;
}

export function countBytes(counters: TrafficCounters, owner: TrafficOwner, received: number, sent: number): void {
  const entry = countersOf(counters, owner);
  entry.received_bytes += received;
  entry.sent_bytes += sent;
}

/** Returns the counters and resets them. */
export function takeCounters(counters: TrafficCounters): Traffic[] {
  const entries = [...counters.entries.values()];
  counters.entries = new Map();
  return entries;
}

function countersOf(counters: TrafficCounters, owner: TrafficOwner): Traffic {
  const key = `${owner.application_id}/${owner.preview_id ?? ''}/${owner.instance_id ?? ''}`;
  const known = counters.entries.get(key);
  if (known !== undefined) return known;
  const { application_id, preview_id, instance_id } = owner;
  const entry: Traffic = {
    application_id,
    preview_id,
    instance_id,
    requests: 0,
    responses: { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0 },
    received_bytes: 0,
    sent_bytes: 0,
    latency: new Array<number>(BUCKETS).fill(0),
  };
  counters.entries.set(key, entry);
  return entry;
}
