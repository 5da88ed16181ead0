// The control database as it was before an upgrade. The last two are kept.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { lstat, mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../../core/config';
import { openEmbedded } from '../platform/embedded';
import { backUpEmbedded, embeddedDataDirectory } from '../platform/embedded/base_backup';
import { CommandError } from '../command_error';
import { libpqTarget } from './libpq_target';
import { syncFileSystem } from './programs';

const KEPT = 2;
export const DUMP = 'control.dump';
const REPLACED = 'replaced-';

export function backupsDirectory({ dataDir }: Pick<Config, 'dataDir'>): string {
  return path.join(dataDir, 'upgrades');
}

/** `2026-11-28T18-00-00Z-1.0.0`: when, and of which version. */
export function backupName(at: string, version: string): string {
  return `${at.slice(0, 19).replaceAll(':', '-')}Z-${version}`;
}

/** The moment that a name says, as people give it. */
export function momentOf(name: string): string {
  return name.replace(/^(\S{10}T\d\d)-(\d\d)-(\d\d)Z-.*$/, '$1:$2:$3Z');
}

/** Complete backups of a version, newest first. */
export async function controlBackupsOf(config: Config, version: string): Promise<string[]> {
  const names = await readdir(backupsDirectory(config)).catch(() => [] as string[]);
  return names
    .filter((name) => name.endsWith(`Z-${version}`))
    .sort()
    .reverse();
}

/**
 * Makes a backup. @returns a sentence where there is none, and the operator has to care
 * @throws Error of the file system or of PostgreSQL
 */
export async function backUpControlDatabase(config: Config, name: string): Promise<string | null> {
  const directory = path.join(backupsDirectory(config), name);
  if (existsSync(directory)) return null;
  await mkdir(backupsDirectory(config), { recursive: true, mode: 0o700 });
  const staging = `${directory}.new`;
  await rm(staging, { recursive: true, force: true });
  await mkdir(staging, { mode: 0o700 });
  try {
    const missing = await copyControlDatabase(config, staging);
    if (missing !== null) return missing;
    // A power cut leaves a whole backup under this name, or none.
    await syncFileSystem(staging, 'the backup');
    await rename(staging, directory);
    return null;
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/**
 * Writes the files of the embedded database, or a dump of the one of DATABASE_URL, to a directory that is there.
 * @returns a sentence where it cannot be done, and the operator has to care
 */
export function copyControlDatabase(config: Config, directory: string): Promise<string | null> {
  return config.databaseUrl === null ? backUp(config, directory) : dump(config.databaseUrl, directory);
}

/** Removes what a killed upgrade has begun. */
export async function discardPartialBackups(config: Config): Promise<void> {
  const names = await readdir(backupsDirectory(config)).catch(() => [] as string[]);
  for (const name of names.filter((one) => one.endsWith('.new')))
    await rm(path.join(backupsDirectory(config), name), { recursive: true, force: true });
}

/** Removes all but the newest ones. @param own of this upgrade: the newest one, also where the clock was ahead once */
export async function pruneBackups(config: Config, own: string | null): Promise<void> {
  const names = await readdir(backupsDirectory(config)).catch(() => [] as string[]);
  const backups = names.filter((name) => /Z-\d+\.\d+\.\d+[^/]*$/.test(name) && !name.endsWith('.new'));
  const newest = backups.sort().reverse();
  if (own !== null && newest.includes(path.basename(own)))
    newest.unshift(...newest.splice(newest.indexOf(path.basename(own)), 1));
  for (const name of newest.slice(KEPT))
    await rm(path.join(backupsDirectory(config), name), { recursive: true, force: true });
}

/** Where a rollback keeps the database that it replaces, until an upgrade has gone well. */
export function replacedDirectory(config: Config, startedAt: string): string {
  return path.join(backupsDirectory(config), `${REPLACED}${startedAt.slice(0, 19).replaceAll(':', '-')}`);
}

export async function discardReplaced(config: Config): Promise<void> {
  const names = await readdir(backupsDirectory(config)).catch(() => [] as string[]);
  for (const name of names.filter((one) => one.startsWith(REPLACED)))
    await rm(path.join(backupsDirectory(config), name), { recursive: true, force: true });
}

async function backUp({ dataDir, postgresUser, pgBin }: Config, staging: string): Promise<string | null> {
  const data = embeddedDataDirectory(dataDir);
  if (data === null) return 'There is no database yet, and no backup of one.';
  const engine = await openEmbedded({ dataDir, user: postgresUser, binaries: pgBin ?? undefined });
  try {
    await backUpEmbedded(engine.url, data, path.join(staging, path.basename(data)));
    return null;
  } finally {
    await engine.close();
  }
}

async function dump(databaseUrl: string, staging: string): Promise<string | null> {
  const { url, env } = libpqTarget(databaseUrl);
  const words = ['--format=custom', `--file=${path.join(staging, DUMP)}`, `--dbname=${url}`];
  const end = await new Promise<{ code: number | null; text: string; missing?: boolean }>((resolve) => {
    const options = { env: { PATH: process.env.PATH, LC_ALL: 'C', ...env } };
    const child = spawn('pg_dump', words, { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
    let text = '';
    child.stderr.on('data', (chunk: Buffer) => (text = (text + chunk.toString()).slice(-4_000)));
    child.on('error', () => resolve({ code: null, text: '', missing: true }));
    child.on('close', (code) => resolve({ code, text }));
  });
  if (end.missing)
    return 'The database was not backed up, since pg_dump is not installed: back up DATABASE_URL yourself.';
  if (end.code === 0) return null;
  const reason = end.text.trim().split('\n')[0] ?? '';
  if (/version mismatch/.test(end.text))
    return 'The database was not backed up, since pg_dump is older than its server: back up DATABASE_URL yourself.';
  throw new CommandError(`pg_dump failed: ${reason.replace(/^pg_dump: (?:error: )?/, '')}`);
}

/** Bytes that a backup takes: those of the data, or nothing that is known. */
export async function backupBytes(config: Config): Promise<number> {
  const data = config.databaseUrl === null ? embeddedDataDirectory(config.dataDir) : null;
  return data === null ? 0 : bytesIn(data);
}

async function bytesIn(directory: string): Promise<number> {
  let sum = 0;
  for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
    const file = path.join(directory, entry.name);
    if (entry.isDirectory()) sum += await bytesIn(file);
    else sum += (await lstat(file).catch(() => null))?.size ?? 0;
  }
  return sum;
}
