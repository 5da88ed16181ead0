// A source that nobody writes to while the last changes are fetched, and that is written to again where that failed.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, DatabaseError } from 'pg';
import { DriverError } from '../../../../../core/driver';
import { cleanFailureText } from '../../../../../core/log/failure_text';
import { sqlIdentifier } from '../../session';
import { INSUFFICIENT_PRIVILEGE, refusalAtSource } from './source';
import { SOURCE_SESSION } from './source_session';

const END_TRIES = 40;

/**
 * Sessions of others end, and new ones cannot write.
 * @throws DriverError where the user may not, or cannot see whether they have ended: take it back then
 */
export async function makeReadOnly(client: Client, database: string): Promise<void> {
  try {
    await client.query(`alter database ${sqlIdentifier(database)} set default_transaction_read_only = on`);
  } catch (error) {
    throw refusalAtSource(
      error,
      'The source could not be made read-only. Stop what writes there, and finish without it',
    );
  }
  // Those that begin later are read-only.
  const { rows: times } = await client.query<{ now: string }>('select clock_timestamp()::text as now');
  let kept: string | null = null;
  for (let left = END_TRIES; left > 0; left -= 1) {
    const open = await sessionsBefore(client, times[0]!.now);
    if (!open.length) return;
    kept = null;
    for (const { pid, usename, is_readable } of open) {
      const end = is_readable && client.query('select pg_terminate_backend($1)', [pid]);
      const isAllowed = await Promise.resolve(end).then(
        () => is_readable,
        (error: DatabaseError) => {
          if (error.code !== INSUFFICIENT_PRIVILEGE) throw error;
          return false;
        },
      );
      if (!isAllowed) kept ??= usename;
    }
    await sleep(100);
  }
  throw kept === null ? new DriverError('transient', 'Sessions at the source do not end.') : cannotEnd(kept);
}

/** Also those of which the user may see no more than that they are there, which are not said to be clients. */
async function sessionsBefore(
  client: Client,
  time: string,
): Promise<{ pid: number; usename: string; is_readable: boolean }[]> {
  const { rows } = await client.query(
    `select pid, usename, backend_type is not null and backend_start is not null as is_readable
      from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
        and usename is not null and application_name is distinct from $1
        and pid not in (select pid from pg_stat_replication where pid is not null)
        and coalesce(backend_type, 'client backend') = 'client backend'
        and (backend_start is null or backend_start < $2)
      limit 1000`,
    [SOURCE_SESSION, time],
  );
  return rows;
}

function cannotEnd(user: string): DriverError {
  const advice =
    'GRANT pg_monitor, pg_signal_backend TO the user of the import, or stop what writes yourself and finish without ' +
    'make_source_read_only.';
  return new DriverError(
    'transient',
    `The user of the import may not see or end the sessions of ${cleanFailureText(user)} at the source. ${advice}`,
  );
}

/** Writes again. A user who may not has changed nothing either. */
export async function makeWritable(client: Client, database: string): Promise<void> {
  try {
    await client.query(`alter database ${sqlIdentifier(database)} reset default_transaction_read_only`);
  } catch (error) {
    if ((error as DatabaseError).code !== INSUFFICIENT_PRIVILEGE) throw error;
  }
}
