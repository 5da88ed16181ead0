// The numbers as a table, ready for docs/PERFORMANCE.md.
import type { Round } from './load';

export interface Measured extends Round {
  /** Microseconds of the server process per request, user and system together. */
  cpu: number;
}

export interface Result {
  name: string;
  target?: number;
  ours: Measured[];
  theirs: Measured[];
}

/** Compared cases. Both ratios: requests per second of the best rounds, CPU time of the least disturbed rounds. */
export function comparison(results: Result[]): string {
  const header = ['Case', 'rps', 'bare rps', 'ratio', 'median ratio', 'CPU µs', 'bare CPU µs', 'CPU ratio', 'p99 ms', 'bare p99 ms', 'target'];
  const rows = results.map(({ name, target, ours, theirs }) => {
    const ratio = best(ours) / best(theirs);
    const verdict = target === undefined ? '' : `≥ ${target}: ${ratio >= target ? 'met' : 'MISSED'}`;
    return [
      name, whole(best(ours)), whole(best(theirs)), fixed(ratio), fixed(median(ours, 'rps') / median(theirs, 'rps')),
      whole(least(ours, 'cpu')), whole(least(theirs, 'cpu')), fixed(least(theirs, 'cpu') / least(ours, 'cpu')),
      least(ours, 'p99').toFixed(1), least(theirs, 'p99').toFixed(1), verdict,
    ];
  });
  return table([header, ...rows]);
}

/** Refusals beside the single read of the same run. */
export function refusalTable(results: Result[], read: Result): string {
  const header = ['Refusal', 'rps', 'CPU µs', 'of a read', 'p99 ms'];
  const cost = least(read.ours, 'cpu');
  const rows = results.map(({ name, ours }) => [name, whole(best(ours)), whole(least(ours, 'cpu')), fixed(least(ours, 'cpu') / cost), least(ours, 'p99').toFixed(1)]);
  return table([header, ...rows]);
}

/** One line of a single value and its bound. */
export function bound(name: string, value: number, limit: number, unit: string): string {
  return `${name}: ${value.toFixed(unit === 's' ? 2 : 0)} ${unit} (target < ${limit} ${unit}: ${value < limit ? 'met' : 'MISSED'})`;
}

function table(rows: string[][]): string {
  const widths = (rows[0] as string[]).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  const line = (row: string[]): string => `| ${row.map((cell, column) => (column ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0))).join(' | ')} |`;
  const [header = [], ...body] = rows;
  const rule = `|${widths.map((width, column) => (column ? `${'-'.repeat(width + 1)}:` : '-'.repeat(width + 2))).join('|')}|`;
  return [line(header), rule, ...body.map(line)].join('\n');
}

function best(rounds: Measured[]): number {
  return Math.max(...rounds.map((round) => round.rps));
}

function least(rounds: Measured[], what: 'cpu' | 'p99'): number {
  return Math.min(...rounds.map((round) => round[what]));
}

function median(rounds: Measured[], what: 'rps'): number {
  const values = rounds.map((round) => round[what]).sort((a, b) => a - b);
  const middle = values.length / 2;
  return ((values[Math.floor(middle - 0.5)] as number) + (values[Math.ceil(middle - 0.5)] as number)) / 2;
}

const fixed = (value: number): string => value.toFixed(2);
const whole = (value: number): string => value.toFixed(0);
