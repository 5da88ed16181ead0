// Pages of rows that are in memory: catalogs and error codes.
import type { Context } from '../../core/context';
import { hashFilters } from '../../core/cursor';
import { limits } from '../../core/limits';
import type { Page, PageArguments } from './page';

/**
 * One page, sorted by `sort` (default `-`less key), ties broken by the key, which is unique.
 * @throws invalid_cursor
 */
export function listing<Row extends object>(
  ctx: Context,
  rows: Row[],
  args: PageArguments,
  options: { key: keyof Row & string; filters: Record<string, unknown> },
): Page<Row> {
  const { key } = options;
  const sort = args.sort ?? key;
  const expect = { sort, filters: hashFilters(options.filters) };
  const after = args.cursor != null ? ctx.cursors.decode(args.cursor, expect) : null;
  const order = comparator(sort);
  const sorted = rows.map((row) => ({ row, place: locate(row, sort, key) })).sort((a, b) => order(a.place, b.place));
  const rest = after ? sorted.filter(({ place }) => order(place, { value: after.key, id: after.id }) > 0) : sorted;
  const limit = args.limit ?? limits.pageSizeDefaultSmall;
  const data = rest.slice(0, limit);
  const last = data[data.length - 1]?.place;
  const next_cursor =
    rest.length > limit && last ? ctx.cursors.encode({ ...expect, key: last.value, id: last.id }) : null;
  return { data: data.map(({ row }) => row), next_cursor };
}

interface CursorScope {
  value: string | number | null;
  id: string;
}

// Catalog rows have no creation time: their key stands for it.
function locate<Row extends object>(row: Row, sort: string, key: keyof Row & string): CursorScope {
  const name = sort.replace(/^-/, '');
  const values = row as Record<string, unknown>;
  return { value: (values[name === 'created_at' ? key : name] ?? null) as CursorScope['value'], id: String(row[key]) };
}

function comparator(sort: string): (a: CursorScope, b: CursorScope) => number {
  const sign = sort.startsWith('-') ? -1 : 1;
  return (a, b) => sign * (compare(a.value, b.value) || compare(a.id, b.id));
}

function compare(a: string | number | null, b: string | number | null): number {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? 1 : -1;
  return a < b ? -1 : 1;
}
