// A chart over time. The library is loaded with the first one.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { AlignedData, Axis, Options, default as UPlot } from 'uplot';
import { theme } from '../theme';
import { shortTime } from './time';

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
const DAY_SECONDS = 86_400;
const FEW_MINUTES_SECONDS = 600;

export function Chart({ title, unit, series, from, to }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  // The moment below the pointer; null where it is elsewhere.
  const [moment, setMoment] = useState<number | null>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    let chart: UPlot | undefined;
    let isOver = false;
    const resized = new ResizeObserver(() => chart?.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    void load().then((Plot) => {
      if (isOver) return;
      const onMoment = (at: number | null): void => setMoment(at);
      chart = new Plot(
        { ...optionsOf(element, { series, from, to }), ...hooksOf(onMoment) },
        alignedOf(series),
        element,
      );
      resized.observe(element);
    });
    return () => {
      isOver = true;
      resized.disconnect();
      chart?.destroy();
    };
  }, [series, unit, from, to, theme.value]);
  return (
    <figure class="chart">
      <figcaption>
        {title} <small>{unit}</small>
      </figcaption>
      <div ref={place} class="chart-place" role="img" aria-label={`${title}: ${summary(series, unit)}`} />
      <Legend series={series} unit={unit} moment={moment} />
    </figure>
  );
}

/** Each line with its colour and its value: that below the pointer, else the last one. */
function Legend({ series, unit, moment }: Pick<ChartProps, 'series' | 'unit'> & { moment: number | null }) {
  const found = series.filter(({ points }) => points.length);
  if (!found.length) return <small class="faint">No measurements in this period.</small>;
  const time = moment === null ? found[0]?.points.at(-1)?.timestamp : new Date(moment * 1_000).toISOString();
  return (
    <ul class="chart-legend">
      {found.map(({ label, points }) => (
        <li key={label}>
          <span class={`swatch swatch-${series.findIndex((one) => one.label === label) % COLORS.length}`} />
          {label} <strong>{valueText(points, moment, unit)}</strong>
        </li>
      ))}
      <li class="faint">{time && shortTime(time)}</li>
    </ul>
  );
}

function valueText(points: ChartSeries['points'], moment: number | null, unit: string): string {
  const point =
    moment === null ? points.at(-1) : points.find(({ timestamp }) => Date.parse(timestamp) / 1_000 === moment);
  return point ? `${shortNumber(point.value)} ${unit}` : '–';
}

async function load(): Promise<typeof UPlot> {
  const [{ default: Plot }] = await Promise.all([import('uplot'), import('uplot/dist/uPlot.min.css')]);
  return Plot;
}

function hooksOf(onMoment: (at: number | null) => void): Pick<Options, 'hooks'> {
  const setCursor = ({ cursor, data }: UPlot): void =>
    onMoment(cursor.idx == null ? null : (data[0][cursor.idx] ?? null));
  return { hooks: { setCursor: [setCursor] } };
}

function optionsOf(element: HTMLElement, { series, from, to }: Pick<ChartProps, 'series' | 'from' | 'to'>): Options {
  const style = getComputedStyle(element);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const font = `12px ${style.fontFamily}`;
  const axis: Axis = {
    stroke: color('--text-faint'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
    font,
  };
  const [least, most] = [Date.parse(from) / 1_000, Date.parse(to) / 1_000];
  return {
    width: element.clientWidth,
    height: HEIGHT_PX,
    // The last time stands below its line, which is the edge of the card.
    padding: [8, 24, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    scales: { x: { range: [least, most] }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      { ...axis, size: 28, values: (_, ticks) => ticks.map((tick) => tickText(tick, most - least)) },
      { ...axis, size: 48, values: (_, ticks) => ticks.map((tick) => shortNumber(tick)) },
    ],
    series: [
      {},
      ...series.map(({ label }, index) => ({
        label,
        stroke: color(COLORS[index % COLORS.length] as string),
        width: 1.5,
      })),
    ],
  };
}

/** `14:05`; over more than a day with the date at midnight, over a few minutes with seconds. */
function tickText(tick: number, seconds: number): string {
  if (seconds < FEW_MINUTES_SECONDS) return new Date(tick * 1_000).toLocaleTimeString('en-GB');
  const [date = '', clock = ''] = shortTime(new Date(tick * 1_000).toISOString()).split(', ');
  return seconds > DAY_SECONDS && clock === '00:00' ? date : clock;
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

/** For those who do not see the lines. */
function summary(series: readonly ChartSeries[], unit: string): string {
  const parts = series.flatMap(({ label, points }) => {
    const last = points.at(-1);
    return last ? [`${label} ${shortNumber(last.value)} ${unit}`] : [];
  });
  return parts.length ? `now ${parts.join(', ')}` : 'no measurements in this period';
}

function shortNumber(value: number): string {
  if (Math.abs(value) >= 1_000) return Intl.NumberFormat('en', { notation: 'compact' }).format(value);
  return String(Math.round(value * 100) / 100);
}
