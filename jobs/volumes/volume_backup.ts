// Backups of volumes: taken from the files of a volume, and taken away.
import { DriverError, type ExternalRef } from '../../core/driver';
import { toSentence } from '../../core/sentence';
import type { LoopRow } from '../../db/lease';
import { makeVolumeBackup, removeVolumeBackup } from '../../drivers/volume_backup/volume_backup';
import { VolumeBackup } from '../../models/volumes/volume_backup';
import { findBackedUpVolume } from '../../models/volumes/volume_backup/job_queries';
import { openPassphrase } from '../../models/volumes/volume_backup/passphrase';
import type { VolumeBackupConsistency, VolumeBackupStatus, VolumeStatus } from '../../schema/types';
import { failed, gone, progressing, settled, type Job, type JobContext, type Outcome } from '../job';
import { backupPlace, Turns } from './volume/backup_place';

interface BackupRow extends LoopRow {
  volume_id: string;
  passphrase: string;
  status: VolumeBackupStatus;
}

interface VolumeRow {
  id: string;
  driver: string | null;
  ref: ExternalRef | null;
  size_gb: number;
  application_id: string | null;
  used_bytes: number | null;
  status: VolumeStatus;
  deleted_at: string | null;
}

const MINUTE_MS = 60_000;
const WAIT_MS = 2_000;
/** The volume reaches a stable status by itself. */
const BUSY = new Set<VolumeStatus>(['provisioning', 'resizing', 'restoring']);

const turns = new Turns();

export const job: Job<BackupRow> = {
  table: VolumeBackup.table,
  states: VolumeBackup.states,
  stepMs: 12 * 60 * MINUTE_MS,
  deadlineMs: 30 * MINUTE_MS,
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : takeBackup(row, ctx)),
};

async function takeBackup(row: BackupRow, ctx: JobContext): Promise<Outcome> {
  if (row.status === 'completed' || row.status === 'failed') return settled();
  const volume = await findBackedUpVolume<VolumeRow>(ctx.sql, row.volume_id);
  if (!volume || volume.deleted_at) return failed('The volume is being deleted.', { finished_at: now() });
  if (BUSY.has(volume.status)) return progressing(WAIT_MS);
  if (volume.status === 'failed') return failed('The volume has no files: it has failed.', { finished_at: now() });
  const taken = await turns.take(() => takeInTurn(row, volume, ctx));
  return taken ?? progressing(WAIT_MS);
}

async function takeInTurn(row: BackupRow, volume: VolumeRow, ctx: JobContext): Promise<Outcome> {
  if (row.status === 'pending') return progressing(0, { status: 'running', started_at: now() });
  const files = ctx.drivers.volumes.byName.get(String(volume.driver))?.files ?? null;
  if (files === null)
    throw new DriverError('unsupported', 'Backups are taken of volumes on the machine of the platform only.');
  const desired = { id: volume.id, spec: { size_gb: volume.size_gb }, ...(volume.ref && { ref: volume.ref }) };
  const backup = { id: row.id, volume_id: volume.id, passphrase: openPassphrase(ctx.secrets, row) };
  const source = { files, volume: desired };
  const made = await makeVolumeBackup(backupPlace(ctx.config), source, backup, volume.used_bytes, ctx).catch(
    (error: unknown) => recordFailure(error, ctx),
  );
  const after = await findBackedUpVolume<VolumeRow>(ctx.sql, row.volume_id);
  const isDetached = volume.application_id === null && after?.application_id === null;
  const isSnapshot = made.how === 'snapshot' || (made.how === 'unused' && isDetached);
  const consistency: VolumeBackupConsistency = isSnapshot ? 'snapshot' : 'files';
  return settled({
    driver: volume.driver,
    status: 'completed',
    status_reason: made.unread > 0 ? `${made.unread} files could not be read, and are not in the backup.` : null,
    consistency,
    size_bytes: made.size_bytes,
    content_bytes: made.content_bytes,
    finished_at: now(),
  });
}

async function recordFailure(error: unknown, ctx: JobContext): Promise<never> {
  if (error instanceof DriverError && !ctx.signal.aborted)
    await ctx.record({ status_reason: `${toSentence(error.message)} The backup is tried again.` });
  throw error;
}

async function tearDown(row: BackupRow, ctx: JobContext): Promise<Outcome> {
  await removeVolumeBackup(backupPlace(ctx.config), row, ctx);
  return gone;
}

function now(): string {
  return new Date().toISOString();
}
