// Rows written in the request's transaction, with one compiled statement for each set of columns.
import type { Knex } from 'knex';
import type { Model, ModelClass } from 'objection';
import type { Context } from '../core/context';
import { problem } from '../core/errors';
import { compiledQuery, marksOf, bindingsOf } from './compiled_query';
import type { TableInfo } from './control_database';
import { newGeneration } from './loop_rows';
import { columnsOf, tableOf, type Values } from './table';

/** Inserts one row and returns it, without what the loop keeps for itself. */
export async function insertRow(ctx: Context, model: ModelClass<Model>, values: Values): Promise<object> {
  const { tableName: table } = model;
  const info = tableOf(ctx, table);
  const written = encode(info, values);
  const columns = Object.keys(written);
  const query = compiledQuery(`insert ${table} ${columns.join()}`, (builder) =>
    model.query(builder).insert(marksOf(columns)).returning(columnsOf(info).split(', ')),
  );
  const [row] = await ctx.sql.query<object>(query.statement, bindingsOf(query, written));
  notifyDue(ctx, info, table);
  return row as object;
}

/** Stands for the id of the row that is written. */
const ID = '(id)';

/**
 * Writes fields of one row and returns it, without what the loop keeps for itself. Raises `version`, and where the loop
 * works on the table also `generation`, so that the loop takes the row at once.
 * @throws not_found where the row has gone meanwhile
 */
export async function updateRow(ctx: Context, model: ModelClass<Model>, id: string, changes: Values): Promise<object> {
  const { tableName: table } = model;
  const info = tableOf(ctx, table);
  const written = encode(info, changes);
  const columns = Object.keys(written);
  const query = compiledQuery(`update ${table} ${columns.join()}`, (builder) => {
    const bumped = { ...marksOf(columns), ...raised(builder, info) } as object;
    return model.query(builder).patch(bumped).where({ id: ID }).returning(columnsOf(info).split(', '));
  });
  const [row] = await ctx.sql.query<object>(query.statement, bindingsOf(query, { ...written, [ID]: id }));
  if (!row) throw problem('not_found');
  notifyDue(ctx, info, table);
  return row;
}

function raised(builder: Knex, { columns }: TableInfo): Values {
  const looped = columns.includes('generation') ? newGeneration((text) => builder.raw(text)) : {};
  return { version: builder.raw('version + 1'), updated_at: builder.raw('greatest(now(), updated_at)'), ...looped };
}

function notifyDue(ctx: Context, info: TableInfo, table: string): void {
  if (info.columns.includes('next_at')) ctx.sql.due(table);
}

// pg would turn a JavaScript list into a PostgreSQL array; jsonb wants its text.
function encode(info: TableInfo, values: Values): Values {
  const result: Values = {};
  for (const [name, value] of Object.entries(values)) {
    if (!info.columns.includes(name) || value === undefined) continue;
    result[name] = info.json.has(name) && value !== null ? JSON.stringify(value) : value;
  }
  return result;
}
