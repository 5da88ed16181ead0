// Statements that Objection makes: each is built once and then run by its name (docs/decisions/0025).
import knex, { type Knex } from 'knex';
import type { Model, QueryBuilder } from 'objection';
import type { Statement } from '../core/context';
import { named } from './statement';
import type { Values } from './table';

/** Builds texts, without a connection. */
export type StatementBuilder = Knex;

const builder: StatementBuilder = knex({ client: 'pg' });

interface CompiledQuery {
  statement: Statement;
  /** The name of each parameter, in their order: what stood for its value while the text was built. */
  parameters: string[];
}

const queries = new Map<string, CompiledQuery>();

/**
 * The statement of a query in which the name of each parameter stands for its value.
 * @param key what the text depends on. It comes from models, never from a client: each key is kept.
 */
export function compiledQuery<Rows>(
  key: string,
  build: (builder: StatementBuilder) => QueryBuilder<Model, Rows>,
  more: Pick<Statement, 'quick' | 'makes'> = {},
): CompiledQuery {
  const known = queries.get(key);
  if (known) return known;
  const { sql, bindings } = build(builder).toKnexQuery().toSQL().toNative();
  const made = { statement: named(sql, more), parameters: bindings.map(String) };
  queries.set(key, made);
  return made;
}

/** Stand for the values of these columns while a text is built. */
export function marksOf(columns: readonly string[]): Values {
  return Object.fromEntries(columns.map((column) => [column, column]));
}

/** The values of the parameters, in their order. */
export function bindingsOf({ parameters }: CompiledQuery, values: Values): unknown[] {
  return parameters.map((name) => values[name]);
}
