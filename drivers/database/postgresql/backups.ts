// A backup is two things made one after the other: the files of the whole cluster, which a restore begins with, also
// one to a point in time; and a dump of the database, which is what a user downloads, and which fits every later
// version.
//   <backups>/<server id>/<backup id>/   base/ (base.tar.gz, pg_wal.tar.gz, backup_manifest)   dump   manifest.json
import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readFile, readdir, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { absentIsNull } from '../../files';
import type { BackupMade } from '../../database';
import { DriverError } from '../../driver';
import type { DriverContext } from '../../driver';
import {
  removeServerTree,
  findServerDirectory,
  requireName,
  type ServerDirectory,
} from '../../hosted_server/server_directory';
import { archiveDirectory, backupsOf, systemIdentifierOf, type Cluster, type PostgresqlContext } from './cluster';
import { connectionOf } from './data';
import { clearStaleLock, runInBackground } from './background_work';
import { requireTools, runTool } from './programs';
import { inSession } from './session';

/**
 * `wal_file`: the first file of the log that a recovery from it needs. `taken_at`: the earliest time that it can be
 * brought to.
 */
export interface Manifest {
  id: string;
  version: string;
  system_identifier: string;
  timeline: number;
  wal_file: string;
  taken_at: string;
  database_name: string;
  size_bytes: number;
}

/** @throws DriverError unsupported, with what to install */
export async function backup(cluster: Cluster, backupId: string, ctx: DriverContext): Promise<BackupMade> {
  requireName(backupId);
  const { engine, programs, spec } = cluster;
  const directory = backupsOf(engine, spec.id);
  const made = await manifestOf(path.join(directory, backupId));
  if (made !== null) return toBackupMade(made);
  requireTools(programs, ['pg_basebackup', 'pg_dump']);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  return toBackupMade(
    await runInBackground(
      engine,
      `backup-${backupId}`,
      directory,
      (own) => make(cluster, directory, backupId, own),
      ctx,
    ),
  );
}

/** Absent is success. What of the log no backup needs any more goes with it. */
export async function removeBackup(
  engine: PostgresqlContext,
  serverId: string,
  backupId: string,
  ctx: DriverContext,
): Promise<void> {
  requireName(backupId);
  const directory = backupsOf(engine, serverId);
  await rename(path.join(directory, backupId), temporaryDirectoryOf(directory, backupId)).catch(absentIsNull);
  await clearTemporary(directory, backupId, ctx);
  const serverDirectory = await findServerDirectory(engine, serverId);
  if (typeof serverDirectory !== 'string') await pruneArchive(engine, serverDirectory);
  await clearStaleLock(directory);
  await rmdir(directory).catch(() => undefined); // others are still in it
}

/** The dump, for pg_restore. @throws DriverError conflict where there is no such backup */
export async function openBackup(
  engine: PostgresqlContext,
  serverId: string,
  backupId: string,
): Promise<{ stream: NodeJS.ReadableStream; file_name: string }> {
  requireName(backupId);
  const directory = path.join(backupsOf(engine, serverId), backupId);
  const made = await manifestOf(directory);
  if (made === null) throw backupMissing();
  return {
    stream: createReadStream(path.join(directory, 'dump')),
    file_name: `${made.database_name}-${made.taken_at.replaceAll(/[-:]|\.\d+/g, '')}.dump`,
  };
}

/** All whole backups of a server, the oldest first. */
export async function backupsFound(engine: PostgresqlContext, serverId: string): Promise<Manifest[]> {
  const directory = backupsOf(engine, serverId);
  const names = (await readdir(directory).catch(absentIsNull)) ?? [];
  const found = await Promise.all(
    names.filter((one) => !one.startsWith('.')).map((one) => manifestOf(path.join(directory, one))),
  );
  return found.filter((one) => one !== null).sort((a, b) => (a.taken_at < b.taken_at ? -1 : 1));
}

export function backupMissing(): DriverError {
  return new DriverError('conflict', 'There is no such backup.');
}

/**
 * Files of the log before the first one that a backup needs; the timeline is no part of the order (pg_archivecleanup).
 */
export async function pruneArchive(engine: PostgresqlContext, serverDirectory: ServerDirectory): Promise<void> {
  const systemIdentifier = await systemIdentifierOf(serverDirectory.data).catch(absentIsNull);
  if (systemIdentifier === null) return;
  const archive = archiveDirectory(serverDirectory, systemIdentifier);
  const needed = (await backupsFound(engine, serverDirectory.id))
    .filter((one) => one.system_identifier === systemIdentifier)
    .map(({ wal_file }) => orderOf(wal_file))
    .sort()[0];
  for (const file of (await readdir(archive).catch(absentIsNull)) ?? []) {
    if (!/^[0-9A-F]{24}(\.[0-9A-F]{8}\.backup|\.partial)?\.gz$/.test(file)) continue;
    if (needed === undefined || orderOf(file) < needed) await rm(path.join(archive, file), { force: true });
  }
}

/** Place of a file of the log, whatever its timeline. */
export function orderOf(walFile: string): string {
  return walFile.slice(8, 24);
}

async function make(cluster: Cluster, directory: string, backupId: string, ctx: DriverContext): Promise<Manifest> {
  const { programs, spec, engine, serverDirectory } = cluster;
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
  const sizes = await Promise.all(
    ['base/base.tar.gz', 'base/pg_wal.tar.gz', 'dump'].map(async (file) => sizeOnDisk(path.join(temporary, file))),
  );
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

async function manifestOf(directory: string): Promise<Manifest | null> {
  const text = await readFile(path.join(directory, 'manifest.json'), 'utf8').catch(absentIsNull);
  return text === null ? null : (JSON.parse(text) as Manifest);
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

async function clearTemporary(directory: string, backupId: string, ctx: DriverContext): Promise<void> {
  for (const entry of (await readdir(directory).catch(absentIsNull)) ?? []) {
    if (entry.startsWith(`.temporary-${backupId}-`)) await removeServerTree(path.join(directory, entry), ctx);
  }
}
