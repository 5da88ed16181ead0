// The two objects of an observer: what they may hold beyond the bounds of the SDL, and how an update is merged into
// them.
import { isPrivateHost, normalHost, parseHostPort } from '../../../core/protocols/addresses';
import { CHECK_INTERVALS_SECONDS, type MetricRule, type UptimeCheck } from '../../../core/protocols/checks';
import { validationFailed, type FieldError } from '../../../core/errors';
import { applicationMetrics, databaseMetrics } from '../../../core/log/metrics';
import { formats } from '../../../core/formats/formats';
import type { UpdateObserverMetricInput, UpdateObserverUptimeInput } from '../../../schema/types';

/** The stored and shown part: values of headers are sealed separately. */
export type StoredUptime = UptimeCheck & { regions: string[]; certificate_expiry_days: number };

export const MASK = '***';

const DEFAULTS: StoredUptime = {
  check: 'http',
  target: '',
  method: 'GET',
  headers: [],
  expected_status_codes: [],
  expected_body: null,
  follow_redirects: true,
  verify_tls: true,
  certificate_expiry_days: 7,
  timeout_seconds: 10,
  regions: [],
};

/** @param present with the values of its headers; null for a new observer */
export function mergeUptime(present: StoredUptime | null, input: UpdateObserverUptimeInput): StoredUptime {
  const before = present ?? DEFAULTS;
  const given = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
  const merged = { ...before, ...given } as StoredUptime;
  return { ...merged, headers: input.headers ? unmask(input.headers, before.headers) : before.headers };
}

/** Keeps the stored value of a header whose masked value is sent back. */
function unmask(sent: { name: string; value: string }[], present: UptimeCheck['headers']): UptimeCheck['headers'] {
  const known = new Map(present.map(({ name, value }) => [name.toLowerCase(), value]));
  return sent.map(({ name, value }) => ({
    name,
    value: value === MASK ? (known.get(name.toLowerCase()) ?? value) : value,
  }));
}

export function masked(uptime: StoredUptime): StoredUptime {
  return { ...uptime, headers: uptime.headers.map(({ name }) => ({ name, value: MASK })) };
}

export function mergeMetric(present: MetricRule | null, input: UpdateObserverMetricInput): MetricRule {
  const given = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
  return { window_seconds: 300, ...present, ...given } as MetricRule;
}

export interface Fields {
  uptime: StoredUptime | null;
  metric: MetricRule | null;
  interval_seconds: number;
}

/** @throws validation_failed with all mistakes together */
export function requireFields(fields: Fields, rules: { allowPrivateAddresses: boolean }): void {
  const errors = [
    ...intervalErrors(fields),
    ...(fields.uptime ? uptimeErrors(fields.uptime, fields.interval_seconds, rules) : []),
    ...(fields.metric ? metricErrors(fields.metric) : []),
  ];
  if (errors.length) throw validationFailed(errors);
}

function intervalErrors({ interval_seconds }: Fields): FieldError[] {
  if (CHECK_INTERVALS_SECONDS.includes(interval_seconds)) return [];
  const detail = `must be one of ${CHECK_INTERVALS_SECONDS.join(', ')}`;
  return [{ field: 'interval_seconds', code: 'not_in_enum', detail }];
}

/** A request has one of each; the platform writes them. */
const FRAMING = ['connection', 'content-length', 'host', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade'];

function uptimeErrors(
  uptime: StoredUptime,
  interval: number,
  { allowPrivateAddresses }: { allowPrivateAddresses: boolean },
): FieldError[] {
  const errors: FieldError[] = [];
  const host = hostOf(uptime);
  if (host === null) errors.push({ field: 'uptime.target', code: 'invalid_format', detail: targetDetail(uptime) });
  else if (!allowPrivateAddresses && isPrivateHost(host))
    errors.push({ field: 'uptime.target', code: 'invalid_format', detail: 'must have a public address' });
  if (uptime.timeout_seconds >= interval)
    errors.push({ field: 'uptime.timeout_seconds', code: 'too_large', detail: `must be below the interval` });
  if (uptime.expected_body !== null && (uptime.check !== 'http' || uptime.method === 'HEAD'))
    errors.push({
      field: 'uptime.expected_body',
      code: 'depends_on',
      detail: 'needs a check over http that has a body: GET or POST',
    });
  uptime.headers.forEach(({ name, value }, index) => {
    if (FRAMING.includes(name.toLowerCase()))
      errors.push({ field: `uptime.headers.${index}.name`, code: 'invalid_format', detail: 'is set by the platform' });
    if (value === MASK)
      errors.push({ field: `uptime.headers.${index}.value`, code: 'invalid_format', detail: 'is only a mask' });
    // Servers read bytes beyond ASCII as Latin-1, as UTF-8, or not at all (RFC 9110 §5.5).
    else if (/[^\x20-\x7e]/.test(value))
      errors.push({
        field: `uptime.headers.${index}.value`,
        code: 'invalid_format',
        detail: 'must consist of printable ASCII characters',
      });
  });
  return errors;
}

function targetDetail({ check, target }: StoredUptime): string {
  if (check === 'http' && /^https?:\/\/[^/?#]*@/i.test(target))
    return 'must have no user and password in it: send them as a header Authorization, whose value is kept secret';
  return `must be ${FORMS[check]}`;
}

const FORMS: Record<UptimeCheck['check'], string> = {
  http: 'a URL that begins with http:// or https://',
  tcp: 'host:port',
  ping: 'a host name or an address',
};

/** The host that a target names; null where it has not the form of its check. */
export function hostOf({ check, target }: Pick<UptimeCheck, 'check' | 'target'>): string | null {
  if (check === 'http') return formats.url(target) ? new URL(target).hostname : null;
  if (check === 'tcp') return parseHostPort(target)?.host ?? null;
  const host = normalHost(target);
  // Nothing that a program could take for an option.
  return host !== null && !host.startsWith('-') ? host : null;
}

function metricErrors({ resource_type, metric, threshold }: MetricRule): FieldError[] {
  const names = Object.keys(resource_type === 'application' ? applicationMetrics : databaseMetrics);
  const errors: FieldError[] = [];
  if (!names.includes(metric))
    errors.push({ field: 'metric.metric', code: 'not_in_enum', detail: `must be one of ${names.join(', ')}` });
  if (!Number.isFinite(threshold))
    errors.push({ field: 'metric.threshold', code: 'invalid_type', detail: 'must be a finite number' });
  return errors;
}
