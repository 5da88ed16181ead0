// Known backups of a server: from the manifests on this host, and from those in the store.
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { absentIsNull } from '../../../../core/files';
import { DriverError, type DriverContext } from '../../../../core/driver';
import { exists } from '../../../hosted_server/server_directory';
import { importBackups } from '../../../hosted_server/stored_backups';
import { backupsOf, type PostgresqlContext } from '../cluster';

/** `wal_file`: the first WAL file needed by a recovery. `taken_at`: the earliest time that can be restored. */
export interface Manifest {
  id: string;
  version: string;
  system_identifier: string;
  timeline: number;
  wal_file: string;
  taken_at: string;
  database_name: string;
  size_bytes: number;
  /** Transactions before the base was made: the same after the dump if nothing was written meanwhile. */
  snapshot?: string;
  /** Nothing was written while the backup was made, so that its two parts are equal. */
  is_quiet?: 1;
  /** pending: it is made after the base. failed: there is none, and `dump_reason` says why. Absent: it is there. */
  dump?: 'pending' | 'failed';
  dump_reason?: string;
}

/** All complete backups of a server, oldest first, including those uploaded by other hosts. */
export async function backupsFound(
  engine: PostgresqlContext,
  serverId: string,
  ctx: DriverContext,
): Promise<Manifest[]> {
  if (engine.store && !engine.imported.has(serverId)) {
    await importBackups(engine, serverId, ctx);
    engine.imported.add(serverId);
  }
  return backupsHere(engine, serverId);
}

/** Backups known to this host. Backups in a store are unusable while no store is configured. */
export async function backupsHere(engine: PostgresqlContext, serverId: string): Promise<Manifest[]> {
  const directory = backupsOf(engine, serverId);
  const names = (await readdir(directory).catch(absentIsNull)) ?? [];
  const found = await Promise.all(
    names
      .filter((one) => !one.startsWith('.'))
      .map(async (one) => {
        const isThere = engine.store || (await exists(path.join(directory, one, 'base', 'base.tar.gz')));
        return isThere ? manifestOf(path.join(directory, one)) : null;
      }),
  );
  return found.filter((one) => one !== null).sort((a, b) => (a.taken_at < b.taken_at ? -1 : 1));
}

export function backupMissing(): DriverError {
  return new DriverError('conflict', 'There is no such backup.');
}

/** null where the directory has no complete backup. */
export async function manifestOf(directory: string): Promise<Manifest | null> {
  const text = await readFile(path.join(directory, 'manifest.json'), 'utf8').catch(absentIsNull);
  return text === null ? null : (JSON.parse(text) as Manifest);
}

/** A WAL file with its name in the archive, not a timeline history. */
export function isLogFile(file: string): boolean {
  return /^[0-9A-F]{24}(\.[0-9A-F]{8}\.backup|\.partial)?\.gz$/.test(file);
}

/** Sort key of a WAL file, independent of its timeline. */
export function orderOf(walFile: string): string {
  return walFile.slice(8, 24);
}
