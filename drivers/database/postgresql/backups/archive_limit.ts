// The archive of a server lies outside of its disk, on that of all: it has a limit of its own, several times the
// storage. Beyond it the window of points in time becomes shorter. Backups that it no longer begins with are restored
// as before: they have the log that they need with them.
import { readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { DriverContext } from '../../../../core/driver';
import { absentIsNull } from '../../../../core/files';
import { archivedSince, leadingOn, noteArchivedSince } from './archiving';
import { archiveDirectory, systemIdentifierOf, type Cluster } from '../cluster';
import { backupsHere, isLogFile, orderOf, type Manifest } from './known_backups';
import { bytesBelow } from '../storage';

/** In storages of the server. */
const ARCHIVE_STORAGES = 8;

/** Whether `shortenArchive` has something to do. */
export async function isArchiveTooLarge(cluster: Cluster, ctx: DriverContext): Promise<boolean> {
  return (await largeArchiveOf(cluster, ctx)) !== null;
}

/**
 * Keeps what fits: the log from the oldest backup on whose log does. Where that of no backup does, nothing, and the
 * window begins anew with the next one. Repeatable.
 */
export async function shortenArchive(cluster: Cluster, ctx: DriverContext): Promise<void> {
  const found = await largeArchiveOf(cluster, ctx);
  if (found === null) return;
  const { engine, serverDirectory, spec } = cluster;
  const files = await logFilesIn(found.archive);
  const own = (await backupsHere(engine, spec.id)).filter((one) => one.system_identifier === found.systemIdentifier);
  const leading = leadingOn(await archivedSince(serverDirectory), own);
  const first = firstThatFits(files, leading, limitOf(cluster));
  // Before the files go: what a crash leaves of them is no part of the window.
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

/** null: there is none, or it fits. */
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
