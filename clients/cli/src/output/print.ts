// Data on standard output: JSON, one field, a table on a terminal, or lines with tabs.
import { usageFailure } from '../failure';
import { formatBlock, formatTable } from './table';
import { clean, columns, isTerminal } from './terminal';

export interface OutputFlags {
  readonly json?: boolean | undefined;
  readonly field?: string | undefined;
}

export type Row = Record<string, unknown>;
/** Name of a column, and the path of its value or how it is made. */
export type Columns = Record<string, string | ((row: Row) => unknown)>;

export function writeLine(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Rows of a list. With `--field`, the field of each row in a line of its own. */
export function printRows(rows: readonly Row[], shown: Columns, flags: OutputFlags): void {
  if (flags.field !== undefined)
    return rows.forEach((row) => writeLine(formatCell(fieldOf(row, flags.field as string))));
  if (flags.json) return printJson(rows);
  const cells = rows.map((row) =>
    Object.values(shown).map((column) => formatCell(typeof column === 'string' ? valueAt(row, column) : column(row))),
  );
  if (!isTerminal())
    return cells.forEach((row) => writeLine(row.map((cell) => cell.replace(/[\t\n]/g, ' ')).join('\t')));
  if (!rows.length) return void process.stderr.write('None.\n');
  writeLine(formatTable(Object.keys(shown), cells, columns()));
}

/** One object. Without `shown`, its fields that are no objects. */
export function printOne(row: Row, flags: OutputFlags, shown?: Columns): void {
  if (flags.field !== undefined) return writeLine(formatCell(fieldOf(row, flags.field)));
  if (flags.json) return printJson(row);
  const names = shown ? Object.keys(shown) : Object.keys(row).filter((name) => typeof row[name] !== 'object');
  const values = names.map((name) => {
    const column = shown?.[name] ?? name;
    return formatCell(typeof column === 'string' ? valueAt(row, column) : column(row));
  });
  if (!isTerminal()) return names.forEach((name, index) => writeLine(`${name}\t${(values[index] as string).trim()}`));
  writeLine(formatBlock(names, values, columns()));
}

export function printJson(value: unknown): void {
  writeLine(JSON.stringify(value, null, 2));
}

/** The value at a path with dots, such as `source.type` or `data.0.id`. @throws Failure where there is none */
export function fieldOf(value: unknown, path: string): unknown {
  const found = valueAt(value, path);
  if (found !== undefined) return found;
  const names = value && typeof value === 'object' ? Object.keys(value).join(', ') : 'none';
  throw usageFailure(`There is no field \`${path}\` in the answer.`, `Fields: ${names}`);
}

export function valueAt(value: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (part, name) => (part && typeof part === 'object' && Object.hasOwn(part, name) ? (part as Row)[name] : undefined),
      value,
    );
}

/** A value as a cell: nothing for null, JSON for objects. */
function formatCell(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'object') return isTerminal() ? clean(String(value)) : String(value);
  return JSON.stringify(value);
}

/** `3 min ago`, for a time stamp. */
export function formatAge(value: unknown): string {
  if (typeof value !== 'string') return '';
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(value)) / 1000));
  if (!Number.isFinite(seconds)) return value;
  if (!isTerminal()) return value;
  const units: [number, string][] = [
    [86_400, 'd'],
    [3600, 'h'],
    [60, 'min'],
  ];
  const [size, unit] = units.find(([one]) => seconds >= one) ?? [1, 's'];
  return `${Math.floor(seconds / size)} ${unit} ago`;
}

export function formatBytes(value: unknown): string {
  if (typeof value !== 'number') return '';
  const power = value < 1 ? 0 : Math.min(4, Math.floor(Math.log2(value) / 10));
  const shown = value / 1024 ** power;
  const digits = shown >= 100 || power === 0 ? 0 : 1;
  return `${shown.toFixed(digits)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][power]}`;
}
