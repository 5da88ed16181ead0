// A backup has two parts, made one after the other: the files of the whole cluster, from which restores start,
// including point-in-time recovery; and a dump of the database, for downloads, which any later version can load.
//   <backups>/<server id>/<backup id>/   base/ (base.tar.gz, pg_wal.tar.gz, backup_manifest)   dump   manifest.json
// With a store, the files are kept there (drivers/hosted_server/stored_backups.ts), and so is the archive.
import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readFile, readdir, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { absentIsNull } from '../../../../core/files';
import type { BackupMade } from '../../../database';
import { DriverError, driverContext } from '../../../../core/driver';
import type { DriverContext } from '../../../../core/driver';
import { DOWNLOAD_WITHIN_MS } from '../../../hosted_server/backups';
import {
  exists,
  removeServerTree,
  openServerDirectory,
  requireName,
  type ServerDirectory,
} from '../../../hosted_server/server_directory';
import {
  importBackup,
  isStored,
  openStoredFile,
  removeStoredBackup,
  storeBackup,
} from '../../../hosted_server/stored_backups';
import { archiveDirectory, backupsOf, systemIdentifierOf, type Cluster, type PostgresqlContext } from '../cluster';
import { connectionOf } from '../data';
import { clearStaleLock, runInBackground } from '../background_work';
import { requireTools, runTool } from '../programs';
import { backupMissing, backupsHere, isLogFile, manifestOf, orderOf, type Manifest } from './known_backups';
import { inSession } from '../session';
import { pruneStored } from './stored_archive';

/** @throws DriverError unsupported, with what to install */
export async function backup(cluster: Cluster, backupId: string, ctx: DriverContext): Promise<BackupMade> {
  requireName(backupId);
  const { engine, programs, spec } = cluster;
  const id = { serverId: spec.id, backupId };
  const directory = backupsOf(engine, spec.id);
  const made = await manifestOf(path.join(directory, backupId));
  if (made !== null && (await isStored(engine, id))) return toBackupMade(made);
  requireTools(programs, ['pg_basebackup', 'pg_dump']);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  return toBackupMade(
    await runInBackground(
      engine,
      `backup-${backupId}`,
      directory,
      async (own) => {
        const manifest = (await manifestOf(path.join(directory, backupId))) ?? (await make(cluster, backupId, own));
        await storeBackup(engine, id, files, own);
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
): Promise<{ stream: NodeJS.ReadableStream; file_name: string }> {
  requireName(backupId);
  const ctx = driverContext(DOWNLOAD_WITHIN_MS);
  const id = { serverId, backupId };
  const directory = path.join(backupsOf(engine, serverId), backupId);
  await importBackup(engine, id, ctx);
  const made = await manifestOf(directory);
  if (made === null) throw backupMissing();
  const file_name = `${made.database_name}-${made.taken_at.replaceAll(/[-:]|\.\d+/g, '')}.dump`;
  const dump = path.join(directory, 'dump');
  if (await exists(dump)) return { stream: createReadStream(dump), file_name };
  return { stream: await openStoredFile(engine, id, 'dump', ctx), file_name };
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

/** Base backup files, relative to the backup. */
export const baseFiles = ['base/base.tar.gz', 'base/pg_wal.tar.gz'];
const files = [...baseFiles, 'base/backup_manifest', 'dump'];

async function make(cluster: Cluster, backupId: string, ctx: DriverContext): Promise<Manifest> {
  const { programs, spec, engine, serverDirectory } = cluster;
  const directory = backupsOf(engine, spec.id);
  await clearTemporary(directory, backupId, ctx);
  const temporary = temporaryDirectoryOf(directory, backupId);
  await mkdir(temporary, { mode: 0o700 });
  const database = spec.database_name ?? 'postgres';
  const base = path.join(temporary, 'base');
  await runTool(
    path.join(programs.bin, 'pg_basebackup'),
    ['-D', base, ...connectionOf(cluster), '-Ft', '-Z', '1', '-X', 'stream', '-c', 'fast', '-l', backupId, '-w'],
    {},
    ctx,
  );
  const taken = await startOfBackup(cluster, base);
  await runTool(
    path.join(programs.bin, 'pg_dump'),
    [...connectionOf(cluster), '-Fc', '-Z', '1', '-w', '-f', path.join(temporary, 'dump'), '-d', database],
    {},
    ctx,
  );
  const sizes = await Promise.all([...baseFiles, 'dump'].map(async (file) => sizeOnDisk(path.join(temporary, file))));
  const manifest: Manifest = {
    id: backupId,
    version: spec.version,
    ...taken,
    database_name: database,
    size_bytes: sizes.reduce((sum, one) => sum + one, 0),
  };
  await writeFile(path.join(temporary, 'manifest.json'), JSON.stringify(manifest), { mode: 0o600, flush: true });
  await rename(temporary, path.join(directory, backupId));
  await pruneArchive(engine, serverDirectory);
  return manifest;
}

async function startOfBackup(
  cluster: Cluster,
  base: string,
): Promise<Pick<Manifest, 'system_identifier' | 'timeline' | 'wal_file' | 'taken_at'>> {
  const { 'WAL-Ranges': ranges } = JSON.parse(await readFile(path.join(base, 'backup_manifest'), 'utf8')) as {
    'WAL-Ranges': { Timeline: number; 'Start-LSN': string }[];
  };
  const [range] = ranges;
  if (range === undefined) throw new DriverError('transient', 'The backup does not say where it begins.');
  return inSession(cluster, {}, async (session) => {
    const { rows } = await session.query<{ wal_file: string; id: string; now: string }>(
      `select pg_walfile_name($1) as wal_file, (select system_identifier::text
        from pg_control_system()) as id, to_char(clock_timestamp() at time zone 'utc',
        'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as now`,
      [range['Start-LSN']],
    );
    const [row] = rows;
    return {
      system_identifier: row?.id ?? '',
      timeline: range.Timeline,
      wal_file: row?.wal_file ?? '',
      taken_at: row?.now ?? '',
    };
  });
}

function toBackupMade({ size_bytes, ...manifest }: Manifest): BackupMade {
  return { size_bytes, manifest };
}

async function sizeOnDisk(file: string): Promise<number> {
  const handle = await open(file, 'r');
  await handle.sync().finally(() => handle.close());
  return (await stat(file)).size;
}

function temporaryDirectoryOf(directory: string, backupId: string): string {
  return path.join(directory, `.temporary-${backupId}-${randomBytes(6).toString('hex')}`);
}

async function isBeingTaken(engine: PostgresqlContext, serverId: string): Promise<boolean> {
  const entries = (await readdir(backupsOf(engine, serverId)).catch(absentIsNull)) ?? [];
  return entries.some((entry) => entry.startsWith('.temporary-'));
}

async function clearTemporary(directory: string, backupId: string, ctx: DriverContext): Promise<void> {
  for (const entry of (await readdir(directory).catch(absentIsNull)) ?? []) {
    if (entry.startsWith(`.temporary-${backupId}-`)) await removeServerTree(path.join(directory, entry), ctx);
  }
}
