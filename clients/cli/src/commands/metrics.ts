// metrics of the application: the last value, the mean and the peak of each, and its course as a line.
import { duration, sessionCommand, text } from '../command';
import { formatBytes, printJson, printRows, type Row } from '../output/print';
import { isTerminal } from '../output/terminal';

interface Series {
  metric: string;
  unit: string;
  labels: { name: string; value: string }[];
  points: { timestamp: string; value: number }[];
}

type MetricsFlags = { readonly since?: number | undefined; readonly process?: string | undefined };

const HOUR = 3600;
/** Widest line of blocks. */
const BLOCKS_MAX = 24;
const BLOCKS = '▁▂▃▄▅▆▇█';
const UNITS: Record<string, (value: number) => string> = {
  percent: (value) => `${value.toFixed(1)} %`,
  megabytes: (value) => `${Math.round(value)} MB`,
  bytes: formatBytes,
  milliseconds: (value) => `${value.toFixed(value < 10 ? 1 : 0)} ms`,
};

export const metrics = sessionCommand<MetricsFlags>({
  brief: 'Show processor, memory, requests and response times',
  text: 'Of the last hour, or of the time that --since says, at most 31 days. Without a terminal there are no lines.',
  flags: {
    since: duration('How long ago the period begins: 15m, 6h, 7d (default: 1h)'),
    process: text('Only this process type', 'type'),
  },
  async run(session, flags) {
    const path = `/v2/applications/${await session.application()}/metrics`;
    const from = new Date(Date.now() - (flags.since ?? HOUR) * 1000).toISOString();
    const found = await session.request<Row & { series: Series[] }>('GET', path, { query: { from } });
    if (flags.json) return printJson(found);
    const series = found.series.filter(({ points, labels }) => {
      const type = typeOf(labels);
      return points.length > 0 && (flags.process === undefined || type === undefined || type === flags.process);
    });
    printRows(series.map(describe), COLUMNS, flags);
  },
});

const COLUMNS = {
  METRIC: 'metric',
  PROCESS: 'process',
  LAST: 'last',
  MEAN: 'mean',
  PEAK: 'peak',
  ...(isTerminal() && { COURSE: 'course' }),
};

const typeOf = (labels: Series['labels']): string | undefined =>
  labels.find(({ name }) => name === 'process_type')?.value;

function describe({ metric, unit, labels, points }: Series): Row {
  const values = points.map(({ value }) => value);
  const format = UNITS[unit] ?? ((value: number) => String(Math.round(value * 100) / 100));
  return {
    metric: metric.replaceAll('_', ' '),
    process: typeOf(labels),
    last: format(values.at(-1) as number),
    mean: format(values.reduce((sum, one) => sum + one, 0) / values.length),
    peak: format(Math.max(...values)),
    course: drawLine(values),
  };
}

/** Each block is the peak of its part. */
function drawLine(values: readonly number[]): string {
  const size = Math.ceil(values.length / BLOCKS_MAX);
  const peak = Math.max(...values) || 1;
  const blocks: string[] = [];
  for (let at = 0; at < values.length; at += size) {
    const height = Math.max(...values.slice(at, at + size)) / peak;
    blocks.push(BLOCKS[Math.min(BLOCKS.length - 1, Math.floor(height * BLOCKS.length))] as string);
  }
  return blocks.join('');
}
