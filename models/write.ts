// Rows written through Objection: one model class per table, bound to the request's transaction.
import { Model, type ModelClass } from 'objection';
import type { Context } from '../core/context';
import { problem } from '../core/errors';
import { sessionOf, tableOf, type Values } from './base';
import type { TableInfo } from './database';

const models = new Map<string, ModelClass<Model>>();

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

/** Inserts one row and returns it whole. */
export async function insertRow(ctx: Context, table: string, values: Values): Promise<object> {
  const info = tableOf(ctx, table);
  const row = await rowsOf(table).query(sessionOf(ctx).knex).insert(encode(info, values)).returning('*');
  callTo(ctx, info, table);
  return plain(row);
}

/**
 * Writes fields of one row and returns it whole. Raises `version`, and where the loop works on the table also
 * `generation`, so that it looks at the row at once.
 * @throws not_found where the row has gone meanwhile
 */
export async function updateRow(ctx: Context, table: string, id: string, changes: Values): Promise<object> {
  const info = tableOf(ctx, table);
  const { knex } = sessionOf(ctx);
  const looped = info.columns.includes('generation')
    ? { generation: knex.raw('generation + 1'), next_at: knex.raw('now()'), attempts: 0, deadline_at: null }
    : {};
  const bumped = { version: knex.raw('version + 1'), updated_at: knex.raw('greatest(now(), updated_at)'), ...looped };
  const rows = await rowsOf(table)
    .query(knex)
    .patch({ ...encode(info, changes), ...bumped } as object)
    .where({ id })
    .returning('*');
  const row = (rows as unknown as Model[])[0];
  if (!row) throw problem('not_found');
  callTo(ctx, info, table);
  return plain(row);
}

function callTo(ctx: Context, info: TableInfo, table: string): void {
  if (info.columns.includes('next_at')) ctx.due(table);
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

function plain(row: Model): object {
  return { ...row };
}
