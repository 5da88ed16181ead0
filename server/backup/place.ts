// What a backup of the installation is made of, and where it lies on this machine.
import path from 'node:path';
import type { Config } from '../../core/config';
import { makePassableDirectory } from '../../core/directory';
import { backupDirectory } from '../platform/backup_journal';

/** Directories and files of the data directory that are copied as they are; what is left out is made again. */
const COPIED = [
  ...['secret-key', 'volumes', 'volume-backups', 'databases', 'objects', 'registry', 'mail'],
  ...['runtime/source-uploads', 'runtime/releases', 'runtime/directory-id'],
];

/** Images of disks, whose files are copied instead; and data of running servers, of which backups are copied. */
const LEFT_OUT = [
  ...['volumes/*/*.ext4', 'volumes/*/.lock', 'volumes/*/mount/lost+found', 'volumes/.*'],
  // Of backups and restores that are under way.
  ...['volumes/*/snapshot', 'volumes/*/next', 'volumes/*/data.next', 'volumes/*/data.before', 'volume-backups/*/.*'],
  ...['databases/*/data', 'databases/*/disk', 'databases/*/disk*.ext4', 'databases/*/next', 'databases/*/run/*'],
  // Servers of proofs.
  ...['databases/prf_*', 'databases/.*'],
];

/** Prepared for a backup: the control database, the settings and the manifest. */
export function pointDirectory({ dataDir }: Pick<Config, 'dataDir'>): string {
  return path.join(backupDirectory({ dataDir }), 'point');
}

export function partsOfInstallation({ dataDir }: Pick<Config, 'dataDir'>): { files: string[]; leftOut: string[] } {
  const at = (name: string): string => path.join(dataDir, name);
  return { files: [pointDirectory({ dataDir }), ...COPIED.map(at)], leftOut: LEFT_OUT.map(at) };
}

/** Makes the directory of backups. The proof starts PostgreSQL in it, as another user. */
export function makeBackupDirectory({ dataDir }: Pick<Config, 'dataDir'>): void {
  makePassableDirectory(dataDir);
  makePassableDirectory(backupDirectory({ dataDir }));
}

/** Places of the data directory that a restore fills. */
export const RESTORED = COPIED;
