// Metadata of a table for statements: its columns, and which of them are read.
import type { Sql } from '../core/context';
import { LOOP_ONLY } from './columns';
import type { Session, TableInfo } from './control_database';

/** Columns and their values. */
export type Values = Record<string, unknown>;

/** The session of the request, as models know it. */
export function sessionOf(ctx: { sql: Sql }): Session {
  return ctx.sql as Session;
}

/** @throws Error for a table that no migration made */
export function tableOf(ctx: { sql: Sql }, table: string): TableInfo {
  const info = sessionOf(ctx).tables.get(table);
  if (!info) throw new Error(`no table ${table}`);
  return info;
}

const columnsRead = new WeakMap<TableInfo, { one: string; list: string }>();
/** Makes the ETag, which the rows of a page have not. */
const ETAG_ONLY = new Set(['version', 'observed_generation']);

/** Columns of a plain read: what the loop keeps for itself stays in the database. */
export function columnsOf(info: TableInfo): string {
  return columnsReadOf(info).one;
}

/** Columns of a row among others. */
export function listColumnsOf(info: TableInfo): string {
  return columnsReadOf(info).list;
}

function columnsReadOf(info: TableInfo): { one: string; list: string } {
  const known = columnsRead.get(info);
  if (known) return known;
  const shown = info.columns.filter((column) => !LOOP_ONLY.has(column));
  const made = { one: shown.join(', '), list: shown.filter((column) => !ETAG_ONLY.has(column)).join(', ') };
  columnsRead.set(info, made);
  return made;
}
