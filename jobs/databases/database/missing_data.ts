// A database that has had data is never begun anew: where its directory is gone (a disk that is not mounted, a host
// that was lost), an empty server would take its name, and backups of nothing would in time replace the good ones. It
// waits for its directory, or for a restore (docs/decisions/0101).
import { DriverError } from '../../../core/driver';
import { appendDatabaseLines } from '../../../models/applications/log_line';
import { jittered, settled, type JobContext, type Outcome } from '../../job';
import { requireEngineDriver, type DatabaseRow } from './row';

const POLL_MS = 10_000;
const MISSING_DATA =
  'The data directory of the database is missing on its host, so the database does not run, and no backups are ' +
  'taken or expire. Restore a backup, or ask the operator to restore the directory in the data directory.';

const MISSING_CLAIM =
  'The cluster has removed the volume of the database, or has lost its disk, so the database does not run, and no ' +
  'backups are taken or expire. Restore a backup, or ask the operator to restore the volume.';

/** That the data are missing, and what to do, as sentences. */
export function missingDataReason({ on_cluster }: Pick<DatabaseRow, 'on_cluster'>): string {
  return on_cluster ? MISSING_CLAIM : MISSING_DATA;
}

/** Outcome for a database whose data are lost: it is only reported. null if the data exist, or never existed. */
export async function reportMissingData(row: DatabaseRow, ctx: JobContext): Promise<Outcome | null> {
  if (!(await isDataMissing(row, ctx))) return null;
  const reason = missingDataReason(row);
  // The database was never available, so it holds no user data.
  if (row.status === 'provisioning') throw new DriverError('conflict', reason);
  if (!row.observed?.data_missing) {
    const line = { project_id: row.project_id, database_id: row.id, replica_id: null, source: 'server' } as const;
    await appendDatabaseLines(ctx.sql, [{ ...line, level: 'error', message: reason }]);
  }
  const point_in_time_window = await requireEngineDriver(ctx, row).window(row.server_id, ctx);
  return settled(
    {
      ...{ driver: row.engine, observed: { ...row.observed, data_missing: true } },
      // A restore that failed has said so.
      status_reason: row.status_reason?.endsWith(reason) ? row.status_reason : reason,
      ...{ status: row.running ? 'available' : 'stopped', ...(point_in_time_window && { point_in_time_window }) },
    },
    jittered(POLL_MS),
  );
}

export async function isDataMissing(row: DatabaseRow, ctx: JobContext): Promise<boolean> {
  const isRestoring = row.status === 'restoring' && row.restoring_from !== null;
  if (!row.observed?.begun || isRestoring) return false;
  return !(await requireEngineDriver(ctx, row).hasData(row.server_id));
}
