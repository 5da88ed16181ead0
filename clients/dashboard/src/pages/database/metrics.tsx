import { graphql } from '../../api/graphql';
import { MetricCharts, SERIES_FIELDS, type ChartSpec } from '../../parts/metric_charts';
import { DatabaseFrame } from './frame';

const METRICS = graphql(
  `
    query DatabaseMetrics($id: ID!, $from: DateTime) {
      getDatabaseMetrics(id: $id, from: $from) {
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
  { title: 'CPU', unit: '%', metrics: { cpu_percent: '' } },
  { title: 'Memory', unit: '%', metrics: { memory_percent: '' } },
  { title: 'Storage', unit: 'MB', metrics: { storage_used_bytes: '' }, divisor: 1e6 },
  { title: 'Connections', unit: '', metrics: { connections: '' } },
  { title: 'Transactions', unit: 'per second', metrics: { transactions_per_second: '' } },
  { title: 'Disk', unit: 'per second', metrics: { read_iops: 'reads', write_iops: 'writes' } },
  { title: 'Replication lag', unit: 's', metrics: { replication_lag_seconds: '' } },
];

export function DatabaseMetrics({ id }: { id: string }) {
  return (
    <DatabaseFrame id={id} section="Metrics" command={`svc api getDatabaseMetrics ${id}`}>
      {() => (
        <MetricCharts
          id={id}
          query={METRICS}
          metricsOf={(data) => data.getDatabaseMetrics}
          charts={CHARTS}
          label="replica_name"
        />
      )}
    </DatabaseFrame>
  );
}
