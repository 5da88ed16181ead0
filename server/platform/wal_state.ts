// What this machine knows of the write-ahead log that it brings to the repository: files of the data directory.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../../core/config';
import { makePassableDirectory } from '../../core/directory';
import { replaceFileDurably } from '../../core/files';
import { backupDirectory } from './backup_journal';

type Place = Pick<Config, 'dataDir'>;

/** The backup that the log leads on from. */
export interface WalStart {
  /** Snapshot of restic. */
  point: string;
  /** RFC 3339: when its files were read. */
  at: string;
  /** The first segment that its recovery needs. */
  segment: string;
}

export interface WalPush {
  point: string;
  snapshot: string;
  /** RFC 3339: rows up to then are in the repository. */
  until: string;
  /** RFC 3339: nothing was written between `until` and then. */
  checked_at: string;
  /** The transaction that would have been next; the same again: nothing was written. */
  next_transaction: string;
  /** Digest of the names of files of managed databases. */
  archived: string;
  /** Where the log ended, as `0/16B3748`. */
  lsn: string;
  added_bytes: number;
}

/** Segments since the backup, and notes. */
export const walDirectory = (config: Place): string => path.join(backupDirectory(config), 'wal');
const startFile = (config: Place): string => path.join(backupDirectory(config), 'wal-start.json');
const pushFile = (config: Place): string => path.join(backupDirectory(config), 'wal-pushed.json');

/** Null: no backup leads on. */
export const readWalStart = (config: Place): WalStart | null => read<WalStart>(startFile(config));
/** Null: the log has a gap, and the next backup begins anew. */
export const saveWalStart = (config: Place, start: WalStart | null): Promise<void> => save(startFile(config), start);
export const readWalPush = (config: Place): WalPush | null => read<WalPush>(pushFile(config));
export const saveWalPush = (config: Place, push: WalPush | null): Promise<void> => save(pushFile(config), push);

/** Of 16 MiB. From then on, a new backup is smaller than the log, and quicker to restore. */
const SEGMENTS_MAX = 128;

/** Whether the log does not lead on from the last backup, or has become long, so that a new one is due. */
export function needsNewPoint(config: Place): boolean {
  if (!existsSync(startFile(config))) return false;
  if (readWalStart(config) === null) return true;
  return existsSync(walDirectory(config)) && readdirSync(walDirectory(config)).length > SEGMENTS_MAX;
}

function read<T>(file: string): T | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T;
  } catch {
    return null;
  }
}

function save(file: string, value: object | null): Promise<void> {
  makePassableDirectory(path.dirname(file));
  return replaceFileDurably(file, JSON.stringify(value));
}
