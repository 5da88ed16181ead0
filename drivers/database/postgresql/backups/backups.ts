// A backup has two parts, made one after the other (make_backup.ts): the files of the whole cluster, from which
// restores start, including point-in-time recovery; and a dump of the database, for downloads, which any later version
// can load.
//   <backups>/<server id>/<backup id>/   base/ (base.tar.gz, pg_wal.tar.gz, backup_manifest)   dump   manifest.json
// With a store, the files are kept there (drivers/hosted_server/stored_backups.ts), and so is the archive.
import { mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises';
import path from 'node:path';
import { absentIsNull } from '../../../../core/files';
import type { BackupMade } from '../../../database';
import { DriverError, driverContext } from '../../../../core/driver';
import type { DriverContext } from '../../../../core/driver';
import type { OpenedBackup } from '../../../hosted_server';
import { DOWNLOAD_WITHIN_MS, openPart } from '../../../hosted_server/backups';
import { openServerDirectory, requireName, type ServerDirectory } from '../../../hosted_server/server_directory';
import { importBackup, isStored, removeStoredBackup, storeBackup } from '../../../hosted_server/stored_backups';
import { archiveDirectory, backupsOf, systemIdentifierOf, type Cluster, type PostgresqlContext } from '../cluster';
import { clearStaleLock, runInBackground } from '../background_work';
import { requireTools } from '../programs';
import { backupMissing, backupsHere, isLogFile, manifestOf, orderOf, type Manifest } from './known_backups';
import { clearTemporary, filesOf, makeBackup, sourceOn, temporaryDirectoryOf, type BackupSource } from './make_backup';
import { pruneStored } from './stored_archive';

/** Of a server of this host. @throws DriverError unsupported, with what to install */
export function backup(cluster: Cluster, backupId: string, ctx: DriverContext): Promise<BackupMade> {
  return backupOf(sourceOn(cluster), backupId, () => pruneArchive(cluster.engine, cluster.serverDirectory), ctx);
}

/** @param prune removes what earlier backups needed @throws DriverError unsupported, with what to install */
export async function backupOf(
  source: BackupSource,
  backupId: string,
  prune: () => Promise<void>,
  ctx: DriverContext,
): Promise<BackupMade> {
  requireName(backupId);
  const { engine, programs, spec } = source;
  const id = { serverId: spec.id, backupId };
  const directory = backupsOf(engine, spec.id);
  const made = await manifestOf(path.join(directory, backupId));
  if (made !== null && made.dump !== 'pending' && (await isStored(engine, id))) return toBackupMade(made);
  requireTools(programs, ['pg_basebackup', 'pg_dump']);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  return toBackupMade(
    await runInBackground(
      engine,
      `backup-${backupId}`,
      directory,
      async (own) => {
        const manifest = await makeBackup(source, backupId, own);
        await prune();
        await storeBackup(engine, id, filesOf(manifest), own);
        await pruneStored(engine, spec.id, own);
        return manifest;
      },
      ctx,
    ),
  );
}

/** Absent is success. WAL that no backup needs any more is removed too. */
export async function removeBackup(
  engine: PostgresqlContext,
  serverId: string,
  backupId: string,
  ctx: DriverContext,
): Promise<void> {
  requireName(backupId);
  const directory = backupsOf(engine, serverId);
  await removeStoredBackup(engine, { serverId, backupId }, ctx);
  await rename(path.join(directory, backupId), temporaryDirectoryOf(directory, backupId)).catch(absentIsNull);
  await clearTemporary(directory, backupId, ctx);
  const serverDirectory = await openServerDirectory(engine, serverId);
  if (typeof serverDirectory !== 'string') await pruneArchive(engine, serverDirectory);
  await pruneStored(engine, serverId, ctx);
  await clearStaleLock(directory);
  await rmdir(directory).catch(() => undefined); // other backups remain in it
}

/** The dump, for pg_restore. @throws DriverError conflict where the backup does not exist */
export async function openBackup(
  engine: PostgresqlContext,
  serverId: string,
  backupId: string,
  from = 0,
): Promise<OpenedBackup> {
  requireName(backupId);
  const ctx = driverContext(DOWNLOAD_WITHIN_MS);
  const id = { serverId, backupId };
  const directory = path.join(backupsOf(engine, serverId), backupId);
  await importBackup(engine, id, ctx);
  const made = await manifestOf(directory);
  if (made === null) throw backupMissing();
  if (made.dump_reason !== undefined) throw new DriverError('conflict', `There is no dump. ${made.dump_reason}`);
  const file_name = `${made.database_name}-${made.taken_at.replaceAll(/[-:]|\.\d+/g, '')}.dump`;
  return { ...(await openPart(engine, id, path.join(directory, 'dump'), from, ctx)), file_name };
}

/**
 * Removes WAL files before the first one that a backup needs; the timeline is not part of the order
 * (pg_archivecleanup).
 */
async function pruneArchive(engine: PostgresqlContext, serverDirectory: ServerDirectory): Promise<void> {
  const systemIdentifier = await systemIdentifierOf(serverDirectory.data).catch(absentIsNull);
  if (systemIdentifier === null) return;
  const archive = archiveDirectory(serverDirectory, systemIdentifier);
  const needed = (await backupsHere(engine, serverDirectory.id))
    .filter((one) => one.system_identifier === systemIdentifier)
    .map(({ wal_file }) => orderOf(wal_file))
    .sort()[0];
  // The first backup may be running.
  if (needed === undefined && (await isBeingTaken(engine, serverDirectory.id))) return;
  for (const file of (await readdir(archive).catch(absentIsNull)) ?? []) {
    if (!isLogFile(file)) continue;
    if (needed === undefined || orderOf(file) < needed) await rm(path.join(archive, file), { force: true });
  }
}

function toBackupMade({ size_bytes, dump_reason, ...manifest }: Manifest): BackupMade {
  if (dump_reason === undefined) return { size_bytes, manifest };
  const missing = `The dump for downloads could not be made; the backup can be restored. ${dump_reason}`;
  return { size_bytes, manifest: { ...manifest, dump_reason, missing } };
}

async function isBeingTaken(engine: PostgresqlContext, serverId: string): Promise<boolean> {
  const entries = (await readdir(backupsOf(engine, serverId)).catch(absentIsNull)) ?? [];
  return entries.some((entry) => entry.startsWith('.temporary-'));
}
