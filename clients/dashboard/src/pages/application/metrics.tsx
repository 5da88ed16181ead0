import { graphql } from '../../api/graphql';
import { MetricCharts, SERIES_FIELDS, type ChartSpec } from '../../parts/metric_charts';
import { ApplicationFrame } from './frame';

const METRICS = graphql(
  `
    query ApplicationMetrics($id: ID!, $from: DateTime) {
      getApplicationMetrics(id: $id, from: $from) {
        from
        to
        resolution_seconds
        series {
          ...SeriesFields
        }
      }
    }
  `,
  [SERIES_FIELDS],
);

const CHARTS: ChartSpec[] = [
  { title: 'Requests', unit: 'per interval', metrics: { requests: '' } },
  {
    title: 'Response time',
    unit: 'ms',
    metrics: { response_time_p50_ms: 'median', response_time_p95_ms: '95 %', response_time_p99_ms: '99 %' },
  },
  {
    title: 'Responses',
    unit: 'per interval',
    metrics: { responses_2xx: '2xx', responses_3xx: '3xx', responses_4xx: '4xx', responses_5xx: '5xx' },
  },
  { title: 'Memory', unit: 'MB', metrics: { memory_mb: '' } },
  { title: 'CPU', unit: '% of a core', metrics: { cpu_percent: '' } },
  { title: 'Instances', unit: '', metrics: { instances: '' } },
];

export function ApplicationMetrics({ id }: { id: string }) {
  return (
    <ApplicationFrame id={id} section="Metrics" command={(app) => `svc metrics${app}`}>
      {() => (
        <MetricCharts
          id={id}
          query={METRICS}
          metricsOf={(data) => data.getApplicationMetrics}
          charts={CHARTS}
          label="process_type"
        />
      )}
    </ApplicationFrame>
  );
}
