// The time span and the resolution of a request for metrics.
import { invalidQuery } from '../../../core/errors';
import { limits } from '../../../core/limits';

/** Arguments that all metrics have. */
export interface MetricsArguments {
  from?: string | null;
  to?: string | null;
  resolution_seconds?: number | null;
}

export interface Span {
  /** On a multiple of the resolution. */
  from: Date;
  to: Date;
  resolution_seconds: number;
}

const RESOLUTIONS = [60, 300, 3600, 86_400];
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Default resolution: spans up to [milliseconds] get points of [seconds], some hundred points. */
const DEFAULTS: [number, number][] = [
  [6 * HOUR_MS, 60],
  [36 * HOUR_MS, 300],
  [Infinity, 3600],
];

/** Default: the last hour, the current minute included. @throws invalid_query_parameter */
export function spanOf(args: MetricsArguments, at = new Date()): Span {
  const now = new Date(Math.ceil(at.getTime() / MINUTE_MS) * MINUTE_MS);
  const to = args.to != null ? new Date(args.to) : args.from != null ? latest(new Date(args.from), now) : now;
  const from = args.from != null ? new Date(args.from) : new Date(to.getTime() - HOUR_MS);
  const ms = to.getTime() - from.getTime();
  if (ms <= 0) throw invalidQuery('from', 'from must be before to.');
  if (ms > limits.observationDaysMax * DAY_MS)
    throw invalidQuery('from', `from and to may be ${limits.observationDaysMax} days apart at most.`);
  const resolution_seconds = args.resolution_seconds ?? (DEFAULTS.find(([span]) => ms <= span)?.[1] as number);
  if (!RESOLUTIONS.includes(resolution_seconds))
    throw invalidQuery('resolution_seconds', `resolution_seconds must be one of ${RESOLUTIONS.join(', ')}.`);
  // Also the hour before the earliest time that can be written is none that PostgreSQL can read.
  if (from.getTime() < 0)
    throw invalidQuery(args.from != null ? 'from' : 'to', 'Metrics begin in 1970 at the earliest.');
  const step = resolution_seconds * 1000;
  if (ms / step > limits.metricPointsMax)
    throw invalidQuery(
      'resolution_seconds',
      `resolution_seconds is too fine for this span: more than ${limits.metricPointsMax} points.`,
    );
  return { from: new Date(Math.floor(from.getTime() / step) * step), to, resolution_seconds };
}

/** With `from` alone, up to now, as far as one answer goes. */
function latest(from: Date, now: Date): Date {
  return new Date(Math.min(now.getTime(), from.getTime() + limits.observationDaysMax * DAY_MS));
}
