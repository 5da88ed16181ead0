// Rows written with statements that Objection makes: one model class per table. A statement is made once for each set
// of columns and then run as a named one, in the request's transaction.
import knex from 'knex';
import { Model, type ModelClass, type QueryBuilder } from 'objection';
import type { Context, Statement } from '../core/context';
import { problem } from '../core/errors';
import { columnsOf, tableOf, type Values } from './table';
import type { TableInfo } from './control_database';
import { newGeneration } from './loop_rows';
import { named } from './statement';

const models = new Map<string, ModelClass<Model>>();
/** Makes statements, and has no connection. */
const writer = knex({ client: 'pg' });

/** The Objection model of a table, for writes and joins inside models/. */
export function rowsOf(table: string): ModelClass<Model> {
  const known = models.get(table);
  if (known) return known;
  const made = class extends Model {
    static override tableName = table;
  };
  models.set(table, made);
  return made;
}

/** Inserts one row and returns it, without what the loop keeps for itself. */
export async function insertRow(ctx: Context, table: string, values: Values): Promise<object> {
  const info = tableOf(ctx, table);
  const written = encode(info, values);
  const columns = Object.keys(written);
  const template = templateOf(`insert ${table} ${columns.join()}`, () =>
    rowsOf(table).query(writer).insert(marks(columns)).returning(columnsOf(info).split(', ')),
  );
  const [row] = await ctx.sql.query<object>(
    template.statement,
    template.columns.map((column) => written[column]),
  );
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
export async function updateRow(ctx: Context, table: string, id: string, changes: Values): Promise<object> {
  const info = tableOf(ctx, table);
  const written = encode(info, changes);
  const columns = Object.keys(written);
  const template = templateOf(`update ${table} ${columns.join()}`, () => {
    const bumped = { ...marks(columns), ...raised(info) } as object;
    return rowsOf(table).query(writer).patch(bumped).where({ id: ID }).returning(columnsOf(info).split(', '));
  });
  const [row] = await ctx.sql.query<object>(
    template.statement,
    template.columns.map((column) => (column === ID ? id : written[column])),
  );
  if (!row) throw problem('not_found');
  notifyDue(ctx, info, table);
  return row;
}

function raised({ columns }: TableInfo): Values {
  const looped = columns.includes('generation') ? newGeneration((text) => writer.raw(text)) : {};
  return { version: writer.raw('version + 1'), updated_at: writer.raw('greatest(now(), updated_at)'), ...looped };
}

interface Template {
  statement: Statement;
  /** What its parameters are the values of. */
  columns: string[];
}

const templates = new Map<string, Template>();

/**
 * The statement of a query whose values are the names of their columns. Columns come from models: there are few sets of
 * them.
 */
function templateOf(key: string, query: () => QueryBuilder<Model, unknown>): Template {
  const known = templates.get(key);
  if (known) return known;
  const { sql, bindings } = query().toKnexQuery().toSQL().toNative();
  const made = { statement: named(sql), columns: bindings as string[] };
  templates.set(key, made);
  return made;
}

function marks(columns: string[]): Values {
  return Object.fromEntries(columns.map((column) => [column, column]));
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
