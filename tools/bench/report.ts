// The numbers as a table, ready for docs/PERFORMANCE.md.
import type { Case, Goal, Name } from './cases';
import { median, type Measured, type Results } from './measure';

/** One line of the table. */
export interface Row {
  measure: string;
  beside: string;
  ours: string;
  theirs: string;
  /** Middle of the rounds, and the least and the greatest. */
  ratio: string;
  /** CPU time of the reference per request divided by ours, least disturbed rounds. */
  cpu: string;
  target: string;
  verdict: string;
}

const NAMES: Record<Name, string> = {
  service: 'the service',
  bare: 'http + pg',
  notifying: 'http + pg, notify too',
};

/** The lines of a case: one for each goal whose reference ran. */
export function comparison({ name, goals }: Case, results: Results): Row[] {
  const ours = results.service ?? [];
  return goals.flatMap((goal) => {
    const theirs = results[goal.beside];
    return theirs ? [goalRow(name, goal, ours, theirs)] : [];
  });
}

function goalRow(name: string, { beside, of, target }: Goal, ours: Measured[], theirs: Measured[]): Row {
  const ratios = ours.map((round, index) => round[of] / (theirs[index] as Measured)[of]);
  const isRate = of === 'rps';
  const show = (rounds: Measured[]): string =>
    isRate
      ? `${whole(median(rounds.map(({ rps }) => rps)))} rps, ${whole(least(rounds))} µs`
      : `${median(rounds.map(({ p99 }) => p99)).toFixed(1)} ms`;
  return {
    measure: isRate ? name : `${name}, p99`,
    beside: NAMES[beside],
    ours: show(ours),
    theirs: show(theirs),
    ratio: ratioOf(ratios),
    cpu: isRate ? fixed(least(theirs) / least(ours)) : '',
    ...verdictOf(median(ratios), isRate ? 'at least' : 'at most', target),
  };
}

/** Middle, least and greatest ratio. */
export function ratioOf(ratios: number[]): string {
  return `${fixed(median(ratios))} (${fixed(Math.min(...ratios))} to ${fixed(Math.max(...ratios))})`;
}

/** Target and verdict of a value. */
export function verdictOf(
  value: number,
  kind: 'at least' | 'at most' | 'below',
  target: number | undefined,
  unit = '',
): Pick<Row, 'target' | 'verdict'> {
  if (target === undefined) return { target: '', verdict: '' };
  const isMet = kind === 'at least' ? value >= target : kind === 'at most' ? value <= target : value < target;
  return { target: `${kind} ${target}${unit}`, verdict: isMet ? 'met' : 'MISSED' };
}

/** A line without a reference. */
export function single(measure: string, ours: string, judged: Pick<Row, 'target' | 'verdict'>): Row {
  return { measure, beside: '', ours, theirs: '', ratio: '', cpu: '', ...judged };
}

/** A line for what could not be measured here. */
export function skipped(measure: string, reason: string): Row {
  return single(measure, reason, { target: '', verdict: 'skipped' });
}

export function rowTable(rows: Row[]): string {
  const header = ['Measure', 'beside', 'ours', 'theirs', 'ratio', 'CPU ratio', 'target', 'verdict'];
  return table([
    header,
    ...rows.map(({ measure, beside, ours, theirs, ratio, cpu, target, verdict }) => [
      measure,
      beside,
      ours,
      theirs,
      ratio,
      cpu,
      target,
      verdict,
    ]),
  ]);
}

export function table(rows: string[][]): string {
  const widths = (rows[0] as string[]).map((_, column) =>
    Math.max(3, ...rows.map((row) => (row[column] ?? '').length)),
  );
  const line = (row: string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const [header = [], ...body] = rows;
  return [line(header), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...body.map(line)].join('\n');
}

const least = (rounds: Measured[]): number => Math.min(...rounds.map(({ cpu }) => cpu));
export const fixed = (value: number): string => value.toFixed(2);
export const whole = (value: number): string => value.toFixed(0);
