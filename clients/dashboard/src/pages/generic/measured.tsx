// Metrics of any kind, as charts over the period that was asked for.
import { useMemo } from 'preact/hooks';
import type { Row } from '../../api/resources/query';
import { Chart, type ChartSeries } from '../../parts/chart';
import { words } from './words';

interface Series {
  metric: string;
  unit: string;
  labels: { value: string }[];
  points: { timestamp: string; value: number }[];
}

export function Measured({ row }: { row: Row }) {
  const charts = useMemo(() => chartsOf(row.series as Series[]), [row]);
  if (!charts.length) return <p class="faint">No data in this period.</p>;
  return (
    <div class="charts">
      {charts.map(({ metric, unit, series }) => (
        <Chart
          key={metric}
          title={words(metric)}
          unit={unit}
          series={series}
          from={String(row.from)}
          to={String(row.to)}
        />
      ))}
    </div>
  );
}

function chartsOf(all: readonly Series[]): { metric: string; unit: string; series: ChartSeries[] }[] {
  return [...new Set(all.map(({ metric }) => metric))].map((metric) => {
    const found = all.filter((one) => one.metric === metric);
    const series = found.map(({ labels, points }) => ({
      label: labels.map(({ value }) => value).join(' ') || words(metric),
      points,
    }));
    return { metric, unit: found[0]?.unit.replace(/_/g, ' ') ?? '', series };
  });
}
