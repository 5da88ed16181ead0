// Backups: taken from the server of a database, and taken away.
import { DatabaseBackup } from '../../models/databases/database_backup';
import { findDatabase } from '../../models/databases/database_backup/job_queries';
import { UNPROVEN_IN_PODS } from '../../models/databases/database_proof';
import { releaseAllLeases } from '../../db/lease';
import { wakeDatabase } from '../../models/databases/database/wake';
import { failed, gone, progressing, settled, type Job, type JobContext, type LoopRow, type Outcome } from '../job';
import { recordFailure } from './database/failure';
import { isDataMissing, missingDataReason } from './database/missing_data';
import { requireEngineDriver, type DatabaseRow } from './database/row';
import { desiredServer } from './database/spec';
import type { DatabaseBackupStatus } from '../../schema/types';

interface BackupRow extends LoopRow {
  database_id: string;
  engine_version: string;
  status: DatabaseBackupStatus;
  status_reason: string | null;
  started_at: string | null;
}

const MINUTE_MS = 60_000;
const WAIT_MS = 2_000;
/** The database reaches a stable status by itself. */
const BUSY = new Set(['provisioning', 'updating', 'upgrading', 'restoring', 'restarting', 'starting']);

export const job: Job<BackupRow> = {
  table: DatabaseBackup.table,
  host: true,
  states: DatabaseBackup.states,
  stepMs: 6 * 60 * MINUTE_MS,
  deadlineMs: 30 * MINUTE_MS,
  prepare: (sql) => releaseAllLeases(sql, DatabaseBackup.table),
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : takeBackup(row, ctx)),
};

async function takeBackup(row: BackupRow, ctx: JobContext): Promise<Outcome> {
  if (row.status === 'completed' || row.status === 'failed') return settled();
  const database = await findDatabase<DatabaseRow>(ctx.sql, row.database_id);
  if (!database || database.deleted_at) return failed('The database is being deleted.', { finished_at: now() });
  if (BUSY.has(database.status)) return progressing(WAIT_MS);
  if (database.status !== 'available') return failed('The database is not running.', { finished_at: now() });
  if (await isDataMissing(database, ctx)) return failed(missingDataReason(database), { finished_at: now() });
  if (row.status === 'pending')
    return progressing(0, { status: 'running', started_at: now(), engine_version: database.engine_version });
  const desired = await desiredServer(database, { ...ctx, record: rejectRecord });
  const { size_bytes, manifest } = await requireEngineDriver(ctx, database)
    .backup(desired, row.id, ctx)
    .catch((error: unknown) => recordFailure(error, ctx, { again: 'The backup is tried again.' }));
  // The restore window has changed.
  await wakeDatabase(ctx.sql, database.id);
  return settled({
    driver: database.engine,
    status: 'completed',
    status_reason: typeof manifest.missing === 'string' ? manifest.missing : null,
    size_bytes,
    manifest,
    finished_at: now(),
    ...(database.on_cluster && { proof_failure: UNPROVEN_IN_PODS }),
  });
}

// Columns of the database are written by its own job only.
function rejectRecord(): Promise<void> {
  return Promise.reject(new Error('the row of a database is not written here'));
}

async function tearDown(row: BackupRow, ctx: JobContext): Promise<Outcome> {
  const database = await findDatabase<DatabaseRow>(ctx.sql, row.database_id);
  if (database) await requireEngineDriver(ctx, database).removeBackup(database.server_id, row.id, ctx);
  return gone;
}

function now(): string {
  return new Date().toISOString();
}
