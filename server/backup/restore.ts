// Restores a backup of the installation to an empty machine. Steps that were done are known by the journal, so a
// restore that was killed goes on when it is called again.
import { existsSync, readdirSync } from 'node:fs';
import { chmod, copyFile, mkdir, readFile, rename, rm, statfs } from 'node:fs/promises';
import path from 'node:path';
import semver from 'semver';
import type { Config } from '../../core/config';
import { hasEntries, makeDirectory, makePassableDirectory } from '../../core/directory';
import { driverContext, DriverError } from '../../core/driver';
import { replaceFileDurably } from '../../core/files';
import { gibibytesText } from '../../core/sentence';
import { run } from '../../core/process/command';
import { runSteps, type DeclaredStep } from '../../core/steps';
import { fileStoreAddress } from '../../drivers/file_store/open';
import { claimUserIds } from '../../drivers/runtime/sandbox/user_ids';
import { placeVolumeFiles } from '../../drivers/volume/restored';
import { gigabyteBytes } from '../../drivers/volume';
import { version } from '../../package.json';
import { CommandError } from '../command_error';
import { engineUser, type EngineUser } from '../platform/embedded/engine_user';
import { findRestoredRoot, MANIFEST, type Manifest } from './manifest';
import { waysOf, wayTo } from './moments';
import { RESTORED } from './place';
import { SETTINGS_COPY } from './point';
import { takeOver } from './owner';
import { recoverRestored, recoveryDirectory } from './restored_log';
import type { Repository } from './repository';
import type { WalRepository } from './wal_repository';

const VOLUME_WITHIN_MS = 6 * 3_600_000;
const SETTINGS_OF_BEFORE = 'settings-of-before.env';
const COPY_WITHIN_MS = 24 * 3_600_000;
const CHOWN_WITHIN_MS = 600_000;

export interface RestoreJournal {
  repository: string;
  point: string;
  /** RFC 3339: when the files were copied. */
  at: string;
  /** Snapshot of the log that leads on from there; null: nothing does. */
  log: string | null;
  /** RFC 3339: rows are as they were then; null: as when the files were copied. */
  rows_at: string | null;
  done: string[];
  notes: string[];
}

interface Wanted {
  config: Config;
  repository: Repository;
  /** Null: a backup without a log. */
  wal: WalRepository | null;
  /** RFC 3339; null: the last one to which the repository leads. */
  moment: string | null;
  print(line: string): void;
  /**
   * Asks for the restore of each database, if possible as it was then. Applications that
   * were stopped for a move start again. Returns what has to be done by hand.
   */
  restoreDatabases(config: Config, rowsAt: string | null, stopped: readonly string[]): Promise<string[]>;
}

interface Work extends Wanted {
  journal: RestoreJournal;
}

interface RestoreStep extends DeclaredStep<RestoreJournal, Work> {
  title: string;
  run(work: Work): Promise<void>;
}

const step = (name: string, title: string, run: (work: Work) => Promise<void>): RestoreStep => ({
  ...{ name, title, run },
  isDone: (journal) => journal.done.includes(name),
});

const STEPS: readonly RestoreStep[] = [
  step('fetch', 'fetching the files', fetch),
  step('place', 'moving the files to their places', place),
  step('volumes', 'making the disks of volumes', volumes),
  step('recover', 'replaying what was written since the backup', recover),
  // The start looks for it: it is there when everything else is.
  step('control', 'moving the control database to its place', control),
  step('databases', 'beginning the restores of databases', databases),
  step('owner', 'taking the installation over', owner),
];

const journalFile = ({ dataDir }: Config): string => path.join(dataDir, 'restore.json');
const stagingOf = ({ dataDir }: Config): string => path.join(dataDir, 'restore');

/** @throws CommandError: nothing was changed, or the next call goes on */
export async function restoreInstallation(wanted: Wanted): Promise<RestoreJournal> {
  const { config, print } = wanted;
  const journal = (await begunRestore(wanted)) ?? (await begin(wanted));
  const work: Work = { ...wanted, journal };
  await runSteps(STEPS, journal, work, async ({ name, title, run }) => {
    print(`${title} …`);
    await run(work);
    journal.done.push(name);
    await saveJournal(config, journal);
    return 'done';
  });
  await rm(stagingOf(config), { recursive: true, force: true });
  await rm(journalFile(config), { force: true });
  return journal;
}

async function begunRestore({ config, repository }: Wanted): Promise<RestoreJournal | null> {
  if (!existsSync(journalFile(config))) return null;
  const journal = JSON.parse(await readFile(journalFile(config), 'utf8')) as RestoreJournal;
  if (journal.repository === repository.address) return journal;
  throw new CommandError(
    `a restore from ${journal.repository} has begun and not ended: call it again, or empty ${config.dataDir} first`,
  );
}

