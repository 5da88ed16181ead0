// The four writes on rows that the loop works on, for requests and jobs alike. What else writes such a row is an insert
// (db/write.ts, due by its default), and the loop itself (db/lease.ts).
//
//                 next_at   generation   attempts, deadline_at   columns
// makeRowsDue     now       stays        stay                    none: the row is to be reconciled
// wakeRows        now       + 1          start anew              none: something that the row depends on has changed
// changeRows      now       + 1          start anew              desired fields, or a status that needs work
// tearDownRows    now       + 1          start anew              deleted_at
//
// A new generation voids the status that a running step is about to write, and the row is reconciled again after the
// step.
import type { Sql } from '../core/context';
import { named } from './statement';

/** Rows of one table: those that meet the condition. */
interface LoopRows {
  table: string;
  /** SQL with $1, $2, … for `values`. A bounded set of texts: never from a client. */
  where: string;
  values: readonly unknown[];
}

const NEW_GENERATION = 'generation = generation + 1, next_at = now(), attempts = 0, deadline_at = null';

/** For changeRows, where a request changes fields that its ETag stands for. */
export const NEW_VERSION = 'version = version + 1, updated_at = greatest(now(), updated_at)';

/** Makes the rows due for the loop of any process. Running steps are not disturbed. @returns ids */
export function makeRowsDue(sql: Sql, rows: LoopRows): Promise<string[]> {
  return write(sql, rows, 'next_at = now()');
}

/** Makes rows due at random times within `withinMs`: after a start there may be thousands. Earlier due times stay. */
export function spreadRows(sql: Sql, rows: LoopRows, withinMs: number): Promise<string[]> {
  return write(sql, rows, `next_at = least(next_at, now() + random() * ${withinMs} * interval '1 ms')`);
}

/** Something that the rows depend on has changed. Their versions stay: an answer shows nothing new. @returns ids */
export function wakeRows(sql: Sql, rows: LoopRows): Promise<string[]> {
  return write(sql, rows, NEW_GENERATION);
}

/**
 * Writes desired fields, or a status that needs work. `set` also raises a counter: `NEW_VERSION` for changes by a
 * request, `observed_generation = observed_generation + 1` for visible changes of the observed state.
 * @returns ids
 */
export function changeRows(sql: Sql, { set, ...rows }: LoopRows & { set: string }): Promise<string[]> {
  return write(sql, rows, `${set}, ${NEW_GENERATION}`);
}

/** Marks rows as deleted, so reads skip them; their jobs tear them down. Skips rows in tear-down. @returns ids */
export function tearDownRows(sql: Sql, { table, where, values }: LoopRows): Promise<string[]> {
  const present = { table, where: `(${where}) and deleted_at is null`, values };
  return write(sql, present, `deleted_at = now(), ${NEW_GENERATION}`);
}

/** SQL terms of `on conflict … do update set`, for an insert that changes a row of the table where there is one. */
export function newGenerationOf(table: string): string {
  return NEW_GENERATION.replace('= generation', `= ${table}.generation`);
}

/** Columns that db/write.ts sets in addition to the columns of a request. */
export function newGeneration(raw: (text: string) => unknown): Record<string, unknown> {
  const terms = NEW_GENERATION.split(', ').map((term) => term.split(' = ') as [string, string]);
  return Object.fromEntries(terms.map(([column, term]) => [column, raw(term)]));
}

async function write(sql: Sql, { table, where, values }: LoopRows, set: string): Promise<string[]> {
  const rows = await sql.query<{ id: string }>(
    named(`update ${table} set ${set} where ${where} returning ${table}.id`),
    values,
  );
  if (rows.length) sql.due(table);
  return rows.map(({ id }) => id);
}
