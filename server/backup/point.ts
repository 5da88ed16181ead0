// Makes a backup of the installation while it runs: first of the control database, then of the files that its rows
// name. No file is taken away meanwhile that a row of before may need (models/base/installation_backup.ts).
import { mkdir, readdir, readFile, rm, writeFile, copyFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../core/config';
import { isDiskFull } from '../../core/driver';
import { CLAIM_BACKUP, HOLD_FILES } from '../../models/base/installation_backup';
import { backUpAllDatabases, countUnfinishedBackups } from '../../models/databases/database_backup/job_queries';
import { version } from '../../package.json';
import { CommandError } from '../command_error';
import { readBackupJournal, saveBackupJournal, type BackupJournal } from '../platform/backup_journal';
import { readSuccessor, takenOverText } from '../platform/installation_owner';
import type { Platform } from '../platform/platform';
import { openSession, type OwnSession } from '../platform/session';
import { settingsFileOf } from '../setup/settings_file';
import { copyControlDatabase } from '../upgrade/control_backup';
import { MANIFEST, takeStock, type Manifest } from './manifest';
import { partsOfInstallation, pointDirectory } from './place';
import { claimRepository } from './owner';
import { journaledPoints } from './points';
import type { Point, Repository } from './repository';
import { isWalKept, pushWal } from './wal';
import { openWalRepository } from './wal_repository';
import { forgetOldWal } from './wal_retention';
import { saveWalStart } from '../platform/wal_state';

const BEGIN_WITHIN_MS = 20_000;
const DATABASES_WITHIN_MS = 30 * 60_000;
const POLL_MS = 500;
/** Files that are named in the journal, of those that could not be read. */
const NAMED = 3;

export const SETTINGS_COPY = 'settings.env';

interface Wanted {
  repository: Repository;
  print(line: string): void;
  /** What a final backup stops. No other backup is being made. */
  begun?(): Promise<void>;
  /** The same. The databases of projects are backed up, for which the service has to run. */
  beforeFiles?(): Promise<void>;
}

/** @throws CommandError */
export async function makePoint(platform: Platform, wanted: Wanted): Promise<BackupJournal> {
  const { repository } = wanted;
  const { isJournaled } = repository;
  const { config } = platform;
  const save = async (): Promise<void> => (isJournaled ? saveBackupJournal(config, journal) : undefined);
  const before = await readBackupJournal(config);
  const journal: BackupJournal = {
    ...{ started_at: new Date().toISOString(), ended_at: null, repository: repository.address, point: null },
    ...{ files: 0, bytes: 0, added_bytes: 0, notes: [], error: null },
    ...{ last_whole_at: before?.last_whole_at ?? null, proof: before?.proof ?? null },
    ...{ last_whole_in: before?.last_whole_in, points: before?.points },
  };
  const session = await openSession(platform.databaseUrl);
  const locksLost = new AbortController();
  void session.ended.then(() => locksLost.abort());
  // What is prepared and the journal are those of the backup that holds the lock.
  await begin(session).catch(async (error: unknown) => {
    await session.close();
    throw error;
  });
  try {
    await save();
    // Where there was a backup, a repository that is not there is a disk that is not mounted.
    await (isJournaled && before?.last_whole_in === repository.address ? repository.points() : repository.ensure());
    if (isJournaled) await requireOwner(config);
    await wanted.begun?.();
    await fill({ ...wanted, platform, session, locksLost: locksLost.signal, journal });
    journal.last_whole_at = journal.started_at;
    journal.last_whole_in = repository.address;
  } catch (error) {
    const failure = locksLost.signal.aborted ? databaseLost() : isDiskFull(error) ? fullDisk(config) : error;
    journal.error = (failure as Error).message;
    throw failure;
  } finally {
    await session.close();
    await rm(pointDirectory(config), { recursive: true, force: true });
    journal.ended_at = new Date().toISOString();
    await save();
  }
  return journal;
}

function fullDisk({ dataDir }: Config): CommandError {
  return new CommandError(
    `the disk of ${dataDir} is full: a backup begins with a copy of the control database there. Make room`,
  );
}

function databaseLost(): CommandError {
  return new CommandError(
    'the control database was restarted or ended the connection, and files may have been removed since: try again',
  );
}

interface Work extends Wanted {
  platform: Platform;
  session: OwnSession;
  /** The session has ended, and with it the locks that it held. */
  locksLost: AbortSignal;
  journal: BackupJournal;
}

async function fill({ platform, repository, session, locksLost, journal, print, beforeFiles }: Work): Promise<void> {
  const { config } = platform;
  print('backing up the databases of projects …');
  const late = await backUpDatabases(platform);
  if (late) journal.notes.push(`${late} backups of databases had not ended: the ones before them are in this backup.`);
  await beforeFiles?.();
  print('backing up the control database …');
  const isLed = repository.isJournaled && config.databaseUrl === null && (await isWalKept(session));
  await prepare(config, await takeStock(config, session));
  const segment = isLed ? await startSegmentOf(path.join(pointDirectory(config), 'control')) : null;
  const at = new Date().toISOString();
  print(`copying files to ${repository.address} …`);
  const { files, leftOut } = partsOfInstallation(config);
  const saved = await repository.save(files, leftOut, locksLost);
  const { unread } = saved;
  const lost = unread.filter((file) => !files.includes(file));
  if (lost.length)
    journal.notes.push(`${lost.length} files went while they were read, such as ${lost.slice(0, NAMED).join(', ')}.`);
  Object.assign(journal, { point: saved.id, files: saved.files, bytes: saved.bytes, added_bytes: saved.addedBytes });
  if (segment !== null) await saveWalStart(config, { point: saved.id, at, segment });
  await repository.prune(config.backupKeepDays);
  const points = await repository.points();
  const known = {
    id: saved.id,
    at,
    version,
    files: saved.files,
    bytes: saved.bytes,
    proven_at: null,
    proof_error: null,
  };
  journal.points = journaledPoints(points, [known, ...(journal.points ?? [])]);
  await leadOn(config, session, points).catch(({ message }: Error) => {
    journal.notes.push(`What is written after it could not be added: ${message}`);
  });
}

/** @throws CommandError */
async function begin(session: OwnSession): Promise<void> {
  if (!(await holds(session, CLAIM_BACKUP)))
    throw new CommandError('another backup of this installation is being made');
  for (const end = Date.now() + BEGIN_WITHIN_MS; !(await holds(session, HOLD_FILES)); await sleep(POLL_MS))
    if (Date.now() > end) throw new CommandError('files have been taken away for too long: try again');
}

async function holds(session: OwnSession, lock: string): Promise<boolean> {
  return (await session.query<{ held: boolean }>(lock))[0]?.held ?? false;
}

/** @returns how many have not ended in time */
async function backUpDatabases({ config, database }: Platform): Promise<number> {
  // Else they are in the bucket, with the logs that lead on; or a final backup that was cut off has made them.
  if (config.backupStore !== null || readSuccessor(config) !== null) return 0;
  await database.transaction((sql) => backUpAllDatabases(sql));
  const end = Date.now() + DATABASES_WITHIN_MS;
  for (;;) {
    const left = await countUnfinishedBackups(database);
    if (left === 0 || Date.now() > end) return left;
    await sleep(POLL_MS);
  }
}

/** The log of after the backup is in the repository, and that of backups that are there no more is not. */
async function leadOn(config: Config, session: OwnSession, points: readonly Point[]): Promise<void> {
  const log = openWalRepository(config);
  await pushWal(config, session, log);
  await forgetOldWal(log, points);
  await log.prune();
}

/** @throws CommandError */
async function requireOwner(config: Config): Promise<void> {
  const successor = await claimRepository(config, openWalRepository(config));
  if (successor !== null) throw new CommandError(takenOverText(successor));
}

/** The segment of the log from which the recovery of a copied database starts. */
async function startSegmentOf(control: string): Promise<string | null> {
  const [data] = (await readdir(control)).filter((name) => /^data-\d+$/.test(name));
  if (data === undefined) return null;
  const label = await readFile(path.join(control, data, 'backup_label'), 'utf8');
  return /^START WAL LOCATION: \S+ \(file ([0-9A-F]{24})\)/m.exec(label)?.[1] ?? null;
}

async function prepare(config: Config, manifest: Manifest): Promise<void> {
  const directory = pointDirectory(config);
  await rm(directory, { recursive: true, force: true });
  await mkdir(path.join(directory, 'control'), { recursive: true, mode: 0o700 });
  const missing = await copyControlDatabase(config, path.join(directory, 'control'));
  if (missing !== null) throw new CommandError(missing);
  if (config.databaseUrl === null)
    await copyFile(path.join(config.dataDir, 'postgres/password'), path.join(directory, 'password'));
  const settings = settingsFileOf();
  if (settings !== null) await copyFile(settings, path.join(directory, SETTINGS_COPY));
  await writeFile(path.join(directory, MANIFEST), JSON.stringify(manifest, null, 2), { mode: 0o600 });
}
