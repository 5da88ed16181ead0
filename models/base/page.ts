// Keyset pages: flat however far a client has walked.
import type { Model, QueryBuilder } from 'objection';
import type { Context } from '../../core/context';
import { hashFilters } from '../../core/cursor';
import { limits } from '../../core/limits';
import { compiledQuery, marksOf, bindingsOf, type StatementBuilder } from '../../db/compiled_query';
import { listColumnsOf, tableOf, type Values } from '../../db/table';
import { modelOf, type Resource, type ResourceClass } from './resource';

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
  /** Table, or subquery with its name. */
  from: string;
  /** Condition that authorises the rows. */
  where?: string;
  columns: string;
  /** Parameters of both texts, where `:user` is the value of `user`. */
  values: Values;
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
  const expect = {
    sort,
    filters: hashFilters({ ...filters, ...fixed, source: Object.values(source.values), of: kind.table }),
  };
  const plan = planOf(kind, ctx, sort);
  const after = args.cursor != null ? ctx.cursors.decode(args.cursor, expect) : null;
  const limit = args.limit ?? limits.pageSizeDefault;
  const shape = { fixed: Object.keys(fixed), filters: Object.keys(filters), after: after && keysetOf(plan, after.key) };
  const key = ['page', source.from, source.where, sort, ...shape.fixed, 'by', ...shape.filters, shape.after].join(' ');
  const query = compiledQuery(key, (builder) => pageQuery(builder, kind, source, plan, shape), {
    quick: true,
    makes: kind,
  });
  const values = {
    ...source.values,
    ...fixed,
    ...filters,
    after_key: after?.key,
    after_id: after?.id,
    limit: limit + 1,
  };
  const rows = await ctx.sql.query<R>(query.statement, bindingsOf(query, values));
  return envelope(ctx, rows, limit, plan, expect);
}

interface Shape {
  fixed: string[];
  filters: string[];
  /** Condition for the rows behind the cursor; null for the first page. */
  after: string | null;
}

function pageQuery(
  builder: StatementBuilder,
  kind: ResourceClass,
  source: Source,
  plan: Plan,
  shape: Shape,
): QueryBuilder<Model> {
  const marks = marksOf(Object.keys(source.values));
  const query = modelOf(kind)
    .query(builder)
    .select(builder.raw(source.columns))
    .from(builder.raw(source.from, marks))
    .where(marksOf(shape.fixed));
  if (source.where) query.whereRaw(source.where, marks);
  for (const name of shape.filters) query.whereRaw(kind.filters[name] as string, [name]);
  if (shape.after) query.whereRaw(shape.after, marksOf(['after_key', 'after_id']));
  // Knex takes a limit as a number only, and makes no parameter of it that has a name.
  return query.orderByRaw(`${orderOf(plan)} limit ?`, ['limit']);
}

/** Rows of the selected project. */
export function tenantSource(kind: ResourceClass, ctx: Context): Source {
  const info = tableOf(ctx, kind.table);
  return {
    from: kind.table,
    where: `project_id = :project_id${info.columns.includes('deleted_at') ? ' and deleted_at is null' : ''}`,
    columns: listColumnsOf(info),
    values: { project_id: ctx.project?.id },
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
  if (column === 'id') return `id ${direction}`;
  return `${column} ${direction}${nullable && descending ? ' nulls last' : ''}, id ${direction}`;
}

function keysetOf({ column, descending, nullable }: Plan, key: string | number | null): string {
  const than = descending ? '<' : '>';
  if (column === 'id') return `id ${than} :after_id`;
  if (key === null) return `${column} is null and id ${than} :after_id`;
  const tuple = `(${column}, id) ${than} (:after_key, :after_id)`;
  return nullable ? `(${tuple} or ${column} is null)` : tuple;
}
