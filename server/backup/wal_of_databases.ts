// The archived log of managed PostgreSQL databases (drivers/database/postgresql/backups), where it lies on this host.
import { copyFile, mkdir, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../../core/config';
import { absentIsNull } from '../../core/files';

/** A file is written before it has its name. */
const NAMED_WITHIN_MS = 600_000;

export interface ArchivedFile {
  file: string;
  changedAt: number;
}

/** Files that were archived since then, in ms since the epoch, and the notes on them that have changed. */
export async function findArchivedFiles(config: Config, since: number): Promise<ArchivedFile[]> {
  // Else they are in the bucket.
  if (config.backupStore !== null) return [];
  const found: ArchivedFile[] = [];
  for (const file of await archivesIn(path.join(config.dataDir, 'databases'))) {
    const changedAt = (await stat(file).catch(absentIsNull))?.mtimeMs ?? 0;
    if (changedAt >= since - NAMED_WITHIN_MS) found.push({ file, changedAt });
  }
  return found;
}

async function archivesIn(root: string): Promise<string[]> {
  const found: string[] = [];
  for (const server of await namesIn(root)) {
    const systems = await namesIn(path.join(root, server, 'archive'));
    for (const system of systems)
      for (const name of await namesIn(path.join(root, server, 'archive', system)))
        if (name.endsWith('.gz')) found.push(path.join(root, server, 'archive', system, name));
    if (!systems.length) continue;
    for (const name of await namesIn(path.join(root, server)))
      if (name.endsWith('.json')) found.push(path.join(root, server, name));
  }
  return found;
}

/** Adds them to the databases that a backup had; one that has come since has no backup to lead on from. */
export async function addArchives(from: string, config: Config): Promise<void> {
  const [source, target] = [path.join(from, 'databases'), path.join(config.dataDir, 'databases')];
  for (const file of await archivesIn(source)) {
    const place = path.relative(source, file);
    const server = path.join(target, place.split(path.sep)[0] as string);
    if ((await stat(server).catch(absentIsNull)) === null) continue;
    await mkdir(path.dirname(path.join(target, place)), { recursive: true, mode: 0o700 });
    await copyFile(file, path.join(target, place));
  }
}

/** Empty where there is none, or it is a file. */
async function namesIn(directory: string): Promise<string[]> {
  return (await readdir(directory).catch(() => [] as string[])).sort();
}
