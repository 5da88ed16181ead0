// Scheduling of a database's job, which also handles its users; its endpoints have jobs too.
import type { Sql } from '../../../core/context';
import { wakeRows } from '../../../db/loop_rows';
import { wakeEndpoints } from '../database_endpoint/job_queries';

/** Makes the jobs of the database and its endpoints due at commit. */
export async function wakeDatabase(sql: Sql, databaseId: string): Promise<void> {
  await wakeRows(sql, { table: 'databases', where: 'id = $1', values: [databaseId] });
  await wakeEndpoints(sql, databaseId);
}
