// How full the disks of this machine are, each hour, and what takes the room, each few hours: written for operators.
// Nothing of it is measured while somebody waits.
import os from 'node:os';
import path from 'node:path';
import type { Config } from '../../core/config';
import type { DiskKind, DiskSamples, DiskUse } from '../../core/catalog/installation_reports';
import { mailDirectory } from '../../core/mail/mail_directory';
import { repeatWork } from '../../core/process/background';
import { fileSystemsOf } from '../../drivers/machine/file_systems';
import { measureUsedRoom } from '../../drivers/machine/measure';
import { loadReports, saveReport } from '../../models/base/installation_report';
import { sizesInRows, topProjects, type OwnedBytes } from '../../models/projects/installation_disk_use';
import { backupDirectory } from '../platform/backup_journal';
import type { Platform } from '../platform/platform';

const SAMPLE_EVERY_MS = 3_600_000;
const SAMPLES_KEPT = 7 * 24;
const MEASURE_EVERY_MS = 6 * 3_600_000;
/** After a start there is other work. */
const FIRST_MEASURE_MS = 2 * 60_000;
const DIRECTORY_WITHIN_MS = 30 * 60_000;

type Parts = Pick<Platform, 'config' | 'database' | 'log'>;

/** Directories of this machine that hold data: a mount below the data directory is a disk of its own. */
export function dataDirectories(config: Config): string[] {
  const { dataDir, volumeDir, databaseDir, s3Dir, registryDir, runtimeDir, cdnDir } = config;
  return [
    dataDir,
    volumeDir,
    databaseDir,
    s3Dir,
    registryDir,
    runtimeDir,
    cdnDir,
    mailDirectory(config),
    '/',
    os.tmpdir(),
  ];
}

export interface InstallationDisks {
  /** What uses the disk is measured again. */
  measureSoon(): void;
  stop(): Promise<void>;
}

export function startInstallationDisks(parts: Parts): InstallationDisks {
  const { log } = parts;
  const stopping = new AbortController();
  const sampling = repeatWork(
    { name: 'disk_samples', everyMs: SAMPLE_EVERY_MS, log, failure: 'how full the disks are could not be noted' },
    () => sampleDisks(parts),
  );
  sampling.runNow();
  const measuring = repeatWork(
    { name: 'disk_use', everyMs: MEASURE_EVERY_MS, log, failure: 'what uses the disk could not be measured' },
    () => measureUnlessStopped(parts, stopping.signal),
  );
  const first = setTimeout(() => void measureIfOld(parts, measuring.runNow), FIRST_MEASURE_MS).unref();
  return {
    measureSoon: () => measuring.runNow(),
    async stop() {
      clearTimeout(first);
      stopping.abort();
      await Promise.all([sampling.stop(), measuring.stop()]);
    },
  };
}

/** A service that is restarted often would measure all the time. */
async function measureIfOld({ database }: Parts, measure: () => void): Promise<void> {
  const reports = await loadReports<DiskUse>(database, 'disk use').catch(() => []);
  const own = reports.find(({ machine }) => machine === os.hostname());
  if (!own || own.age_seconds * 1_000 > MEASURE_EVERY_MS) measure();
}

async function measureUnlessStopped(parts: Parts, signal: AbortSignal): Promise<void> {
  try {
    await measureDiskUse(parts, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Adds how full the disks are now to what was noted before. */
export async function sampleDisks({ config, database }: Parts): Promise<void> {
  const place = { machine: os.hostname(), name: 'disks' };
  const before = (await loadReports<DiskSamples>(database, place.name)).find(
    ({ machine }) => machine === place.machine,
  );
  const samples = [...(before?.facts.samples ?? []), await sampleNow(config)].slice(-SAMPLES_KEPT);
  await saveReport(database, place, { samples } satisfies DiskSamples);
}

async function sampleNow(config: Config): Promise<DiskSamples['samples'][number]> {
  return { at: new Date().toISOString(), disks: await fileSystemsOf(dataDirectories(config)) };
}

interface Place {
  kind: string;
  directory: string;
  /** A directory in it that is of another kind. */
  without?: string;
}

function placesOf(config: Config): Place[] {
  const { dataDir, volumeDir, databaseDir, s3Dir, registryDir, runtimeDir, cdnDir } = config;
  return [
    { kind: 'databases', directory: databaseDir, without: 'backups' },
    { kind: 'backups_of_databases', directory: path.join(databaseDir, 'backups') },
    { kind: 'volumes', directory: volumeDir },
    { kind: 'objects', directory: s3Dir },
    { kind: 'registry_images', directory: registryDir },
    { kind: 'releases', directory: path.join(runtimeDir, 'releases') },
    { kind: 'build_caches', directory: path.join(runtimeDir, 'caches') },
    { kind: 'git_mirrors', directory: path.join(runtimeDir, 'mirrors') },
    { kind: 'toolchains', directory: path.join(runtimeDir, 'toolchains') },
    { kind: 'source_uploads', directory: path.join(runtimeDir, 'source-uploads') },
    { kind: 'logs_of_units', directory: path.join(runtimeDir, 'units') },
    { kind: 'cdn_cache', directory: cdnDir },
    { kind: 'mail', directory: mailDirectory(config) },
    { kind: 'backups_of_the_installation', directory: backupDirectory({ dataDir }) },
    { kind: 'backups_before_upgrades', directory: path.join(dataDir, 'upgrades') },
    { kind: 'control_database', directory: path.join(dataDir, 'postgres') },
  ];
}

/** Measures, and writes it. */
export async function measureDiskUse({ config, database }: Parts, signal: AbortSignal): Promise<DiskUse> {
  const started_at = new Date().toISOString();
  const kinds: DiskKind[] = [];
  const owned: OwnedBytes[] = [];
  for (const { kind, directory, without } of placesOf(config)) {
    const { bytes, parts, problem } = await measureUsedRoom(directory, DIRECTORY_WITHIN_MS, signal);
    const other = parts.find(({ name }) => name === without)?.bytes ?? 0;
    kinds.push({ kind, bytes: Math.max(0, bytes - other), problem });
    owned.push(
      ...parts.filter(({ name }) => name !== without).map((part) => ({ kind, id: part.name, bytes: part.bytes })),
    );
  }
  kinds.push(...(await sizesInRows(database)));
  const projects = await topProjects(database, owned);
  const facts = { started_at, ended_at: new Date().toISOString(), kinds, projects };
  await saveReport(database, { machine: os.hostname(), name: 'disk use' }, facts);
  return facts;
}
