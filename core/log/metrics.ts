// Metrics by kind: their units, and the derivation of points from stored values.

export type MetricUnit = 'percent' | 'megabytes' | 'bytes' | 'count' | 'milliseconds' | 'seconds' | 'per_second';

export interface MetricDefinition {
  unit: MetricUnit;
  /**
   * mean: of samples. sum: of counters, zero for an interval without counts in which the part was running. percentile:
   * of the histogram `response_time`.
   */
  reading: 'mean' | 'sum' | 'percentile';
  /** Name of the stored metric, where it differs. */
  stored?: string;
  share?: number;
  /** Only for the part that receives requests. */
  traffic?: true;
  /** Only for replicas. */
  follower?: true;
}

const counted = { unit: 'count', reading: 'sum' } as const;
const traffic = { ...counted, traffic: true } as const;
const time = { unit: 'milliseconds', reading: 'percentile', stored: 'response_time', traffic: true } as const;

export const applicationMetrics = {
  cpu_percent: { unit: 'percent', reading: 'mean' },
  memory_mb: { unit: 'megabytes', reading: 'mean' },
  network_in_bytes: { unit: 'bytes', reading: 'sum' },
  network_out_bytes: { unit: 'bytes', reading: 'sum' },
  instances: { unit: 'count', reading: 'mean' },
  requests: traffic,
  response_time_p50_ms: { ...time, share: 0.5 },
  response_time_p95_ms: { ...time, share: 0.95 },
  response_time_p99_ms: { ...time, share: 0.99 },
  responses_2xx: traffic,
  responses_3xx: traffic,
  responses_4xx: traffic,
  responses_5xx: traffic,
} as const satisfies Record<string, MetricDefinition>;

/**
 * Points of a database: the resource is its id, the part is the id of the measured server: its own, or that of a
 * replica. All are sampled: total is the sum of the samples of a minute.
 */
export const databaseMetrics = {
  cpu_percent: { unit: 'percent', reading: 'mean' },
  memory_percent: { unit: 'percent', reading: 'mean' },
  storage_used_bytes: { unit: 'bytes', reading: 'mean' },
  connections: { unit: 'count', reading: 'mean' },
  transactions_per_second: { unit: 'per_second', reading: 'mean' },
  read_iops: { unit: 'per_second', reading: 'mean' },
  write_iops: { unit: 'per_second', reading: 'mean' },
  replication_lag_seconds: { unit: 'seconds', reading: 'mean', follower: true },
} as const satisfies Record<string, MetricDefinition>;

/** Points of a DNS zone: the resource is its id, the part is the record type of the query. */
export const dnsZoneMetrics = {
  queries: counted,
  responses_noerror: counted,
  responses_nxdomain: counted,
  responses_servfail: counted,
} as const satisfies Record<string, MetricDefinition>;

/** Points of a CDN zone: the resource is its id, the part is the id of the custom domain; '' for its own host name. */
export const cdnZoneMetrics = {
  requests: counted,
  bandwidth_bytes: { unit: 'bytes', reading: 'sum' },
  // Each request is a sample of 0 or 100.
  cache_hit_ratio: { unit: 'percent', reading: 'mean' },
  responses_2xx: counted,
  responses_3xx: counted,
  responses_4xx: counted,
  responses_5xx: counted,
  origin_requests: counted,
} as const satisfies Record<string, MetricDefinition>;

/** Points of a relay zone: the resource is its id, the part is the id of the sending domain. */
export const emailMetrics = {
  sent: counted,
  delivered: counted,
  bounced: counted,
  complained: counted,
  opened: counted,
  clicked: counted,
  suppressed: counted,
} as const satisfies Record<string, MetricDefinition>;

/** Histogram of response times, stored with buckets. */
export const RESPONSE_TIME = 'response_time';
