// The log that leads on from a restored backup: fetched, and replayed into what the backup had.
import { existsSync } from 'node:fs';
import { chmod, mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../../core/config';
import { missingFiles } from './missing_files';
import { recoverControlDatabase } from './recover';
import { addArchives } from './wal_of_databases';
import type { WalRepository } from './wal_repository';

interface RestoredLog {
  config: Config;
  wal: WalRepository;
  /** Of the restore: its files are there. */
  staging: string;
  /** Has the copied control database. */
  prepared: string;
  /** Of the machine that made the backup. */
  dataDir: string;
  /** Snapshot of the log; RFC 3339: to when rows are recovered, and when the files were copied. */
  of: { log: string; rowsAt: string; filesAt: string };
}

export const recoveryDirectory = (staging: string): string => path.join(staging, 'recovery');

/** May be called again after it was cut off. @returns what the operator has to know */
export async function recoverRestored(restored: RestoredLog): Promise<string[]> {
  const { config, wal, staging, prepared, dataDir, of } = restored;
  const fetched = path.join(staging, 'log');
  // PostgreSQL runs in it, as another user.
  await chmod(staging, 0o711);
  if (!existsSync(fetched)) {
    await rm(`${fetched}.new`, { recursive: true, force: true });
    await wal.restore(of.log, `${fetched}.new`);
    await rename(`${fetched}.new`, fetched);
  }
  const root = path.join(fetched, dataDir);
  await addArchives(root, config);
  const directory = recoveryDirectory(staging);
  const log = path.join(directory, 'log');
  await mkdir(directory, { recursive: true, mode: 0o711 });
  const segments = path.join(root, 'backup/wal');
  if (existsSync(segments)) await rename(segments, log);
  return recoverControlDatabase(
    {
      ...{ config, directory, log, moment: of.rowsAt },
      prepared: { data: path.join(prepared, 'control'), password: path.join(prepared, 'password') },
    },
    (session) => missingFiles(config, session, of),
  );
}
