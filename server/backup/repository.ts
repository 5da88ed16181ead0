// The repository of backups of the installation, by restic: encryption, chunks, verification and pruning are its work.
import { accessSync, constants } from 'node:fs';
import type { Config } from '../../core/config';
import { CommandError } from '../command_error';
import { makeBackupDirectory } from './place';
import { runRestic, runUnlocked, type Chosen, type End } from './restic';
import { failure, isMissing, isSpoiled, hidePassword } from './restic_failure';

const TAG = 'platform';
const KEPT_ALWAYS = 3;
/** Some files could not be read: they went while it was reading. */
export const PARTLY_READ = 3;

/** A backup in the repository. */
export interface Point {
  id: string;
  /** RFC 3339. */
  at: string;
  hostname: string;
}

export interface Saved {
  id: string;
  files: number;
  /** Of all files, and what of it was not in the repository. */
  bytes: number;
  addedBytes: number;
  /** Files that went, or could not be read. */
  unread: string[];
}

export interface Repository {
  readonly address: string;
  /** The journal has its backups, with the sentence of one that failed, and the write-ahead log leads on from them. */
  readonly isJournaled: boolean;
  /** Makes it where there is none. */
  ensure(): Promise<void>;
  /** @param signal ends it: there is no backup then */
  save(files: readonly string[], exclude: readonly string[], signal: AbortSignal): Promise<Saved>;
  /** Oldest first. */
  points(): Promise<Point[]>;
  /** Of its files, as they are restored. */
  bytesOf(point: string): Promise<number>;
  /** Content of one file of a point. */
  read(point: string, file: string): Promise<string>;
  /** Writes the files of a point, or those below `only`, to `target`, below their old absolute paths. */
  restore(point: string, target: string, only?: readonly string[]): Promise<void>;
  /** Removes older points, and data that nothing needs. */
  prune(keepDays: number): Promise<void>;
  /** Reads a share of the data and compares them with their checksums. @param percent 1 to 100 */
  verify(percent: number): Promise<void>;
}

/** @throws CommandError where settings are missing, or the passphrase cannot be read */
export function openBackupRepository(config: Config): Repository {
  return repositoryOf(chosenRepository(config));
}

/** @throws CommandError as openBackupRepository */
export function chosenRepository(config: Config): Chosen {
  const { resticRepository: repository, resticPasswordFile: passwordFile, dataDir, backupStalledSeconds } = config;
  if (repository === null) throw new CommandError('RESTIC_REPOSITORY is not set: it says where backups are kept');
  if (passwordFile === null)
    throw new CommandError('RESTIC_PASSWORD_FILE is not set: it has the passphrase of RESTIC_REPOSITORY');
  try {
    accessSync(passwordFile, constants.R_OK);
  } catch {
    throw new CommandError(`the passphrase of the backups cannot be read: ${passwordFile} (RESTIC_PASSWORD_FILE)`);
  }
  makeBackupDirectory({ dataDir });
  return { dataDir, repository, passwordFile, backupStalledSeconds };
}

function repositoryOf(chosen: Chosen): Repository {
  const restic = (...words: string[]): Promise<string> => runUnlocked(chosen, words).then(({ out }) => out);
  return {
    address: hidePassword(chosen.repository),
    isJournaled: true,
    ensure: () => ensureRepository(chosen),
    async save(files, exclude, signal) {
      const words = ['backup', '--json', '--tag', TAG, ...exclude.map((one) => `--exclude=${one}`), ...files];
      return savedOf(chosen, await runUnlocked(chosen, words, [0, PARTLY_READ], signal));
    },
    async points() {
      const { out, err } = await runUnlocked(chosen, ['snapshots', '--json', '--tag', TAG]);
      const found = (JSON.parse(out) ?? []) as Record<string, string>[];
      // One that cannot be read is left out of the list.
      if (found.length === 0 && isSpoiled(err)) throw failure(chosen, err);
      return found.map(({ id = '', time = '', hostname = '' }) => ({ id, at: time, hostname }));
    },
    async bytesOf(point) {
      return (JSON.parse(await restic('stats', '--json', '--mode', 'restore-size', point)) as { total_size: number })
        .total_size;
    },
    read: (point, file) => restic('dump', point, file),
    async restore(point, target, only = []) {
      await restic('restore', point, '--target', target, ...only.map((one) => `--include=${one}`));
    },
    async prune(days) {
      // A clock that was a year ahead for a day must not make all others too old.
      const kept = ['--keep-last', String(KEPT_ALWAYS), '--keep-within', '2d', '--keep-within-daily', `${days}d`];
      await restic('forget', '--tag', TAG, '--group-by', 'tags', ...kept, '--prune');
    },
    async verify(percent) {
      await restic('check', `--read-data-subset=${percent}%`);
    },
  };
}

/** Makes it where there is none. */
export async function ensureRepository(chosen: Chosen): Promise<void> {
  // Without a lock: that of a killed run would be in the way.
  const found = await runRestic(chosen, ['cat', 'config', '--no-lock']);
  if (found.code === 0) return;
  if (!isMissing(found.err)) throw failure(chosen, found.err);
  await runUnlocked(chosen, ['init']);
}

export function savedOf(chosen: Chosen, { out, err }: End): Saved {
  const lines = [...out.split('\n'), ...err.split('\n')].flatMap(parsed);
  const summary = lines.find(({ message_type }) => message_type === 'summary');
  if (summary === undefined) throw failure(chosen, err);
  const unread = lines.flatMap(({ message_type, item }) => (message_type === 'error' ? [String(item)] : []));
  return {
    ...{ id: String(summary.snapshot_id), files: Number(summary.total_files_processed), unread },
    ...{ bytes: Number(summary.total_bytes_processed), addedBytes: Number(summary.data_added) },
  };
}

function parsed(line: string): Record<string, unknown>[] {
  try {
    return line.startsWith('{') ? [JSON.parse(line) as Record<string, unknown>] : [];
  } catch {
    return [];
  }
}