async function begin({ config, repository, wal, moment }: Wanted): Promise<RestoreJournal> {
  requireEmpty(config);
  const log = (await wal?.read())?.log ?? [];
  const points = await repository.points();
  const way = wayTo(waysOf(points, log), moment, repository.address);
  const { point } = way;
  makeDirectory(config.dataDir, 0o711);
  await requireRoom(config, await repository.bytesOf(point.id));
  const journal: RestoreJournal = {
    ...{ repository: repository.address, point: point.id, at: point.at, log: way.log?.id ?? null },
    ...{ rows_at: way.log && (moment ?? way.log.until), done: [], notes: [] },
  };
  const last = points.at(-1);
  if (moment === null && last && last !== point)
    journal.notes.push(
      `There are backups up to ${last.at}, which is later than the clock of this machine. If they are wanted, begin ` +
        'again in an empty directory with --at.',
    );
  await saveJournal(config, journal);
  return journal;
}

function saveJournal(config: Config, journal: RestoreJournal): Promise<void> {
  return replaceFileDurably(journalFile(config), JSON.stringify(journal, null, 2));
}

function requireEmpty({ dataDir }: Config): void {
  for (const name of ['postgres', ...RESTORED.filter((one) => one !== 'secret-key')])
    if (isUsed(path.join(dataDir, name)))
      throw new CommandError(
        `${path.join(dataDir, name)} is not empty: a restore needs a machine on which the platform has not run. ` +
          'Stop the service and move the directory away, or set PLATFORM_DATA_DIR',
      );
  if (existsSync(path.join(dataDir, 'secret-key')))
    throw new CommandError(`${path.join(dataDir, 'secret-key')} exists: move it away, the backup has its own`);
}

/** A new disk that is mounted there has nothing but a directory of its file system. */
function isUsed(directory: string): boolean {
  return hasEntries(directory) && readdirSync(directory).some((name) => name !== 'lost+found');
}

async function requireRoom({ dataDir }: Config, bytes: number): Promise<void> {
  const disk = await statfs(dataDir);
  const free = disk.bavail * disk.bsize;
  if (free < bytes)
    throw new CommandError(
      `the backup has ${gibibytesText(bytes)}, and the disk of ${dataDir} has ${gibibytesText(free)} free: make ` +
        'room, or mount a larger disk there',
    );
}

async function fetch({ config, repository, journal }: Work): Promise<void> {
  // What a fetch that was cut off has left would be in the way of some kinds of files.
  await rm(stagingOf(config), { recursive: true, force: true });
  await mkdir(stagingOf(config), { mode: 0o700 });
  await repository.restore(journal.point, stagingOf(config));
  const manifest = await readManifest(config);
  if (semver.gt(manifest.version, version))
    throw new CommandError(
      `the backup is of ${manifest.version}, and this is ${version}: install ${manifest.version} or a newer release`,
    );
  if (manifest.control === 'embedded' && manifest.architecture !== process.arch)
    throw new CommandError(
      `the backup was made on ${manifest.architecture}, and this machine is ${process.arch}: its database cannot be ` +
        'read here. Restore to a machine of the same kind',
    );
  if (manifest.key_in_settings && config.secretKey === null)
    throw new CommandError(
      'PLATFORM_SECRET_KEY was set where the backup was made: set it to the same key here. It is in ' +
        path.join(restoredRoot(config), 'backup/point', SETTINGS_COPY),
    );
  if ((manifest.control === 'dump') !== (config.databaseUrl !== null))
    throw new CommandError(
      manifest.control === 'dump'
        ? 'the backup has a dump of a PostgreSQL server: set DATABASE_URL to an empty database of one'
        : 'the backup has the embedded database: unset DATABASE_URL',
    );
}

/** The data directory of the machine that made the backup, as restored. */
function restoredRoot(config: Config): string {
  const found = findRestoredRoot(stagingOf(config));
  if (found === null) throw new CommandError(`the backup has no ${MANIFEST}: it is not one of an installation`);
  return found;
}

async function readManifest(config: Config): Promise<Manifest> {
  return JSON.parse(await readFile(path.join(restoredRoot(config), 'backup/point', MANIFEST), 'utf8')) as Manifest;
}

