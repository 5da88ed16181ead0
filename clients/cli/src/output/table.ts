// Tables for terminals, and lines with tabs for programs.
import { colourState, clean, colour } from './terminal';

const GAP = 2;
const NARROWEST = 6;

/** Columns that name a row as its id does. */
const NAMES = new Set(['NAME', 'HOSTNAME', 'KEY', 'BRANCH']);
const STATES = new Set(['status', 'result', 'certificate', 'last run', 'action']);

/**
 * Rows as a table that fits the width. Ids give way to names: where both do not fit, the ids are left out. Where the
 * columns cannot be made narrow enough, each row becomes a block of lines.
 */
export function formatTable(heads: readonly string[], rows: readonly (readonly string[])[], width: number): string {
  const cells = rows.map((row) => row.map((cell) => clean(cell).replace(/\s*\n\s*/g, ' ')));
  const id = heads.indexOf('ID');
  if (id >= 0 && heads.some((head) => NAMES.has(head)) && totalOf(widthsOf(heads, cells)) > width) {
    const without = <One>(list: readonly One[]): One[] => list.filter((_, index) => index !== id);
    return formatTable(without(heads), cells.map(without), width);
  }
  const widths = fitWidths(heads, cells, width);
  if (!widths) return cells.map((row) => formatBlock(heads, row, width)).join('\n\n');
  const line = (row: readonly string[], show: (text: string, index: number) => string): string =>
    row
      .map((cell, index) => show(pad(cut(cell, widths[index] as number), widths[index] as number), index))
      .join(' '.repeat(GAP))
      .trimEnd();
  const show = (text: string, index: number): string => showState(heads[index] as string, text);
  return [colour(line(heads, String), 'bold'), ...cells.map((row) => line(row, show))].join('\n');
}

const showState = (head: string, text: string): string => (STATES.has(head.toLowerCase()) ? colourState(text) : text);

/** Names and values, one pair a line. A value that does not fit beside its name stands below it. */
export function formatBlock(names: readonly string[], values: readonly string[], width: number): string {
  const nameWidth = Math.max(...names.map(length));
  return names
    .map((name, index) => {
      const value = clean(values[index] ?? '');
      const isNarrow = nameWidth + GAP + length(value) > width;
      const between = isNarrow ? `\n${' '.repeat(GAP)}` : ' '.repeat(nameWidth - length(name) + GAP);
      return `${colour(name, 'dim')}${between}${showState(name, value)}`.trimEnd();
    })
    .join('\n');
}

/**
 * The widest column gives way first, the name of a row last, and a state never.
 * @returns undefined where it cannot be that narrow
 */
function fitWidths(heads: readonly string[], rows: readonly string[][], width: number): number[] | undefined {
  const widths = widthsOf(heads, rows);
  const name = heads.findIndex((head) => NAMES.has(head));
  const canShrink = (index: number): boolean =>
    !STATES.has((heads[index] as string).toLowerCase()) &&
    (widths[index] as number) > Math.max(NARROWEST, length(heads[index] as string));
  while (totalOf(widths) > width) {
    const [widest = name >= 0 && canShrink(name) ? name : undefined] = [...heads.keys()]
      .filter((index) => index !== name && canShrink(index))
      .sort((a, b) => (widths[b] as number) - (widths[a] as number));
    if (widest === undefined) return undefined;
    widths[widest] = (widths[widest] as number) - 1;
  }
  return widths;
}

const widthsOf = (heads: readonly string[], rows: readonly string[][]): number[] =>
  heads.map((head, index) => Math.max(length(head), ...rows.map((row) => length(row[index] ?? ''))));
const totalOf = (widths: readonly number[]): number =>
  widths.reduce((sum, one) => sum + one, 0) + GAP * (widths.length - 1);

const length = (text: string): number => [...text].length;
const pad = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - length(text)));
const cut = (text: string, width: number): string =>
  length(text) <= width ? text : `${[...text].slice(0, width - 1).join('')}…`;
