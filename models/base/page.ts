// Keyset pages: flat however far a client has walked.
import type { Context } from '../../core/context';
import { hashFilters } from '../../core/cursor';
import { limits } from '../../core/limits';
import type { Resource, ResourceClass } from './resource';
import { listColumnsOf, tableOf, type Values } from '../../db/table';
import { quick } from '../../db/statement';

export interface Page<R> {
  data: R[];
  next_cursor: string | null;
}

/** Arguments of every list; filters come beside them. */
export interface PageArguments {
  limit?: number | null;
  cursor?: string | null;
  sort?: string | null;
}

/** Where rows come from when it isn't simply the kind's table in the selected project. */
export interface Source {
  /** Table or subquery, then `where` and a condition that authorises the rows; its parameters are $1 ... */
  from: string;
  columns: string;
  values: unknown[];
}

interface Plan {
  column: string;
  descending: boolean;
  nullable: boolean;
}

/**
 * One page of a kind: rows of the selected project that pass the filters, in the order of `sort`, ties broken by id.
 * @param fixed conditions that the caller can't change (`application_id` of the path)
 * @throws invalid_cursor for an altered cursor, or one of another sort or filter
 */
export async function page<R extends Resource>(
  kind: ResourceClass<R>,
  ctx: Context,
  args: PageArguments,
  fixed: Values = {},
  source = tenantSource(kind, ctx),
): Promise<Page<R>> {
  const sort = args.sort ?? kind.defaultSort;
  const filters = filterValues(kind, args as unknown as Values);
  const values = [...source.values];
  const expect = { sort, filters: hashFilters({ ...filters, ...fixed, source: values, of: kind.table }) };
  const plan = planOf(kind, ctx, sort);
  const after = args.cursor != null ? ctx.cursors.decode(args.cursor, expect) : null;
  const limit = args.limit ?? limits.pageSizeDefault;
  const conditions = conditionsOf(kind, filters, fixed, values);
  if (after) conditions.push(keyset(plan, after.key, after.id, values));
  const where = conditions.map((condition) => ` and ${condition}`).join('');
  const text = `select ${source.columns} from ${source.from}${where} ${orderOf(plan)} limit $${values.push(limit + 1)}`;
  const rows = await ctx.sql.query<R>(quick(text, kind), values);
  return envelope(ctx, rows, limit, plan, expect);
}

function tenantSource(kind: ResourceClass, ctx: Context): Source {
  const info = tableOf(ctx, kind.table);
  const alive = info.columns.includes('deleted_at') ? ' and deleted_at is null' : '';
  return {
    from: `${kind.table} where project_id = $1${alive}`,
    columns: listColumnsOf(info),
    values: [ctx.project?.id],
  };
}

function envelope<R extends Resource>(
  ctx: Context,
  rows: R[],
  limit: number,
  plan: Plan,
  expect: { sort: string; filters: string },
): Page<R> {
  const more = rows.length > limit;
  if (more) rows.pop();
  const last = rows[rows.length - 1];
  const key =
    plan.column === 'id' ? null : (((last as Values | undefined)?.[plan.column] ?? null) as string | number | null);
  const next_cursor = more && last ? ctx.cursors.encode({ ...expect, key, id: last.id }) : null;
  return { data: rows, next_cursor };
}

function filterValues(kind: ResourceClass, args: Values): Values {
  const result: Values = {};
  for (const name of Object.keys(kind.filters)) if (args[name] != null) result[name] = args[name];
  return result;
}

function conditionsOf(kind: ResourceClass, filters: Values, fixed: Values, values: unknown[]): string[] {
  const conditions: string[] = [];
  for (const [name, value] of Object.entries(fixed)) conditions.push(`${name} = $${values.push(value)}`);
  for (const [name, value] of Object.entries(filters)) {
    conditions.push((kind.filters[name] as string).replace('?', `$${values.push(value)}`));
  }
  return conditions;
}

// The id is time-ordered and created_at is its clock: sorting by creation is sorting by id.
function planOf(kind: ResourceClass, ctx: Context, sort: string): Plan {
  const name = sort.replace(/^-/, '');
  const column = name === 'created_at' ? 'id' : name;
  if (column !== 'id' && !kind.sorts.includes(column)) throw new Error(`${kind.kind} can't be sorted by ${column}`);
  return {
    column,
    descending: sort.startsWith('-'),
    nullable: tableOf(ctx, kind.storedIn ?? kind.table).nullable.has(column),
  };
}

function orderOf({ column, descending, nullable }: Plan): string {
  const direction = descending ? 'desc' : 'asc';
  if (column === 'id') return `order by id ${direction}`;
  return `order by ${column} ${direction}${nullable && descending ? ' nulls last' : ''}, id ${direction}`;
}

function keyset(
  { column, descending, nullable }: Plan,
  key: string | number | null,
  id: string,
  values: unknown[],
): string {
  const than = descending ? '<' : '>';
  if (column === 'id') return `id ${than} $${values.push(id)}`;
  if (key === null) return `${column} is null and id ${than} $${values.push(id)}`;
  const tuple = `(${column}, id) ${than} ($${values.push(key)}, $${values.push(id)})`;
  return nullable ? `(${tuple} or ${column} is null)` : tuple;
}
