// Metric series from stored points. Databases and other kinds with several parts read their series the same way.
import type { Context } from '../../../core/context';
import { groupBy } from '../../../core/group_by';
import { LATENCY_BUCKETS, percentile } from '../../../core/log/latency';
import { RESPONSE_TIME, type MetricDefinition, type MetricUnit } from '../../../core/log/metrics';
import { named } from '../../../db/statement';
import { spanOf, type MetricsArguments, type Span } from './span';

/** A part of a resource with a separate series, such as a process type. */
export interface Part {
  id: string;
  labels: { name: string; value: string }[];
  /** It takes the requests. */
  traffic: boolean;
  /** It follows another part. */
  follower?: true;
}

export interface Series {
  metric: string;
  unit: MetricUnit;
  labels: { name: string; value: string }[];
  /** A time without a measurement has no point. */
  points: { timestamp: string; value: number }[];
}

export interface Metrics {
  from: string;
  to: string;
  resolution_seconds: number;
  series: Series[];
}

export interface Question {
  resource_id: string;
  parts: readonly Part[];
}

/** The part of a metrics query that is the same for all resources. */
interface MetricsQuery {
  definitions: Record<string, MetricDefinition>;
  /** Names of definitions. */
  metrics: readonly string[];
  /** Label of a part of which only points are left. */
  gone: string;
  /** Only this part, which need not exist any more. */
  only: string | null;
}

/** One series for each metric and part that can have it, in their order. @throws invalid_query_parameter */
export async function metricSeries(
  ctx: Context,
  question: Question & MetricsQuery,
  args: MetricsArguments,
): Promise<Metrics> {
  return ((await metricSeriesOfMany(ctx, [question], question, args)) as [Metrics])[0];
}

/** The same of several resources, in their order, by two statements at most. @throws invalid_query_parameter */
export async function metricSeriesOfMany(
  ctx: Context,
  questions: readonly Question[],
  query: MetricsQuery,
  args: MetricsArguments,
): Promise<Metrics[]> {
  const span = spanOf(args);
  const found = await read(
    ctx,
    questions.map(({ resource_id }) => resource_id),
    query,
    span,
  );
  return questions.map((question) => seriesOf(question, query, span, found(question.resource_id)));
}

function seriesOf(question: Question, query: MetricsQuery, span: Span, { values, histograms }: Stored): Metrics {
  const series = query.metrics.flatMap((metric) => {
    const definition = query.definitions[metric] as MetricDefinition;
    return partsOf(
      { ...question, ...query },
      definition,
      definition.reading === 'percentile' ? histograms : (values.get(metric) ?? new Map()),
    ).map((part) => ({
      metric,
      unit: definition.unit,
      labels: part.labels,
      points: pointsOf(metric, definition, part.id, values, histograms),
    }));
  });
  return {
    from: span.from.toISOString(),
    to: span.to.toISOString(),
    resolution_seconds: span.resolution_seconds,
    series,
  };
}

interface Value {
  resource_id: string;
  part_id: string;
  metric: string;
  at: string;
  samples: number;
  total: number;
}

interface Histogram {
  resource_id: string;
  part_id: string;
  at: string;
  buckets: number[];
}

type ByPart<Row> = Map<string, Row[]>;
/** By metric, then by part. */
type Values = Map<string, ByPart<Value>>;

interface Stored {
  values: Values;
  histograms: ByPart<Histogram>;
}

const BIN = `date_bin(make_interval(secs => $5), at, timestamptz 'epoch')`;
const WHERE =
  'resource_id = any($1) and metric = any($2) and at >= $3 and at < $4 and ($6::text is null or part_id = $6)';
const VALUES = named(
  `select resource_id, part_id, metric, ${BIN} as at, sum(samples)::int as samples, sum(total) as total
    from metric_points where ${WHERE} group by 1, 2, 3, 4 order by 4`,
);
const MERGED = Array.from({ length: LATENCY_BUCKETS }, (_, index) => `sum(buckets[${index + 1}])::float8`).join(', ');
const HISTOGRAMS = named(
  `select resource_id, part_id, ${BIN} as at, array[${MERGED}] as buckets from metric_points
    where ${WHERE} and buckets is not null group by 1, 2, 3 order by 3`,
);

async function read(
  ctx: Context,
  resources: readonly string[],
  { definitions, metrics, only }: MetricsQuery,
  span: Span,
): Promise<(resource: string) => Stored> {
  const selected = metrics.map((name) => [name, definitions[name] as MetricDefinition] as const);
  const plain = new Set(selected.filter(([, { reading }]) => reading !== 'percentile').map(([name]) => name));
  if (selected.some(([, { traffic }]) => traffic)) plain.add('instances');
  const params = (names: string[]): unknown[] => [
    resources,
    names,
    span.from.toISOString(),
    span.to.toISOString(),
    span.resolution_seconds,
    only,
  ];
  const rows = await ctx.sql.query<Value>(VALUES, params([...plain]));
  const wantsTimes = selected.some(([, { reading }]) => reading === 'percentile');
  const histograms = wantsTimes ? await ctx.sql.query<Histogram>(HISTOGRAMS, params([RESPONSE_TIME])) : [];
  const values = groupBy(rows, ({ resource_id }) => resource_id);
  const times = groupBy(histograms, ({ resource_id }) => resource_id);
  return (resource) => ({
    values: new Map(
      [...groupBy(values.get(resource) ?? [], ({ metric }) => metric)].map(([metric, found]) => [
        metric,
        groupBy(found, ({ part_id }) => part_id),
      ]),
    ),
    histograms: groupBy(times.get(resource) ?? [], ({ part_id }) => part_id),
  });
}

/** Existing parts first, then deleted parts that still have points. */
function partsOf(
  { parts, gone: name, only }: Question & MetricsQuery,
  { traffic, follower }: MetricDefinition,
  found: ByPart<unknown>,
): Part[] {
  const fitting = parts.filter(
    (part) =>
      (only === null || part.id === only) &&
      (((!traffic || part.traffic) && (!follower || part.follower)) || found.has(part.id)),
  );
  const gone = [...found.keys()].filter((id) => !parts.some((part) => part.id === id));
  return [...fitting, ...gone.map((id) => ({ id, labels: [{ name, value: id }], traffic: false }))];
}

function pointsOf(
  metric: string,
  definition: MetricDefinition,
  part: string,
  values: Values,
  histograms: ByPart<Histogram>,
): Series['points'] {
  if (definition.reading === 'percentile') {
    return (histograms.get(part) ?? []).map(({ at, buckets }) => ({
      timestamp: at,
      value: percentile(buckets, definition.share ?? 0) ?? 0,
    }));
  }
  const rows = values.get(metric)?.get(part) ?? [];
  if (definition.reading === 'mean')
    return rows.map(({ at, samples, total }) => ({ timestamp: at, value: rounded(total / Math.max(samples, 1)) }));
  const counted = new Map(rows.map(({ at, total }) => [at, total]));
  const up = definition.traffic ? (values.get('instances')?.get(part) ?? []).filter(({ total }) => total > 0) : [];
  for (const { at } of up) if (!counted.has(at)) counted.set(at, 0);
  return [...counted].sort(([a], [b]) => (a < b ? -1 : 1)).map(([at, total]) => ({ timestamp: at, value: total }));
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
