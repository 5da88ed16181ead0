// Backups of the whole installation, and the restore of one.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { loadConfig, type Config } from '../../core/config';
import { CommandError } from '../command_error';
import { makePoint } from '../backup/point';
import { isArchive, openArchive } from '../backup/archive';
import { newestOf } from '../backup/newest';
import { findRunning, takeOver } from '../backup/owner';
import { journaledPoints } from '../backup/points';
import { keepProof, provePoint } from '../backup/proof';
import { openBackupRepository, type Repository } from '../backup/repository';
import { readStopped, removeStopped } from '../backup/stopped_applications';
import { openWalRepository, type WalRepository } from '../backup/wal_repository';
import { restoreInstallation } from '../backup/restore';
import { readBackupJournal, type BackupJournal, type Proof } from '../platform/backup_journal';
import { UsageError, type Command, type Input, type Output } from './command';
import { makeFinalPoint, startStopped } from './handover';
import { withPlatform } from './open';
import { noteOfInstallation } from './terminal_activity';
import { restoreDatabases } from './restored_databases';

const print = (line: string): void => void process.stderr.write(`${line}\n`);

const PASSPHRASE_FILE = { value: 'file', description: 'Its passphrase. Default: RESTIC_PASSWORD_FILE.' };

export const commands: Command[] = [
  {
    name: 'backup list',
    summary: 'List the backups of the installation that RESTIC_REPOSITORY has.',
    async run() {
      const config = loadConfig(process.env);
      const points = await openBackupRepository(config).points();
      const known = journaledPoints(points, (await readBackupJournal(config))?.points ?? []).reverse();
      return {
        rows: known.map(({ id, at, version, bytes, proven_at, proof_error }, index) => ({
          ...{ id: id.slice(0, 8), at, hostname: points[index]?.hostname, version, bytes },
          proven_at: proof_error === null ? proven_at : `${proven_at}: not usable`,
        })),
      };
    },
  },
  {
    name: 'backup prove',
    summary: 'Restore the newest backup aside, and compare it.',
    run: proveNewest,
  },
  {
    name: 'backup take-over',
    summary: 'Make this machine the one that runs the installation, after a restore elsewhere.',
    async run() {
      const config = loadConfig(process.env);
      await takeOver(config);
      const notes = await withPlatform(async (platform) => startStopped(platform, await readStopped(config)));
      await removeStopped(config);
      for (const note of notes) print(note);
      return { rows: [{ data_directory: config.dataDir, owner: true }] };
    },
  },
  {
    name: 'backup',
    summary: 'Back up the whole installation to RESTIC_REPOSITORY while it runs, and prove the backup.',
    options: {
      to: {
        value: 'file',
        description: 'Write an archive instead, such as /media/usb/monday.tar.gz.age. restic is not needed.',
      },
      'passphrase-file': PASSPHRASE_FILE,
      final: { value: null, description: 'Before a move: stop applications and the service first, and hand over.' },
      'no-proof': { value: null, description: 'Do not restore it aside afterwards.' },
    },
    run: backup,
  },
  {
    name: 'restore',
    summary: 'Restore a backup of the whole installation to this machine, on which the platform has not run.',
    options: {
      from: { value: 'repository', description: 'Repository of restic, or an archive. Default: RESTIC_REPOSITORY.' },
      'passphrase-file': PASSPHRASE_FILE,
      at: { value: 'time', description: 'Rows as they were then. Default: the last ones of the repository.' },
      'even-if-it-runs': { value: null, description: 'Take over from a machine that still backs up. It stops then.' },
    },
    run: restore,
  },
];

async function backup(input: Input): Promise<Output> {
  const archive = input.text('to');
  const isFinal = input.has('final');
  if (isFinal && archive !== undefined)
    throw new UsageError('--final hands a repository of restic over: it cannot be combined with --to');
  const config = configOf(input, null);
  // The platform that is opened below reads its settings itself.
  if (config.resticPasswordFile !== null) process.env.RESTIC_PASSWORD_FILE = config.resticPasswordFile;
  const repository = open(config, archive ?? null);
  const journal = await withPlatform(async (platform) => {
    const made = isFinal
      ? await makeFinalPoint(platform, repository, print)
      : await makePoint(platform, { repository, print });
    // After a final backup the rows are those of the machine to which it moves.
    if (!isFinal) await noteOfInstallation(platform.database, 'installation.backed_up', made.point);
    return made;
  });
  for (const note of journal.notes) print(note);
  if (input.has('no-proof')) return { rows: [rowOf(journal)] };
  print('restoring it aside, and comparing …');
  const log = repository.isJournaled ? openWalRepository(config) : null;
  const proof = await prove(config, repository, log, journal.point as string);
  if (repository.isJournaled) await keepProof(config, proof);
  const outcome = outputOf(proof);
  return { ...outcome, rows: [{ ...rowOf(journal), ...outcome.rows[0] }] };
}

