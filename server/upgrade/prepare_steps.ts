// The steps before the switch. What runs is not touched by them.
import { constants, existsSync, statSync } from 'node:fs';
import { copyFile, mkdir, readdir, rename, rm, statfs } from 'node:fs/promises';
import path from 'node:path';
import semver from 'semver';
import type { Config } from '../../core/config';
import { settings } from '../../core/settings';
import { migrationNames, incompatibleMigrations } from '../../db/migrate';
import { MIGRATIONS } from '../platform/platform';
import { CommandError } from '../command_error';
import { inspectArchive, sha256Of, sumBeside, type ArchiveFacts } from './archive';
import {
  discardPartialBackups,
  backUpControlDatabase,
  backupBytes,
  backupName,
  backupsDirectory,
} from './control_backup';
import { downloadRelease } from './download';
import { healthyParts } from './health';
import { isReleaseInUse, releaseDirectory, releaseMark, type Installation } from './installation';
import type { Journal } from './journal';
import { doctorOf, runDiskProgram, runReleaseProgram, settingNamesOf, syncFileSystem } from './programs';
import { targetOf, type Job, type Step } from './step';

/** What a machine needs beside the release to go on. */
const SPARE_BYTES = 64 * 2 ** 20;

const LEFT_OVER = /^(?:archive\.tar\.gz|unpacking|replaced-\d+|\.?state\.json\..*)$/;

const archiveOf = ({ staging }: Installation): string => path.join(staging, 'archive.tar.gz');

export const fetchStep: Step = {
  name: 'fetch',
  title: 'fetch the release and verify its checksum',
  isDone: () => false,
  async run(job) {
    const { journal, installation } = job;
    const target = archiveOf(installation);
    await rm(target, { force: true });
    if (journal.file === null) {
      const { sha256, version } = await downloadRelease(job, target, (bytes) =>
        requireRoom(installation.staging, bytes),
      );
      Object.assign(journal, { sha256, to: version });
      return;
    }
    const sum = sumBeside(journal.file);
    await requireRoom(installation.staging, statSync(journal.file).size);
    await copyFile(journal.file, target, constants.COPYFILE_FICLONE);
    if ((await sha256Of(target)) !== sum)
      throw new CommandError(`${journal.file} is not what SHA256SUMS says: download it again`);
    journal.sha256 = sum;
  },
  undo: ({ installation }) => rm(archiveOf(installation), { force: true }),
};

export const checkStep: Step = {
  name: 'check',
  title: 'read the release, and count the room on the disk',
  isDone: () => false,
  async run({ journal, installation, config }) {
    const facts = await inspectArchive(archiveOf(installation));
    requireFit(facts, journal.from);
    journal.to = facts.version;
    const [release, backup] = [facts.unpackedBytes, await backupBytes(config)];
    const places = [
      { directory: installation.prefix, bytes: release },
      { directory: config.dataDir, bytes: backup },
    ];
    const isOne = statSync(installation.prefix).dev === statSync(config.dataDir).dev;
    if (isOne) return requireRoom(installation.prefix, release + backup);
    for (const { directory, bytes } of places) await requireRoom(directory, bytes);
  },
};

export const unpackStep: Step = {
  name: 'unpack',
  title: 'unpack the release beside the one that runs',
  isDone: () => false,
  async run(job) {
    const { installation, journal } = job;
    const staging = path.join(installation.staging, 'unpacking');
    const directory = releaseDirectory(installation, targetOf(job));
    await rm(staging, { recursive: true, force: true });
    await mkdir(staging, { mode: 0o700 });
    const archive = archiveOf(installation);
    // Another program could have written it since it was read.
    if ((await sha256Of(archive)) !== journal.sha256) throw new CommandError('the archive has changed meanwhile');
    const words = ['-xzf', archive, '-C', staging, '--no-same-owner', '--no-overwrite-dir'];
    await runDiskProgram('tar', words, 'the release could not be unpacked');
    const unpacked = path.join(staging, `platform-${targetOf(job)}-linux-${process.arch}`);
    await syncFileSystem(unpacked, 'the release');
    if (existsSync(directory)) await rename(directory, path.join(installation.staging, `replaced-${process.pid}`));
    journal.unpacked = true;
    await job.save();
    await rename(unpacked, directory);
    await rm(staging, { recursive: true, force: true });
  },
  async undo(job) {
    const { installation, journal } = job;
    await rm(path.join(installation.staging, 'unpacking'), { recursive: true, force: true });
    if (journal.unpacked) await rm(releaseDirectory(installation, targetOf(job)), { recursive: true, force: true });
  },
};

