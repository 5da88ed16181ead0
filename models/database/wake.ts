// What makes the work of a database due: its users and endpoints have no server of their own.
import type { Sql } from '../../core/context';
import { wakeEndpoints } from '../database_endpoint/work';
import { named } from '../../db/statement';

// Not a new version: nothing that the database shows has changed.
const DUE = named(
  'update databases set generation = generation + 1, next_at = now(), attempts = 0, deadline_at = null where id = $1',
);
const WAKE = named(`select pg_notify('due', 'databases')`);

/** The job of the database looks at it as soon as the transaction is committed, and so do those of what listens before it. */
export async function wakeDatabase(sql: Sql, databaseId: string): Promise<void> {
  await sql.query(DUE, [databaseId]);
  await sql.query(WAKE, []);
  await wakeEndpoints(sql, databaseId);
}
