// The files of a volume replaced with those of a backup. One that fails leaves the files as they were, and the reason
// with the volume; a new volume without its files is `failed`.
import { DriverError, type Desired } from '../../../core/driver';
import { pauseMsAfter } from '../../../core/process/backoff';
import { toSentence } from '../../../core/sentence';
import type { VolumeDriver, VolumeSpec } from '../../../drivers/volume';
import { restoreVolumeBackup } from '../../../drivers/volume_backup/volume_backup';
import { findBackupToRestore } from '../../../models/volumes/volume_backup/job_queries';
import { openPassphrase } from '../../../models/volumes/volume_backup/passphrase';
import { failed, progressing, type JobContext, type LoopRow, type Outcome } from '../../job';
import { backupPlace, Turns } from './backup_place';

export interface RestoringFrom {
  backup_id: string;
  requested_at: string;
  /** Attempts that failed. */
  failures?: number;
}

interface RestoringRow extends LoopRow {
  restoring_from: RestoringFrom;
}

const WAIT_MS = 2_000;
const FAILURES_MAX = 10;
const BACKOFF = { firstMs: 2_000, maxMs: 60_000 };
const FINAL = new Set(['invalid', 'unsupported', 'conflict', 'capacity']);

const turns = new Turns();

/** @returns null where the files are in place */
export async function restoreFiles(
  row: RestoringRow,
  driver: VolumeDriver,
  volume: Desired<VolumeSpec>,
  ctx: JobContext,
): Promise<Outcome | null> {
  try {
    const done = await turns.take(async () => {
      await restoreOnce(row, driver, volume, ctx);
      return true;
    });
    return done === null ? progressing(WAIT_MS) : null;
  } catch (error) {
    if (!(error instanceof DriverError) || ctx.signal.aborted) throw error;
    return afterFailure(row, error, driver, volume, ctx);
  }
}

async function restoreOnce(
  { restoring_from }: RestoringRow,
  driver: VolumeDriver,
  volume: Desired<VolumeSpec>,
  ctx: JobContext,
): Promise<void> {
  const { backup_id, requested_at } = restoring_from;
  const found = await findBackupToRestore(ctx.sql, backup_id);
  if (found === null) throw new DriverError('conflict', 'The backup was deleted.');
  if (driver.files === null)
    throw new DriverError('unsupported', 'Backups are restored into volumes on the machine of the platform only.');
  const backup = { ...found, passphrase: openPassphrase(ctx.secrets, found) };
  const replacement = { key: `${backup_id} ${requested_at}`, bytes: found.content_bytes ?? 0 };
  await restoreVolumeBackup(backupPlace(ctx.config), { files: driver.files, volume }, backup, replacement, ctx);
}

async function afterFailure(
  row: RestoringRow,
  error: DriverError,
  driver: VolumeDriver,
  volume: Desired<VolumeSpec>,
  ctx: JobContext,
): Promise<Outcome> {
  // It is waited for.
  if (error.engineAway) throw error;
  const failures = (row.restoring_from.failures ?? 0) + 1;
  const reason = toSentence(error.message);
  ctx.log.warn({ err: error, failures }, 'a volume could not be restored');
  if (!FINAL.has(error.reason) && failures < FAILURES_MAX)
    return progressing(Math.max(error.retryAfterMs ?? 0, pauseMsAfter(failures, BACKOFF)), {
      restoring_from: { ...row.restoring_from, failures },
      status_reason: `${reason} The restore is tried again.`,
    });
  await driver.files?.discardReplacement(volume, ctx);
  if (row.status !== 'restoring') return failed(`The files could not be restored. ${reason}`);
  return progressing(0, {
    restoring_from: null,
    restore_failure: `The restore failed, and the files are as before. ${reason}`,
  });
}
