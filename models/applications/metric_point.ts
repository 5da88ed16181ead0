// Points of metrics: how they are written. How they are read: models/applications/metric_point/series.ts.
import type { Sql } from '../../core/context';
import { LATENCY_BUCKETS } from '../../core/log/latency';
import { ensureDays, oldestObservation } from '../observers/observation_day';
import { named } from '../../db/statement';

export interface MetricPointInput {
  /** Kept by the minute. */
  at: Date;
  project_id: string;
  /** Whose metric: application, preview, … */
  resource_id: string;
  /** A part with a separate series: the process type. '' for none. */
  part_id: string;
  metric: string;
  /** Number of samples: the mean is total / samples. 0 for counters. */
  samples: number;
  total: number;
  /** Of a histogram; core/log/latency.ts. */
  buckets?: readonly number[] | null;
}

const MINUTE_MS = 60_000;

const SUMS = Array.from(
  { length: LATENCY_BUCKETS },
  (_, index) => `m.buckets[${index + 1}] + excluded.buckets[${index + 1}]`,
).join(', ');
// In the order of the key, so that two writers can't wait for each other.
const ADD =
  named(`insert into metric_points as m (at, project_id, resource_id, part_id, metric, samples, total, buckets)
  select * from jsonb_to_recordset($1::jsonb) as p (at timestamptz, project_id text, resource_id text, part_id text,
    metric text, samples integer, total double precision, buckets bigint[])
  order by resource_id collate "C", metric collate "C", part_id collate "C", at
  on conflict (resource_id, metric, part_id, at) do update
    set samples = m.samples + excluded.samples, total = m.total + excluded.total,
    buckets = case when m.buckets is null then excluded.buckets
      when excluded.buckets is null then m.buckets else array[${SUMS}] end`);

/** Adds points to the stored points of their minutes. Points older than the longest retention are dropped. */
export async function addMetricPoints(sql: Sql, points: Iterable<MetricPointInput>): Promise<void> {
  const merged = [...mergePoints(points).values()].filter(({ at }) => at >= oldestObservation());
  if (!merged.length) return;
  await ensureDays(
    sql,
    merged.map(({ at }) => at),
  );
  await sql.query(ADD, [JSON.stringify(merged)]);
}

/** One point for each minute of a metric: what waits for a database that is away grows with time, not with traffic. */
export function mergePoints(
  points: Iterable<MetricPointInput>,
  into = new Map<string, MetricPointInput>(),
): Map<string, MetricPointInput> {
  for (const point of points) {
    const minute = Math.floor(point.at.getTime() / MINUTE_MS) * MINUTE_MS;
    const key = `${point.resource_id} ${point.metric} ${point.part_id} ${minute}`;
    const known = into.get(key);
    into.set(key, known ? sumOf(known, point) : { ...point, at: new Date(minute) });
  }
  return into;
}

function sumOf(a: MetricPointInput, b: MetricPointInput): MetricPointInput {
  const buckets =
    a.buckets && b.buckets
      ? a.buckets.map((count, index) => count + (b.buckets?.[index] ?? 0))
      : (a.buckets ?? b.buckets);
  return { ...a, samples: a.samples + b.samples, total: a.total + b.total, buckets };
}
