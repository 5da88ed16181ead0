// Measurements over time: the choice of a period, and a chart for each group of metrics.
import { useMemo, useState } from 'preact/hooks';
import { graphql, type Query, type ResultOf } from '../api/graphql';
import { useQuery } from '../api/use_query';
import { Chart, type ChartSeries } from './chart';
import { Waiting } from './page';

/** What the charts of one metric show. */
export const SERIES_FIELDS = graphql(`
  fragment SeriesFields on MetricSeries {
    metric
    unit
    labels {
      name
      value
    }
    points {
      timestamp
      value
    }
  }
`);

interface Metrics {
  from: string;
  to: string;
  series: readonly ResultOf<typeof SERIES_FIELDS>[];
}

export interface ChartSpec {
  title: string;
  unit: string;
  /** Metric -> its name in the legend; empty where it is the only one. */
  metrics: Record<string, string>;
  /** Divides the values, such as 1e6 for megabytes. */
  divisor?: number;
}

const PERIODS = { '1 hour': 1, '6 hours': 6, '24 hours': 24, '7 days': 168 };
type Period = keyof typeof PERIODS;
/** So often a page with charts asks again. */
const METRICS_POLL_MS = 30_000;

/** The period of a page: its beginning, and the control that chooses it. */
function usePeriod(): [from: string, control: preact.JSX.Element] {
  const [period, setPeriod] = useState<Period>('1 hour');
  const from = useMemo(() => new Date(Date.now() - PERIODS[period] * 3_600_000).toISOString(), [period]);
  const control = (
    <fieldset class="segments">
      <legend class="off-screen">Period</legend>
      {(Object.keys(PERIODS) as Period[]).map((one) => (
        <label key={one}>
          <input type="radio" name="period" checked={one === period} onChange={() => setPeriod(one)} />
          <span>{one}</span>
        </label>
      ))}
    </fieldset>
  );
  return [from, control];
}

interface MetricChartsProps<Data> {
  /** Of what is measured. */
  id: string;
  query: Query<Data, { id: string; from?: string | null }>;
  metricsOf(data: Data): Metrics;
  charts: readonly ChartSpec[];
  /** Label that tells series of one metric apart, such as `process_type`. */
  label: string;
}

export function MetricCharts<Data>({ id, query, metricsOf, charts, label }: MetricChartsProps<Data>) {
  const [from, period] = usePeriod();
  const { data, error } = useQuery(query, { id, from }, METRICS_POLL_MS);
  return (
    <>
      {period}
      {error && <Waiting error={error} />}
      {data ? <Charts metrics={metricsOf(data)} charts={charts} label={label} /> : !error && <Waiting rows={8} />}
    </>
  );
}

type ChartsProps = Pick<MetricChartsProps<never>, 'charts' | 'label'> & { metrics: Metrics };

function Charts({ metrics, charts, label }: ChartsProps) {
  const filled = useMemo(
    () => charts.map((chart) => ({ ...chart, series: seriesOf(metrics, chart, label) })),
    [metrics, charts, label],
  );
  return (
    <div class="charts">
      {filled.map(({ title, unit, series }) => (
        <Chart key={title} title={title} unit={unit} series={series} from={metrics.from} to={metrics.to} />
      ))}
    </div>
  );
}

/** One series for each metric and value of the label. */
function seriesOf(metrics: Metrics, { metrics: names, divisor = 1 }: ChartSpec, label: string): ChartSeries[] {
  const found = metrics.series.filter(({ metric }) => metric in names);
  const isAlone = (metric: string): boolean => found.filter((one) => one.metric === metric).length === 1;
  return found.map(({ metric, labels, points }) => {
    const named = (wanted: string): string | undefined => labels.find(({ name }) => name === wanted)?.value;
    // The primary of replicas has no name of its own.
    const of = named(label) ?? (isAlone(metric) ? undefined : named('role'));
    const shown = divisor === 1 ? points : points.map((point) => ({ ...point, value: point.value / divisor }));
    return { label: [of, names[metric]].filter(Boolean).join(' ') || 'all', points: shown };
  });
}
