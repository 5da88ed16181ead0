// The journal of backups of the installation: a file of the data directory.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../../core/config';
import { replaceFileDurably } from '../../core/files';

/** Of the journal, the cache of restic, and what is prepared for a backup. */
export function backupDirectory({ dataDir }: Pick<Config, 'dataDir'>): string {
  return path.join(dataDir, 'backup');
}

/** Variable of the environment of a command that the service starts by itself. Not a setting: nobody else sets it. */
export const STARTED_BY_SERVICE = 'STARTED_BY_SERVICE';

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
  /** Its repository; undefined in journals of 1.0.0. */
  last_whole_in?: string | undefined;
  proof: Proof | null;
  /** Of the repository, the newest first; undefined in journals of 1.0.0. */
  points?: JournaledPoint[] | undefined;
}

/** A backup that the repository had when the journal was written. What another machine has made is not known. */
export interface JournaledPoint {
  /** Snapshot of restic. */
  id: string;
  /** RFC 3339. */
  at: string;
  /** Of the release that made it. */
  version: string | null;
  files: number | null;
  bytes: number | null;
  /** When it was last restored aside, and why it was of no use then. */
  proven_at: string | null;
  proof_error: string | null;
}

export interface Proof {
  point: string;
  at: string;
  seconds: number;
  /** Null: the point was restored and compared. */
  error: string | null;
  /** Of the backup: when it was made, and its rows by table. */
  manifest: { at: string; counts: Record<string, number> } | null;
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
  await replaceFileDurably(journalOf(config), JSON.stringify(journal, null, 2));
}

const HOUR_MS = 3_600_000;
const AGAIN_MS = 5 * 60_000;
/** By which the clock may be set back without one being made again. */
const CLOCK_STEP_MS = 60_000;

/**
 * One that failed is tried again after an hour. What is of later than now was made when the clock was ahead, and counts
 * for nothing.
 * @param now ms since the epoch
 * @param isNeeded whether what is written meanwhile does not lead on from the last one
 */
export function isBackupDue(journal: BackupJournal | null, everyHours: number, now: number, isNeeded = false): boolean {
  if (journal === null) return true;
  const { started_at, ended_at, error, last_whole_at } = journal;
  const isCutOff = ended_at === null;
  if ((error !== null || isCutOff) && isWithin(started_at, now, HOUR_MS)) return false;
  if (isNeeded && !isWithin(started_at, now, AGAIN_MS)) return true;
  return last_whole_at === null || !isWithin(last_whole_at, now, everyHours * HOUR_MS);
}

function isWithin(moment: string, now: number, ms: number): boolean {
  const age = now - Date.parse(moment);
  return age >= -CLOCK_STEP_MS && age < ms;
}
