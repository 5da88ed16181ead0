// What makes the work of an application due: its desired state is spread over its process types, which have no loop.
import type { Sql } from '../../core/context';
import { named } from '../../db/statement';

// Not a new version: nothing that the application shows has changed.
const DUE = named(
  'update applications set generation = generation + 1, next_at = now(), attempts = 0, deadline_at = null where id = $1',
);
const STOP =
  named(`update instances set status = 'stopping', status_reason = null, version = version + 1, updated_at = greatest(now(), updated_at),
  generation = generation + 1, next_at = now(), attempts = 0, deadline_at = null
  where application_id = $1 and process_id = $2 and status <> 'stopping' and deleted_at is null`);
const WAKE = named(`select pg_notify('due', $1)`);

/** The job of the application looks at it as soon as the transaction is committed. */
export async function wakeApplication(sql: Sql, applicationId: string): Promise<void> {
  await sql.query(DUE, [applicationId]);
  await sql.query(WAKE, ['applications']);
}

/** Instances of a process type that has gone are drained and stopped, those of previews too. */
export async function stopInstancesOf(sql: Sql, applicationId: string, processId: string): Promise<void> {
  await sql.query(STOP, [applicationId, processId]);
  await sql.query(WAKE, ['instances']);
}
