// A chart over time. The library is loaded with the first one.
import { useEffect, useRef } from 'preact/hooks';
import type { AlignedData, Options, default as UPlot } from 'uplot';

export interface ChartSeries {
  label: string;
  points: readonly { timestamp: string; value: number }[];
}

interface ChartProps {
  title: string;
  unit: string;
  series: readonly ChartSeries[];
  /** Of the whole period, so that charts beside each other show the same one. */
  from: string;
  to: string;
}

const COLORS = ['--chart-1', '--chart-2', '--chart-3', '--chart-4'];
const HEIGHT_PX = 180;

export function Chart({ title, unit, series, from, to }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    let chart: UPlot | undefined;
    let isOver = false;
    const resized = new ResizeObserver(() => chart?.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    void load().then((Plot) => {
      if (isOver) return;
      chart = new Plot(optionsOf(element, { unit, series, from, to }), alignedOf(series), element);
      resized.observe(element);
    });
    return () => {
      isOver = true;
      resized.disconnect();
      chart?.destroy();
    };
  }, [series, unit, from, to]);
  return (
    <figure class="chart">
      <figcaption>
        {title} <small>{unit}</small>
      </figcaption>
      <div ref={place} class="chart-place" role="img" aria-label={`${title}: ${summary(series, unit)}`} />
      <small class="faint">{summary(series, unit)}</small>
    </figure>
  );
}

async function load(): Promise<typeof UPlot> {
  const [{ default: Plot }] = await Promise.all([import('uplot'), import('uplot/dist/uPlot.min.css')]);
  return Plot;
}

function optionsOf(element: HTMLElement, { unit, series, from, to }: Omit<ChartProps, 'title'>): Options {
  const style = getComputedStyle(element);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const axis = { stroke: color('--text-faint'), grid: { stroke: color('--line'), width: 1 }, ticks: { show: false } };
  const [least, most] = [Date.parse(from) / 1_000, Date.parse(to) / 1_000];
  return {
    width: element.clientWidth,
    height: HEIGHT_PX,
    legend: { show: series.length > 1 },
    cursor: { drag: { x: false, y: false } },
    scales: { x: { range: [least, most] }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [axis, { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => shortNumber(tick)) }],
    series: [
      {},
      ...series.map(({ label }, index) => ({
        label,
        stroke: color(COLORS[index % COLORS.length] as string),
        width: 1.5,
        value: (_: UPlot, value: number | null) => (value === null ? '–' : `${shortNumber(value)} ${unit}`),
      })),
    ],
  };
}

/** One row of times, and a row of values for each series; null where it has none. */
function alignedOf(series: readonly ChartSeries[]): AlignedData {
  const times = [
    ...new Set(series.flatMap(({ points }) => points.map((point) => Date.parse(point.timestamp) / 1_000))),
  ];
  times.sort((a, b) => a - b);
  const rows = series.map(({ points }) => {
    const values = new Map(points.map((point) => [Date.parse(point.timestamp) / 1_000, point.value]));
    return times.map((time) => values.get(time) ?? null);
  });
  return [times, ...rows];
}

function summary(series: readonly ChartSeries[], unit: string): string {
  const parts = series.flatMap(({ label, points }) => {
    const last = points.at(-1);
    return last ? [`${label} ${shortNumber(last.value)} ${unit}`] : [];
  });
  return parts.length ? `now ${parts.join(', ')}` : 'no measurement in this period';
}

function shortNumber(value: number): string {
  if (Math.abs(value) >= 1_000) return Intl.NumberFormat('en', { notation: 'compact' }).format(value);
  return String(Math.round(value * 100) / 100);
}
