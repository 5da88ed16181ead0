// What makes the work of a database due: its users and endpoints have no server of their own.
import type { Sql } from '../../../core/context';
import { wakeRows } from '../../../db/loop_rows';
import { wakeEndpoints } from '../database_endpoint/work';

/** The job of the database looks at it as soon as the transaction is committed, and so do those of its endpoints. */
export async function wakeDatabase(sql: Sql, databaseId: string): Promise<void> {
  await wakeRows(sql, { table: 'databases', where: 'id = $1', values: [databaseId] });
  await wakeEndpoints(sql, databaseId);
}
