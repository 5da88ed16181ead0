// The backups of a server that are known: by the manifests that this host has, and those that the store has.
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { absentIsNull } from '../../../../core/files';
import { DriverError, type DriverContext } from '../../../../core/driver';
import { exists } from '../../../hosted_server/server_directory';
import { importBackups } from '../../../hosted_server/stored_backups';
import { backupsOf, type PostgresqlContext } from '../cluster';

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

/** All whole backups of a server, the oldest first; also those that another host has brought to the store. */
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

/** Those that this host knows. Where they are in a store and none is set, nothing can be done with them. */
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

/** null where there is no whole backup in this directory. */
export async function manifestOf(directory: string): Promise<Manifest | null> {
  const text = await readFile(path.join(directory, 'manifest.json'), 'utf8').catch(absentIsNull);
  return text === null ? null : (JSON.parse(text) as Manifest);
}

/** As the archive has it, not a history of timelines. */
export function isLogFile(file: string): boolean {
  return /^[0-9A-F]{24}(\.[0-9A-F]{8}\.backup|\.partial)?\.gz$/.test(file);
}

/** Place of a file of the log, whatever its timeline. */
export function orderOf(walFile: string): string {
  return walFile.slice(8, 24);
}
