// Keyset pages: flat however far a client has walked.
import type { Context } from '../core/context';
import { hashFilters } from '../core/cursor';
import { columnsOf, hydrate, tableOf, type Resource, type ResourceClass, type Values } from './base';
import { named } from './statement';

export interface Page<R> {
  data: R[];
  next_cursor: string | null;
}

/** Arguments of every list; filters come beside them. */
export interface PageArguments {
  limit: number;
  cursor?: string | null;
  sort?: string | null;
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
export async function page<R extends Resource>(kind: ResourceClass<R>, ctx: Context, args: PageArguments, fixed: Values = {}): Promise<Page<R>> {
  const sort = args.sort ?? '-created_at';
  const filters = filterValues(kind, args as unknown as Values);
  const expect = { sort, filters: hashFilters({ ...filters, ...fixed, project: ctx.project?.id }) };
  const plan = planOf(kind, ctx, sort);
  const after = args.cursor ? ctx.cursors.decode(args.cursor, expect) : null;
  const values: unknown[] = [ctx.project?.id];
  const conditions = ['project_id = $1', ...conditionsOf(kind, ctx, filters, fixed, values)];
  if (after) conditions.push(keyset(plan, after.key, after.id, values));
  values.push(args.limit + 1);
  const text = `select ${columnsOf(tableOf(ctx, kind.table))} from ${kind.table} where ${conditions.join(' and ')} ${orderOf(plan)} limit $${values.length}`;
  const rows = await ctx.sql.query<Values>(named(text), values);
  return envelope(kind, ctx, rows, args.limit, plan, expect);
}

function envelope<R extends Resource>(kind: ResourceClass<R>, ctx: Context, rows: Values[], limit: number, plan: Plan, expect: { sort: string; filters: string }): Page<R> {
  const more = rows.length > limit;
  if (more) rows.pop();
  const last = rows[rows.length - 1];
  const key = plan.column === 'id' ? null : ((last?.[plan.column] ?? null) as string | number | null);
  const next_cursor = more && last ? ctx.cursors.encode({ ...expect, key, id: last.id as string }) : null;
  return { data: rows.map((row) => hydrate(kind, row)), next_cursor };
}

function filterValues(kind: ResourceClass, args: Values): Values {
  const result: Values = {};
  for (const name of Object.keys(kind.filters)) if (args[name] != null) result[name] = args[name];
  return result;
}

function conditionsOf(kind: ResourceClass, ctx: Context, filters: Values, fixed: Values, values: unknown[]): string[] {
  const conditions = tableOf(ctx, kind.table).columns.includes('deleted_at') ? ['deleted_at is null'] : [];
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
  return { column, descending: sort.startsWith('-'), nullable: tableOf(ctx, kind.table).nullable.has(column) };
}

function orderOf({ column, descending, nullable }: Plan): string {
  const direction = descending ? 'desc' : 'asc';
  if (column === 'id') return `order by id ${direction}`;
  return `order by ${column} ${direction}${nullable && descending ? ' nulls last' : ''}, id ${direction}`;
}

function keyset({ column, descending, nullable }: Plan, key: string | number | null, id: string, values: unknown[]): string {
  const than = descending ? '<' : '>';
  if (column === 'id') return `id ${than} $${values.push(id)}`;
  if (key === null) return `${column} is null and id ${than} $${values.push(id)}`;
  const tuple = `(${column}, id) ${than} ($${values.push(key)}, $${values.push(id)})`;
  return nullable ? `(${tuple} or ${column} is null)` : tuple;
}
