// A base backup of the embedded server while it runs, over SQL: its package has no pg_basebackup. It is a data
// directory that recovers to the moment at which the backup ended.
import * as fs from 'node:fs';
import { copyFile, lchown, lstat, mkdir, readdir, rename, rm, symlink, readlink, writeFile } from 'node:fs/promises';
import * as path from 'node:path';
import pg from 'pg';

/** Left out, with their content (PostgreSQL manual, "Making a Base Backup Using the Low Level API"). */
const EMPTY = new Set(['pg_wal', 'pg_replslot', 'pg_dynshmem', 'pg_notify', 'pg_serial', 'pg_snapshots']);
const EMPTY_TOO = new Set(['pg_stat_tmp', 'pg_subtrans']);
const LEFT_OUT = /^(?:postmaster\.(?:pid|opts)|pgsql_tmp.*|pg_internal\.init.*|\.s\..*|backup_label.*)$/;
const WAL_SEGMENT = /^[0-9A-F]{24}$/;

/** The data directory of the embedded server; null where it was never started. */
export function embeddedDataDirectory(dataDir: string): string | null {
  const home = path.join(dataDir, 'postgres');
  if (!fs.existsSync(home)) return null;
  const [name] = fs.readdirSync(home).filter((entry) => /^data-\d+$/.test(entry));
  return name === undefined ? null : path.join(home, name);
}

/**
 * Copies the data of a running server into `target`, which must not exist; whole or not at all.
 * @param url of its superuser
 * @throws Error of the file system or of PostgreSQL
 */
export async function backUpEmbedded(url: string, data: string, target: string): Promise<void> {
  const staging = `${target}.new`;
  await rm(staging, { recursive: true, force: true });
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    // The slot, which ends with the session, keeps the log that the copy needs.
    await client.query(`select pg_create_physical_replication_slot('upgrade_' || pg_backend_pid(), true, true)`);
    await client.query(`select pg_backup_start('upgrade', true)`);
    await copyTree(data, staging, '');
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)');
    const label = rows[0]?.labelfile ?? '';
    await writeFile(path.join(staging, 'backup_label'), label, { mode: 0o600, flush: true });
    await copyLog(data, staging, label);
  } catch (error) {
    await rm(staging, { recursive: true, force: true });
    throw error;
  } finally {
    await client.end().catch(() => {});
  }
  await takeOwnershipFrom(data, staging);
  await rename(staging, target);
}

/**
 * Puts a backup in the place of the data of a stopped server, which are kept in `replaced`: where these are there, a
 * call that was cut off has moved them, and what is in their place does not count.
 */
export async function restoreEmbedded(backup: string, data: string, replaced: string): Promise<void> {
  const staging = `${data}.new`;
  await discardPartialRestore(data);
  await copyAll(backup, staging);
  await takeOwnershipFrom(backup, staging);
  if (fs.existsSync(replaced)) await rm(data, { recursive: true, force: true });
  else await rename(data, replaced);
  await rename(staging, data);
}

/** Removes what a restore has begun that was cut off. */
export async function discardPartialRestore(data: string): Promise<void> {
  await rm(`${data}.new`, { recursive: true, force: true });
}

async function copyTree(from: string, to: string, place: string): Promise<void> {
  const source = path.join(from, place);
  await mkdir(path.join(to, place), { mode: 0o700 });
  if (EMPTY.has(place) || EMPTY_TOO.has(place)) {
    if (place === 'pg_wal') await mkdir(path.join(to, place, 'archive_status'), { mode: 0o700 });
    return;
  }
  for (const entry of await readdir(source, { withFileTypes: true })) {
    const name = path.join(place, entry.name);
    if (LEFT_OUT.test(entry.name)) continue;
    if (entry.isDirectory()) await copyTree(from, to, name);
    else if (entry.isSymbolicLink()) await symlink(await readlink(path.join(from, name)), path.join(to, name));
    else if (entry.isFile()) await copyUnlessGone(path.join(from, name), path.join(to, name));
  }
}

/** Tables that are dropped meanwhile take their files with them. */
async function copyUnlessGone(from: string, to: string): Promise<void> {
  await copyFile(from, to, fs.constants.COPYFILE_FICLONE).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
}

async function copyLog(data: string, staging: string, label: string): Promise<void> {
  const [, first = ''] = /^START WAL LOCATION: \S+ \(file ([0-9A-F]{24})\)/m.exec(label) ?? [];
  const folder = path.join(data, 'pg_wal');
  const needed = (await readdir(folder)).filter((name) => WAL_SEGMENT.test(name) && name >= first);
  for (const name of needed) await copyUnlessGone(path.join(folder, name), path.join(staging, 'pg_wal', name));
}

async function copyAll(from: string, to: string): Promise<void> {
  await mkdir(to, { mode: 0o700 });
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [path.join(from, entry.name), path.join(to, entry.name)];
    if (entry.isDirectory()) await copyAll(source, target);
    else if (entry.isSymbolicLink()) await symlink(await readlink(source), target);
    else await copyFile(source, target, fs.constants.COPYFILE_FICLONE);
  }
}

/** PostgreSQL refuses data of another user. */
async function takeOwnershipFrom(data: string, directory: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = await lstat(data);
  const give = async (file: string): Promise<void> => {
    await lchown(file, uid, gid);
    if ((await lstat(file)).isDirectory()) for (const name of await readdir(file)) await give(path.join(file, name));
  };
  await give(directory);
}