async function place({ config, journal }: Work): Promise<void> {
  const root = restoredRoot(config);
  makePassableDirectory(config.dataDir);
  for (const name of RESTORED) {
    const [from, to] = [path.join(root, name), path.join(config.dataDir, name)];
    // Absent: it was moved before the step was cut off, or never existed.
    if (!existsSync(from)) continue;
    makeDirectory(path.dirname(to));
    await moveTo(from, to);
  }
  noteFileStore(await readManifest(config), config, journal);
  const settings = path.join(root, 'backup/point', SETTINGS_COPY);
  if (existsSync(settings)) {
    const kept = path.join(config.dataDir, SETTINGS_OF_BEFORE);
    await copyFile(settings, kept);
    await chmod(kept, 0o600);
    journal.notes.push(`The settings of before are in ${kept}: take over what this machine needs.`);
  }
  await claimOwners(config, (await readManifest(config)).user_id_base);
}

function noteFileStore({ file_store: address }: Manifest, config: Config, { notes }: RestoreJournal): void {
  if (address !== undefined && fileStoreAddress(config) !== address)
    notes.push(`Uploads of sources and larger mail messages are in ${address}: set FILE_STORE before the start.`);
}

/** May be repeated. */
async function moveTo(from: string, to: string): Promise<void> {
  try {
    await rm(to, { recursive: true, force: true });
    await rename(from, to);
  } catch (error) {
    if (!['EBUSY', 'EXDEV'].includes(String((error as NodeJS.ErrnoException).code))) throw error;
    // A disk of its own is mounted there.
    await run('cp', ['-a', '--', `${from}/.`, to], driverContext(COPY_WITHIN_MS));
    await rm(from, { recursive: true });
  }
}

/** The user ids of before, or others: files of volumes are given to them when they are mounted. */
async function claimOwners({ runtimeDir, tenantUidBase }: Config, base: number | null): Promise<void> {
  if (base === null || process.getuid?.() !== 0) return;
  makeDirectory(runtimeDir);
  const claim = { directory: runtimeDir, base: tenantUidBase ?? base, isUsed: false };
  await claimUserIds(claim).catch((error: unknown) => {
    if (tenantUidBase !== null || !(error instanceof DriverError)) throw error;
    return claimUserIds({ ...claim, base: null });
  });
}

async function volumes({ config }: Work): Promise<void> {
  const manifest = await readManifest(config);
  for (const { id, driver, size_gb } of manifest.volumes) {
    const home = path.join(config.volumeDir, id);
    if (driver === 'loop_image' && existsSync(home))
      await placeVolumeFiles(home, size_gb * gigabyteBytes, driverContext(VOLUME_WITHIN_MS));
  }
}

async function recover({ config, wal, journal }: Work): Promise<void> {
  const { control: kind, data_dir: dataDir } = await readManifest(config);
  if (journal.log === null || journal.rows_at === null || wal === null || kind !== 'embedded') return;
  const of = { log: journal.log, rowsAt: journal.rows_at, filesAt: journal.at };
  const prepared = path.join(restoredRoot(config), 'backup/point');
  journal.notes.push(...(await recoverRestored({ config, wal, staging: stagingOf(config), prepared, dataDir, of })));
}

async function control({ config }: Work): Promise<void> {
  const prepared = path.join(restoredRoot(config), 'backup/point');
  if (config.databaseUrl !== null)
    throw new CommandError(
      `restore the dump yourself, then start the service: pg_restore --no-owner -d "$DATABASE_URL" ` +
        `${path.join(prepared, 'control/control.dump')}`,
    );
  const home = path.join(config.dataDir, 'postgres');
  makePassableDirectory(home);
  const recovered = path.join(recoveryDirectory(stagingOf(config)), 'postgres');
  const [password, data] = existsSync(recovered)
    ? [path.join(recovered, 'password'), recovered]
    : [path.join(prepared, 'password'), path.join(prepared, 'control')];
  if (existsSync(password)) await rename(password, path.join(home, 'password'));
  const engine = engineUser(config.postgresUser);
  for (const name of readdirSync(data).filter((one) => /^data-\d+$/.test(one))) {
    await giveTo(engine, path.join(data, name));
    await rename(path.join(data, name), path.join(home, name));
  }
}

/** PostgreSQL refuses data of another user. */
async function giveTo({ spawn }: EngineUser, directory: string): Promise<void> {
  if (spawn.uid !== undefined)
    await run('chown', ['-R', `${spawn.uid}:${spawn.gid}`, '--', directory], driverContext(CHOWN_WITHIN_MS));
}

async function databases({ config, journal, restoreDatabases }: Work): Promise<void> {
  const { stopped = [] } = await readManifest(config);
  journal.notes.push(...(await restoreDatabases(config, journal.rows_at, stopped)));
}

/** The machine of before finds it, and ends. */
async function owner({ config, wal }: Work): Promise<void> {
  if (wal !== null) await takeOver(config);
}
