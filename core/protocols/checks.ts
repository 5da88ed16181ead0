// Uptime checks and their results. Plain values, which are also sent to remote probes.
import type { CheckStatus } from '../../schema/types';

export interface UptimeCheck {
  check: 'http' | 'tcp' | 'ping';
  /** Target of the check: a URL for `http`, host:port for `tcp`, and a host for `ping`. */
  target: string;
  method: 'GET' | 'HEAD' | 'POST';
  headers: { name: string; value: string }[];
  /** Empty: 200 to 399. */
  expected_status_codes: number[];
  expected_body: string | null;
  follow_redirects: boolean;
  verify_tls: boolean;
  timeout_seconds: number;
}

/** Timings of a check in milliseconds; null for a phase that was not reached or does not exist. */
export interface CheckTimings {
  dns_ms: number | null;
  connect_ms: number | null;
  tls_ms: number | null;
  first_byte_ms: number | null;
}

export interface CheckOutcome {
  status: CheckStatus;
  /** null without a response. */
  response_time_ms: number | null;
  status_code: number | null;
  /** Value of a metric. */
  value: number | null;
  /** Message for users. */
  error: string | null;
  timings: CheckTimings | null;
  certificate_expires_at: string | null;
  /** Name of the authority whose certificate ends then; null: that of the target does. */
  certificate_authority: string | null;
  /** The check failed before any response of the target: the cause may be local. */
  unreachable: boolean;
}

export const CHECK_INTERVALS_SECONDS = [30, 60, 120, 300, 600, 1800, 3600];

/** Maximum time of on-demand checks, regardless of the observer's setting: an HTTP request waits for them. */
export const CHECK_NOW_SECONDS_MAX = 20;

type MetricOperator = 'gt' | 'gte' | 'lt' | 'lte';

export interface MetricRule {
  resource_type: 'application' | 'database';
  resource_id: string;
  metric: string;
  operator: MetricOperator;
  threshold: number;
  window_seconds: number;
}

const SIGNS: Record<MetricOperator, string> = { gt: '>', gte: '>=', lt: '<', lte: '<=' };

/** Outcome for the value of a metric: the check fails where the rule matches. */
export function metricOutcome(rule: MetricRule, value: number): CheckOutcome {
  const { metric, operator, threshold } = rule;
  const holds = { gt: value > threshold, gte: value >= threshold, lt: value < threshold, lte: value <= threshold };
  const failed = holds[operator];
  const rounded = Math.round(value * 100) / 100;
  return {
    status: failed ? 'fail' : 'pass',
    response_time_ms: null,
    status_code: null,
    value: rounded,
    error: failed ? `${metric} is ${rounded}, which is ${SIGNS[operator]} ${threshold}.` : null,
    timings: null,
    certificate_expires_at: null,
    certificate_authority: null,
    unreachable: false,
  };
}
