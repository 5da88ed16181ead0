// The last hour of an application: requests, errors and the time of responses, as small lines with their numbers.
import { graphql, type ResultOf } from '../api/graphql';
import { Spark } from './spark';

/** What is shown of the last hour. */
export const HOUR_FIELDS = graphql(`
  fragment HourFields on Metrics {
    from
    to
    series {
      metric
      points {
        timestamp
        value
      }
    }
  }
`);

export type Hour = ResultOf<typeof HOUR_FIELDS>;

const MINUTE_MS = 60_000;

/** A value for each minute of the hour. Several series of a metric are those of its process types. */
function minutesOf({ from, to, series }: Hour, metric: string, join: (a: number, b: number) => number) {
  const [start, end] = [Date.parse(from), Date.parse(to)];
  const values: (number | null)[] = Array.from(
    { length: Math.max(2, Math.round((end - start) / MINUTE_MS)) },
    () => null,
  );
  for (const one of series.filter((found) => found.metric === metric)) {
    for (const { timestamp, value } of one.points) {
      const index = Math.floor((Date.parse(timestamp) - start) / MINUTE_MS);
      if (index in values) values[index] = join(values[index] ?? 0, value);
    }
  }
  return values;
}

const add = (a: number, b: number): number => a + b;
const sum = (values: readonly (number | null)[]): number => values.reduce<number>((all, one) => all + (one ?? 0), 0);

interface HourState {
  requests: number;
  errors: number;
  /** The slowest minute; null without requests. */
  p95Ms: number | null;
}

export function hourState(hour: Hour): HourState {
  const times = minutesOf(hour, 'response_time_p95_ms', Math.max).filter((value) => value !== null);
  return {
    requests: sum(minutesOf(hour, 'requests', add)),
    errors: sum(minutesOf(hour, 'responses_5xx', add)),
    p95Ms: times.length ? Math.max(...times) : null,
  };
}

const countText = (count: number): string => Math.round(count).toLocaleString('en');

/** Requests of the last hour, and those that failed. */
export function HourRequests({ hour }: { hour: Hour }) {
  const { requests, errors } = hourState(hour);
  return (
    <span class="measured">
      <Spark values={minutesOf(hour, 'requests', add)} />
      <span>
        {countText(requests)}
        {errors > 0 && <strong class="bad-text"> · {countText(errors)} failed</strong>}
      </span>
    </span>
  );
}

export function HourTime({ hour }: { hour: Hour }) {
  const { p95Ms } = hourState(hour);
  if (p95Ms === null) return <span class="faint">–</span>;
  return (
    <span class="measured">
      <Spark values={minutesOf(hour, 'response_time_p95_ms', Math.max)} />
      <span>{countText(p95Ms)} ms</span>
    </span>
  );
}

/** The three of an application, beside each other. */
export function LastHour({ hour }: { hour: Hour }) {
  const { requests, errors, p95Ms } = hourState(hour);
  const tiles = [
    ['Requests', countText(requests), minutesOf(hour, 'requests', add), undefined],
    ['Errors (5xx)', countText(errors), minutesOf(hour, 'responses_5xx', add), errors ? 'bad' : undefined],
    [
      'Slowest p95',
      p95Ms === null ? 'no requests' : `${countText(p95Ms)} ms`,
      minutesOf(hour, 'response_time_p95_ms', Math.max),
      undefined,
    ],
  ] as const;
  return (
    <ul class="tiles" aria-label="Last hour">
      {tiles.map(([title, value, values, tone]) => (
        <li key={title}>
          <small>{title}, last hour</small>
          <strong>{value}</strong>
          <Spark values={values} tone={tone} />
        </li>
      ))}
    </ul>
  );
}
