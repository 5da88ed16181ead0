// What makes the work of an application due: its desired state is spread over its process types, which have no loop.
import type { Sql } from '../../../core/context';
import { wakeRows } from '../../../db/loop_rows';

/** The job of the application looks at it as soon as the transaction is committed. */
export async function wakeApplication(sql: Sql, applicationId: string): Promise<void> {
  await wakeRows(sql, { table: 'applications', where: 'id = $1', values: [applicationId] });
}
