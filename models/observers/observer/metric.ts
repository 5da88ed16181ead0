// Values of metrics for observers: one number for the window, over all parts of the resource.
import { metricOutcome, type CheckOutcome, type MetricRule } from '../../../core/protocols/checks';
import type { Sql } from '../../../core/context';
import { percentile, LATENCY_BUCKETS } from '../../../core/log/latency';
import { applicationMetrics, databaseMetrics, RESPONSE_TIME, type MetricDefinition } from '../../../core/log/metrics';
import { named } from '../../../db/statement';

/** Points of a minute are whole this long after it: those who measure write every 15 seconds. */
const SETTLED_SECONDS = 20;
const BUCKETS = Array.from({ length: LATENCY_BUCKETS }, (_, index) => `sum(p.buckets[${index + 1}])::float8`).join(
  ', ',
);

// Whole minutes up to the last one that is settled. `present`: minutes in which the resource took requests, or could
// have.
const VALUES = named(`select w.n, v.samples, v.total, v.points, v.buckets, i.present
  from (select n, resource_id, metric, date_trunc('minute', now() - interval '${SETTLED_SECONDS} s') as until,
    make_interval(mins => minutes) as span
    from unnest($1::text[], $2::text[], $3::int[]) with ordinality as w (resource_id, metric, minutes, n)) as w
  cross join lateral (select sum(p.samples)::float8 as samples, sum(p.total) as total, count(*)::int as points,
    array[${BUCKETS}] as buckets
    from metric_points p where p.resource_id = w.resource_id and p.metric = w.metric and p.at >= w.until - w.span
      and p.at < w.until) as v
  cross join lateral (select count(*) filter (where p.total > 0)::int as present
    from metric_points p where p.resource_id = w.resource_id and p.metric = 'instances' and p.at >= w.until - w.span
      and p.at < w.until) as i
  order by w.n`);

interface Row {
  samples: number | null;
  total: number | null;
  points: number;
  buckets: (number | null)[];
  present: number;
}

/** What follows from each rule now; null where the metric is silent. In their order, with one statement. */
export async function metricValues(sql: Sql, rules: readonly MetricRule[]): Promise<(CheckOutcome | null)[]> {
  const rows = await sql.query<Row>(VALUES, [
    rules.map(({ resource_id }) => resource_id),
    rules.map((rule) => definitionOf(rule)?.stored ?? rule.metric),
    rules.map(({ window_seconds }) => Math.ceil(window_seconds / 60)),
  ]);
  return rules.map((rule, index) => {
    const value = valueOf(definitionOf(rule), rows[index] as Row);
    return value === null ? null : metricOutcome(rule, value);
  });
}

function definitionOf({ resource_type, metric }: MetricRule): MetricDefinition | undefined {
  const definitions: Record<string, MetricDefinition> =
    resource_type === 'application' ? applicationMetrics : databaseMetrics;
  return definitions[metric];
}

function valueOf(definition: MetricDefinition | undefined, row: Row): number | null {
  if (!definition) return null;
  if (definition.stored === RESPONSE_TIME) {
    if (!row.points) return null;
    return percentile(
      row.buckets.map((count) => count ?? 0),
      definition.share ?? 0,
    );
  }
  // Nothing counted while something ran is a count of zero.
  if (!row.points) return definition.traffic && row.present ? 0 : null;
  return definition.reading === 'sum' ? row.total : (row.total ?? 0) / Math.max(row.samples ?? 0, 1);
}
