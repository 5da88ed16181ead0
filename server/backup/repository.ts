// The repository of backups of the installation, by restic: encryption, chunks, verification and pruning are its work.
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { setPriority } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../core/config';
import { commandEnvironment } from '../../core/process/command';
import { CommandError } from '../command_error';
import { backupDirectory } from '../platform/backup_journal';
import { makeBackupDirectory } from './place';

const TAG = 'platform';
/** Variables by which restic reads credentials of its backends (manual, "Environment Variables"). */
const OF_BACKENDS = /^(?:AWS_|B2_|AZURE_|GOOGLE_|OS_|ST_|RCLONE_|RESTIC_REST_|SSH_AUTH_SOCK$|HOME$|TMPDIR$)/;
const LOCKED = /already locked/;
const LOCKED_WITHIN_MS = 5 * 60_000;
const LOCKED_POLL_MS = 1_000;
const LOW_PRIORITY = 15;
const KEPT_ALWAYS = 3;
const MISSING = /unable to open config file|Is there a repository/;
/** Bytes of the repository are not what restic wrote: their checksums or their structure do not agree. */
const SPOILED = new RegExp(
  [
    ...['ciphertext verification failed', 'invalid data returned', 'hash mismatch', 'does not match (?:id|hash)'],
    ...['Unmarshal', 'is damaged', 'wrong hash', 'LoadIndex returned errors', 'repository contains errors'],
    ...['blob not found', 'invalid header length'],
  ].join('|'),
);
/** Says how many errors there were, and not which. */
const COUNTED = /There were \d+ errors|returned errors|contains errors/;
const FAULT = /error|fail|invalid|mismatch|does not match|damaged/i;
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
  /** Makes it where there is none. */
  ensure(): Promise<void>;
  save(files: readonly string[], exclude: readonly string[]): Promise<Saved>;
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

export type Chosen = Pick<Config, 'dataDir'> & { repository: string; passwordFile: string };

/** @throws CommandError where settings are missing, or the passphrase cannot be read */
export function openBackupRepository(config: Config): Repository {
  return repositoryOf(chosenRepository(config));
}

/** @throws CommandError as openBackupRepository */
export function chosenRepository(config: Config): Chosen {
  const { resticRepository: repository, resticPasswordFile: passwordFile, dataDir } = config;
  if (repository === null) throw new CommandError('RESTIC_REPOSITORY is not set: it says where backups are kept');
  if (passwordFile === null)
    throw new CommandError('RESTIC_PASSWORD_FILE is not set: it has the passphrase of RESTIC_REPOSITORY');
  try {
    accessSync(passwordFile, constants.R_OK);
  } catch {
    throw new CommandError(`the passphrase of the backups cannot be read: ${passwordFile} (RESTIC_PASSWORD_FILE)`);
  }
  makeBackupDirectory({ dataDir });
  return { dataDir, repository, passwordFile };
}

function repositoryOf(chosen: Chosen): Repository {
  const restic = (...words: string[]): Promise<string> => runUnlocked(chosen, words).then(({ out }) => out);
  return {
    address: withoutPassword(chosen.repository),
    ensure: () => ensureRepository(chosen),
    async save(files, exclude) {
      const words = ['backup', '--json', '--tag', TAG, ...exclude.map((one) => `--exclude=${one}`), ...files];
      return savedOf(chosen, await runUnlocked(chosen, words, [0, PARTLY_READ]));
    },
    async points() {
      const { out, err } = await runUnlocked(chosen, ['snapshots', '--json', '--tag', TAG]);
      const found = (JSON.parse(out) ?? []) as Record<string, string>[];
      // One that cannot be read is left out of the list.
      if (found.length === 0 && SPOILED.test(err)) throw failure(chosen, err);
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
  if (!isMissing(found)) throw failure(chosen, found.err);
  await runUnlocked(chosen, ['init']);
}

/** Whether restic has found no repository there. */
export function isMissing({ err }: End): boolean {
  return MISSING.test(err);
}

export interface End {
  code: number | null;
  out: string;
  err: string;
}

/**
 * A lock that a killed run has left is taken away, and only such a one. That of a run whose parent was killed, and that
 * goes on to its end, is waited for.
 * @throws CommandError
 */
export async function runUnlocked(chosen: Chosen, words: string[], wanted: readonly number[] = [0]): Promise<End> {
  const until = Date.now() + LOCKED_WITHIN_MS;
  let end = await runRestic(chosen, words);
  while (end.code !== 0 && LOCKED.test(end.err) && Date.now() < until) {
    await sleep(LOCKED_POLL_MS);
    await runRestic(chosen, ['unlock']);
    end = await runRestic(chosen, words);
  }
  if (!wanted.includes(end.code ?? -1)) throw failure(chosen, end.err);
  return end;
}

export function runRestic({ dataDir, repository, passwordFile }: Chosen, words: string[]): Promise<End> {
  const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => OF_BACKENDS.test(name)));
  const env = {
    ...{ ...own, ...commandEnvironment, RESTIC_REPOSITORY: repository, RESTIC_PASSWORD_FILE: passwordFile },
    RESTIC_CACHE_DIR: path.join(backupDirectory({ dataDir }), 'cache'),
  };
  return new Promise((resolve, reject) => {
    const child = spawn('restic', words, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let [out, err] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (err = (err + chunk.toString()).slice(-100_000)));
    child.on('spawn', () => setPriority(child.pid as number, LOW_PRIORITY));
    child.on('error', () => reject(new CommandError('restic is not installed: apt-get install restic')));
    child.on('close', (code) => resolve({ code, out, err }));
  });
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

/** What restic says, as one sentence for the operator. */
export function failure({ repository, passwordFile }: Chosen, err: string): CommandError {
  const address = withoutPassword(repository);
  if (/wrong password|no key found/.test(err))
    return new CommandError(`the passphrase in ${passwordFile} does not open the repository ${address}`);
  if (/no space left|disk quota/i.test(err))
    return new CommandError(`the disk of the repository ${address} is full: make room there`);
  if (MISSING.test(err))
    return new CommandError(
      `there is no repository of restic in ${address}: mount its disk, or begin anew with \`restic init\``,
    );
  const lines = err.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('{'));
  const fatal = lines.find((line) => line.startsWith('Fatal:') && !COUNTED.test(line));
  const reason = (fatal ?? lines.find((line) => FAULT.test(line)) ?? lines.at(-1) ?? 'it has said nothing').trim();
  const said = reason.replace(/^(?:Fatal|error|ignoring error for \S+): /, '');
  if (!SPOILED.test(err)) return new CommandError(`restic with ${address}: ${said}`);
  return new CommandError(
    `the repository ${address} is spoiled (${said}): keep it, name another RESTIC_REPOSITORY for new backups, and ` +
      'see what is lost with `restic check --read-data`',
  );
}

/** `rest:https://user:password@host/` may have one. */
function withoutPassword(repository: string): string {
  return repository.replace(/(\/\/[^/:@]+):[^/@]+@/, '$1:…@');
}
