// What a backup of the installation is made of, and where it lies on this machine.
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../../core/config';
import { replaceFileDurably } from '../../core/files';
import { makeDirectory } from '../../core/directory';
import type { Manifest } from './manifest';

/** Directories of the data directory that are copied as they are; what is left out is made again. */
const COPIED = [
  ...['secret-key', 'volumes', 'databases', 'objects', 'registry', 'mail'],
  ...['runtime/source-uploads', 'runtime/releases'],
];

/** Images of disks, whose files are copied instead; and data of running servers, of which backups are copied. */
const LEFT_OUT = [
  ...['volumes/*/volume.ext4', 'volumes/*/.lock', 'volumes/*/mount/lost+found', 'volumes/.*'],
  ...['databases/*/data', 'databases/*/disk', 'databases/*/disk*.ext4', 'databases/*/next', 'databases/*/run/*'],
  'databases/.*',
];

/** Prepared for a backup: the control database, the settings and the manifest. */
export function pointDirectory({ dataDir }: Pick<Config, 'dataDir'>): string {
  return path.join(backupDirectory({ dataDir }), 'point');
}

/** Of the cache of restic, what is prepared, and the journal. */
export function backupDirectory({ dataDir }: Pick<Config, 'dataDir'>): string {
  return path.join(dataDir, 'backup');
}

export function partsOf({ dataDir }: Pick<Config, 'dataDir'>): { files: string[]; leftOut: string[] } {
  const at = (name: string): string => path.join(dataDir, name);
  return { files: [pointDirectory({ dataDir }), ...COPIED.map(at)], leftOut: LEFT_OUT.map(at) };
}

/** Places of the data directory that a restore fills. */
export const RESTORED = COPIED;

/** The last backup, and its proof. */
export interface BackupJournal {
  /** RFC 3339. */
  started_at: string;
  ended_at: string | null;
  repository: string;
  /** Snapshot of restic; null: it failed. */
  point: string | null;
  files: number;
  bytes: number;
  added_bytes: number;
  notes: string[];
  error: string | null;
  /** The last one that was whole, this one included. */
  last_whole_at: string | null;
  proof: Proof | null;
}

export interface Proof {
  point: string;
  at: string;
  seconds: number;
  /** Null: the point was restored and compared. */
  error: string | null;
  manifest: Pick<Manifest, 'at' | 'counts'> | null;
}

const journalOf = (config: Pick<Config, 'dataDir'>): string => path.join(backupDirectory(config), 'last.json');

/** Null where there has never been a backup. */
export async function readBackupJournal(config: Pick<Config, 'dataDir'>): Promise<BackupJournal | null> {
  try {
    return JSON.parse(await readFile(journalOf(config), 'utf8')) as BackupJournal;
  } catch {
    return null;
  }
}

export async function saveBackupJournal(config: Pick<Config, 'dataDir'>, journal: BackupJournal): Promise<void> {
  makeDirectory(backupDirectory(config), 0o711);
  await replaceFileDurably(journalOf(config), JSON.stringify(journal, null, 2));
}

const HOUR_MS = 3_600_000;

/** One that failed is tried again after an hour. @param now ms since the epoch */
export function isBackupDue(journal: BackupJournal | null, everyHours: number, now: number): boolean {
  if (journal === null) return true;
  const { started_at, ended_at, error, last_whole_at } = journal;
  const isCutOff = ended_at === null;
  if ((error !== null || isCutOff) && now - Date.parse(started_at) < HOUR_MS) return false;
  return last_whole_at === null || now - Date.parse(last_whole_at) >= everyHours * HOUR_MS;
}

/** Whether a directory is there and has something in it. */
export async function isFilled(directory: string): Promise<boolean> {
  return (await readdir(directory).catch(() => [])).length > 0;
}
