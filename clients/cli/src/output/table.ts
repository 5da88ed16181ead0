// Tables for terminals, and lines with tabs for programs.
import { clean, colour } from './terminal';

const GAP = 2;
const NARROWEST = 6;

/**
 * Rows as a table that fits the width. Where the columns cannot be made that narrow, each row becomes a block of
 * lines.
 */
export function formatTable(heads: readonly string[], rows: readonly (readonly string[])[], width: number): string {
  const cells = rows.map((row) => row.map((cell) => clean(cell).replace(/\s*\n\s*/g, ' ')));
  const widths = fitWidths(heads, cells, width);
  if (!widths) return cells.map((row) => formatBlock(heads, row, width)).join('\n\n');
  const line = (row: readonly string[]): string =>
    row
      .map((cell, index) => pad(cut(cell, widths[index] as number), widths[index] as number))
      .join(' '.repeat(GAP))
      .trimEnd();
  return [colour(line(heads), 'bold'), ...cells.map(line)].join('\n');
}

/** Names and values, one pair a line. A value that does not fit beside its name stands below it. */
export function formatBlock(names: readonly string[], values: readonly string[], width: number): string {
  const nameWidth = Math.max(...names.map(length));
  return names
    .map((name, index) => {
      const value = clean(values[index] ?? '');
      const isNarrow = nameWidth + GAP + length(value) > width;
      const between = isNarrow ? `\n${' '.repeat(GAP)}` : ' '.repeat(nameWidth - length(name) + GAP);
      return `${colour(name, 'dim')}${between}${value}`.trimEnd();
    })
    .join('\n');
}

function fitWidths(heads: readonly string[], rows: readonly string[][], width: number): number[] | undefined {
  const widths = heads.map((head, index) => Math.max(length(head), ...rows.map((row) => length(row[index] ?? ''))));
  const total = (): number => widths.reduce((sum, one) => sum + one, 0) + GAP * (widths.length - 1);
  while (total() > width) {
    const widest = widths.indexOf(Math.max(...widths));
    if ((widths[widest] as number) <= Math.max(NARROWEST, length(heads[widest] as string))) return undefined;
    widths[widest] = (widths[widest] as number) - 1;
  }
  return widths;
}

const length = (text: string): number => [...text].length;
const pad = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - length(text)));
const cut = (text: string, width: number): string =>
  length(text) <= width ? text : `${[...text].slice(0, width - 1).join('')}…`;
