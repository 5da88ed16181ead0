// The archive of a server is stored outside of its disk, on a shared one: it has its own limit, a multiple of the
// storage. Beyond it, the recovery window shrinks. Backups before the window can still be restored: each contains the
// WAL that it needs.
import { readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { DriverContext } from '../../../../core/driver';
import { absentIsNull } from '../../../../core/files';
import { archivedSince, leadingOn, noteArchivedSince } from './archiving';
import { archiveDirectory, systemIdentifierOf, type Cluster } from '../cluster';
import { backupsHere, isLogFile, orderOf, type Manifest } from './known_backups';
import { bytesBelow } from '../storage';

/** Limit as a multiple of the server's storage. */
const ARCHIVE_STORAGES = 8;

/** Whether `shortenArchive` is needed. */
export async function isArchiveTooLarge(cluster: Cluster, ctx: DriverContext): Promise<boolean> {
  return (await largeArchiveOf(cluster, ctx)) !== null;
}

/**
 * Keeps the WAL from the oldest backup whose WAL fits the limit. If none fits, everything is removed, and the window
 * starts again with the next backup. Repeatable.
 */
export async function shortenArchive(cluster: Cluster, ctx: DriverContext): Promise<void> {
  const found = await largeArchiveOf(cluster, ctx);
  if (found === null) return;
  const { engine, serverDirectory, spec } = cluster;
  const files = await logFilesIn(found.archive);
  const own = (await backupsHere(engine, spec.id)).filter((one) => one.system_identifier === found.systemIdentifier);
  const leading = leadingOn(await archivedSince(serverDirectory), own);
  const first = firstThatFits(files, leading, limitOf(cluster));
  // Recorded before the files are removed: files left by a crash are not part of the window.
  if (spec.archive) await noteArchivedSince(serverDirectory, first?.taken_at ?? new Date().toISOString());
  for (const { name } of files)
    if (first === undefined || orderOf(name) < orderOf(first.wal_file))
      await rm(path.join(found.archive, name), { force: true });
}

interface LogFile {
  name: string;
  bytes: number;
}

function firstThatFits(files: readonly LogFile[], leading: readonly Manifest[], limit: number): Manifest | undefined {
  return leading.find(({ wal_file }) => {
    const kept = files.filter(({ name }) => orderOf(name) >= orderOf(wal_file));
    return kept.reduce((sum, { bytes }) => sum + bytes, 0) <= limit;
  });
}

/** null: there is no archive, or it fits. */
async function largeArchiveOf(
  cluster: Cluster,
  ctx: DriverContext,
): Promise<{ archive: string; systemIdentifier: string } | null> {
  const { serverDirectory } = cluster;
  const systemIdentifier = await systemIdentifierOf(serverDirectory.data).catch(absentIsNull);
  if (systemIdentifier === null) return null;
  const archive = archiveDirectory(serverDirectory, systemIdentifier);
  return ((await bytesBelow(archive, ctx)) ?? 0) > limitOf(cluster) ? { archive, systemIdentifier } : null;
}

async function logFilesIn(archive: string): Promise<LogFile[]> {
  const names = (await readdir(archive).catch(absentIsNull)) ?? [];
  return Promise.all(
    names.filter(isLogFile).map(async (name) => {
      const found = await stat(path.join(archive, name)).catch(absentIsNull);
      return { name, bytes: found?.size ?? 0 };
    }),
  );
}

function limitOf({ engine, spec }: Cluster): number {
  return ARCHIVE_STORAGES * spec.storage_gb * engine.gigabyteBytes;
}