export const doctorStep: Step = {
  name: 'doctor',
  title: 'ask the new release what it needs here',
  isDone: () => false,
  async run(job) {
    const { installation, journal } = job;
    const [version, directory] = [targetOf(job), releaseDirectory(installation, targetOf(job))];
    if (releaseMark(installation, version) === null) throw new CommandError(`${version} is not installed`);
    await runReleaseProgram(`${directory}/bin/node`, ['--version'], `Node.js of ${version} does not run here`);
    const known = await settingNamesOf(directory, version);
    // Before the switch, also so that the start after it finds the files in memory, and compiled.
    const program = path.join(directory, 'bin/platform');
    await runReleaseProgram(program, ['start', '--load'], `${version} cannot be loaded`);
    const gone = Object.keys(settings).filter((name) => process.env[name] && !known.has(name));
    if (gone.length) journal.notes.push(`${version} has no setting ${gone.join(', ')} any more: it will not be read.`);
    const failed = (await doctorOf(directory, version)).filter(({ status }) => status === 'failed');
    if (!failed.length) return;
    const before = await doctorOf(releaseDirectory(installation, journal.from), journal.from);
    const isNew = ({ check }: { check: string }): boolean =>
      !before.some((one) => one.check === check && one.status === 'failed');
    const [first] = failed.filter(isNew);
    if (first) throw new CommandError(`doctor of ${version}: ${first.check}: ${first.detail}`);
  },
};

export const measureStep: Step = {
  name: 'measure',
  title: 'note which parts are healthy',
  isDone: () => false,
  async run({ journal, config }) {
    journal.well = await healthyParts(config);
  },
};

export const backupStep: Step = {
  name: 'backup',
  title: 'back up the control database',
  isDone: ({ journal }) => journal.point !== null,
  async run({ journal, config }) {
    const backup = backupPathOf(config, journal);
    const missing = await backUpControlDatabase(config, path.basename(backup));
    if (missing !== null) journal.notes.push(missing);
    else journal.point = backup;
  },
  async undo({ config, journal }) {
    await discardPartialBackups(config);
    // Once the other release has run, people may need it.
    if (!['backup', 'measure'].includes(journal.step)) return;
    await rm(backupPathOf(config, journal), { recursive: true, force: true });
    journal.point = null;
  },
};

function backupPathOf(config: Config, { started_at, from }: Journal): string {
  return path.join(backupsDirectory(config), backupName(started_at, from));
}

/** @throws CommandError where a release is not for this machine, or not after the one that runs */
function requireFit({ version, arch, upgradesFrom, migrations }: ArchiveFacts, from: string): void {
  if (arch !== process.arch)
    throw new CommandError(`this release is for ${arch}: download that for ${process.arch}, which the machine is`);
  if (semver.eq(version, from)) throw new CommandError(`${version} runs already`);
  if (semver.lt(version, from))
    throw new CommandError(`${version} is older than ${from}, which runs: \`platform rollback\` goes back`);
  if (upgradesFrom !== null && semver.lt(from, upgradesFrom))
    throw new CommandError(
      `${version} upgrades from ${upgradesFrom} or newer, and ${from} runs: upgrade to that first`,
    );
  const incompatible = incompatibleMigrations(migrations, migrationNames(MIGRATIONS));
  if (incompatible.length)
    throw new CommandError(
      `there would be no way back from ${version} to ${from} (${incompatible.join(', ')}): upgrade to a version ` +
        'between them first',
    );
}

async function requireRoom(directory: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  const [free, needed] = [bavail * bsize, bytes + SPARE_BYTES];
  if (free < needed)
    throw new CommandError(
      `${directory} has ${megabytes(free)} MB free, and the upgrade needs ${megabytes(needed)} MB: make room first`,
    );
}

function megabytes(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}

/** What is left of this upgrade and of those that were killed; a release that was replaced, once nothing runs of it. */
export async function clearStaging({ installation: { staging } }: Job): Promise<void> {
  for (const name of await readdir(staging)) {
    if (!LEFT_OVER.test(name)) continue;
    const place = path.join(staging, name);
    if (!isReleaseInUse(place)) await rm(place, { recursive: true, force: true });
  }
}
