import { useMemo, useState } from 'preact/hooks';
import { graphql, type ResultOf } from '../../api/graphql';
import { useQuery } from '../../api/use_query';
import { Chart, type ChartSeries } from '../../parts/chart';
import { Waiting } from '../../parts/page';
import { ApplicationFrame } from './frame';

const METRICS = graphql(`
  query ApplicationMetrics($id: ID!, $from: DateTime) {
    getApplicationMetrics(id: $id, from: $from) {
      from
      to
      resolution_seconds
      series {
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
    }
  }
`);

type Metrics = ResultOf<typeof METRICS>['getApplicationMetrics'];

const PERIODS = { '1 hour': 1, '6 hours': 6, '24 hours': 24, '7 days': 168 };
const POLL_MS = 30_000;

const CHARTS: { title: string; unit: string; metrics: Record<string, string> }[] = [
  { title: 'Requests', unit: 'per point', metrics: { requests: '' } },
  {
    title: 'Response time',
    unit: 'ms',
    metrics: { response_time_p50_ms: 'median', response_time_p95_ms: '95 %', response_time_p99_ms: '99 %' },
  },
  {
    title: 'Responses',
    unit: 'per point',
    metrics: { responses_2xx: '2xx', responses_3xx: '3xx', responses_4xx: '4xx', responses_5xx: '5xx' },
  },
  { title: 'Memory', unit: 'MB', metrics: { memory_mb: '' } },
  { title: 'CPU', unit: '% of a core', metrics: { cpu_percent: '' } },
  { title: 'Instances', unit: '', metrics: { instances: '' } },
];

export function ApplicationMetrics({ id }: { id: string }) {
  const [period, setPeriod] = useState<keyof typeof PERIODS>('1 hour');
  const from = useMemo(() => new Date(Date.now() - PERIODS[period] * 3_600_000).toISOString(), [period]);
  const { data, error } = useQuery(METRICS, { id, from }, POLL_MS);
  return (
    <ApplicationFrame id={id} section="Metrics" command={`svc api getApplicationMetrics ${id}`}>
      {() => (
        <>
          <fieldset class="segments">
            <legend class="off-screen">Period</legend>
            {(Object.keys(PERIODS) as (keyof typeof PERIODS)[]).map((one) => (
              <label key={one}>
                <input type="radio" name="period" checked={one === period} onChange={() => setPeriod(one)} />
                <span>{one}</span>
              </label>
            ))}
          </fieldset>
          {!data && <Waiting error={error} rows={8} />}
          {data && <Charts metrics={data.getApplicationMetrics} />}
        </>
      )}
    </ApplicationFrame>
  );
}

function Charts({ metrics }: { metrics: Metrics }) {
  const charts = useMemo(
    () => CHARTS.map((chart) => ({ ...chart, series: seriesOf(metrics, chart.metrics) })),
    [metrics],
  );
  return (
    <div class="charts">
      {charts.map(({ title, unit, series }) => (
        <Chart key={title} title={title} unit={unit} series={series} from={metrics.from} to={metrics.to} />
      ))}
    </div>
  );
}

/** One series for each metric and process type. */
function seriesOf(metrics: Metrics, labels: Record<string, string>): ChartSeries[] {
  return metrics.series
    .filter(({ metric }) => metric in labels)
    .map(({ metric, labels: own, points }) => {
      const type = own.find(({ name }) => name === 'process_type')?.value;
      return { label: [type, labels[metric]].filter(Boolean).join(' ') || 'all', points };
    });
}