async function proveNewest(): Promise<Output> {
  const config = loadConfig(process.env);
  const repository = openBackupRepository(config);
  const point = newestOf(await repository.points(), Date.now());
  if (!point) throw new CommandError('there is no backup yet: `platform backup` makes one');
  const proof = await prove(config, repository, openWalRepository(config), point.id);
  await keepProof(config, proof);
  return outputOf(proof);
}

async function prove(config: Config, repository: Repository, log: WalRepository | null, point: string): Promise<Proof> {
  const proof = await provePoint(config, repository, log, point);
  if (proof.error !== null) print(`The backup ${point.slice(0, 8)} is not usable: ${proof.error}`);
  return proof;
}

function outputOf({ point, error, seconds }: Proof): Output {
  return {
    rows: [{ point: point.slice(0, 8), proven: error === null, seconds_of_proof: seconds }],
    ok: error === null,
  };
}

/** The settings, with what the command line says of the backup. */
function configOf(input: Input, from: string | null): Config {
  const passphrase = input.text('passphrase-file');
  return loadConfig({
    ...process.env,
    ...(from !== null && { RESTIC_REPOSITORY: from }),
    ...(passphrase && { RESTIC_PASSWORD_FILE: path.resolve(passphrase) }),
  });
}

function open(config: Config, archive: string | null): Repository {
  if (archive === null) return openBackupRepository(config);
  return openArchive({ dataDir: config.dataDir, file: archive, passphraseFile: config.resticPasswordFile });
}

function rowOf({ point, started_at, ended_at, files, bytes, added_bytes }: BackupJournal): Record<string, unknown> {
  const seconds = ended_at && Math.round((Date.parse(ended_at) - Date.parse(started_at)) / 100) / 10;
  return { point: point?.slice(0, 8), at: started_at, seconds, files, bytes, added_bytes };
}

async function restore(input: Input): Promise<Output> {
  const [from, moment] = [input.text('from') ?? null, input.text('at') ?? null];
  if (moment !== null && Number.isNaN(Date.parse(moment)))
    throw new UsageError('--at is a time such as 2026-11-28T18:00:00Z');
  const config = configOf(input, from);
  await requireStopped(config);
  const archive = from !== null && isArchive(from) ? from : null;
  const repository = open(config, archive);
  const wal = archive === null ? openWalRepository(config) : null;
  if (wal !== null && !input.has('even-if-it-runs')) await requireSilence(wal);
  const journal = await restoreInstallation({ config, repository, wal, moment, print, restoreDatabases });
  const { point, at, rows_at, notes } = journal;
  for (const note of notes) print(note);
  print('Restored. Start the service: applications start by themselves, databases are restored from their backups.');
  return { rows: [{ point: point.slice(0, 8), at, rows_at, data_directory: config.dataDir }] };
}

/** @throws CommandError where the old machine seems to run */
async function requireSilence(wal: WalRepository): Promise<void> {
  const found = await findRunning(wal, Date.now());
  if (found === null) return;
  throw new CommandError(
    `${found.hostname} has backed up to this repository ${Math.round(found.agoMs / 1000)} s ago, so the old ` +
      'machine seems to run. Stop it and wait two minutes, or pass --even-if-it-runs: it stops by itself then, as ' +
      'soon as it sees that this one has taken over',
  );
}

async function requireStopped(config: Config): Promise<void> {
  if (existsSync(path.join(config.dataDir, 'postgres', 'postmaster.pid')) || (await readBackupJournal(config)) !== null)
    throw new CommandError(`the platform has run in ${config.dataDir}: a restore needs an empty directory`);
}
