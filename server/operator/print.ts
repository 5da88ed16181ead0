// The output of a command: a table for people, one JSON document with --json.
import type { Output } from './command';

/** @returns the text for standard output */
export function printed({ rows, secrets = {} }: Output, format: 'table' | 'json'): string {
  if (format === 'json') return `${JSON.stringify({ data: rows, ...secrets }, null, 2)}\n`;
  const below = Object.entries(secrets).map(([name, value]) => `\n${name} (shown this once): ${value}\n`);
  return table(rows) + below.join('');
}

function table(rows: Record<string, unknown>[]): string {
  if (!rows.length) return 'none\n';
  const columns = Object.keys(rows[0] as object);
  const lines = [columns, ...rows.map((row) => columns.map((column) => cell(row[column])))];
  const widths = columns.map((_, i) => Math.max(...lines.map((line) => (line[i] as string).length)));
  return lines
    .map(
      (line) =>
        `${line
          .map((text, i) => text.padEnd(widths[i] as number))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return '-';
  // A list is joined by commas.
  return terminalText(String(value)).replaceAll('\n', '?');
}

/** Lines without what steers a terminal: names that users chose, and what servers of others answered. */
export function terminalText(text: string): string {
  return text.replace(/[^\P{C}\n]/gu, '?');
}
