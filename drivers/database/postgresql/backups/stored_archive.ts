// The WAL archive in the operator's store, below <server id>/archive/<system identifier>/: WAL files, and history.json
// with the start of the gapless archive and its timelines. A file is removed from this host once it is stored, so the
// local files are those waiting for upload. Only WAL that a backup needs is uploaded.
import { lstat, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { absentIsNull } from '../../../../core/files';
import { checkpoint, type DriverContext } from '../../../../core/driver';
import {
  openServerDirectory,
  listServerDirectories,
  type ServerDirectory,
} from '../../../hosted_server/server_directory';
import { archivedSince } from './archiving';
import { backupsFound, isLogFile, orderOf, type Manifest } from './known_backups';
import { archiveDirectory, systemIdentifierOf, type PostgresqlContext } from '../cluster';
import { timelinesOf, type Timeline } from './timelines';

const FILES_AT_ONCE = 4;
/** WAL younger than this is kept even if no backup needs it: a running backup may. */
const UNCLAIMED_MS = 24 * 3_600_000;

export interface History {
  /** As archivedSince. */
  since: string | null;
  timelines: Timeline[];
}

/** Uploads pending files of all servers. @returns number of files */
export async function storeArchives(engine: PostgresqlContext, ctx: DriverContext): Promise<number> {
  if (!engine.store) return 0;
  let stored = 0;
  for (const id of await listServerDirectories(engine)) {
    const serverDirectory = await openServerDirectory(engine, id);
    if (typeof serverDirectory !== 'string') stored += await storeArchive(engine, serverDirectory, ctx);
  }
  return stored;
}

async function storeArchive(
  engine: PostgresqlContext,
  serverDirectory: ServerDirectory,
  ctx: DriverContext,
): Promise<number> {
  let stored = 0;
  for (const systemIdentifier of (await readdir(path.join(serverDirectory.path, 'archive')).catch(absentIsNull)) ??
    []) {
    if (!/^\d{1,20}$/.test(systemIdentifier)) continue;
    const needed = neededOf(await backupsFound(engine, serverDirectory.id, ctx), systemIdentifier);
    if (needed === undefined) continue;
    await storeHistory(engine, serverDirectory, systemIdentifier, ctx);
    const archive = archiveDirectory(serverDirectory, systemIdentifier);
    const waiting = (await readdir(archive).catch(absentIsNull)) ?? [];
    const files = waiting.filter((file) => isArchived(file) && isNeeded(file, needed)).sort();
    stored += await storeFiles(engine, archive, files, folderOf(serverDirectory.id, systemIdentifier), ctx);
  }
  return stored;
}

async function storeFiles(
  { store }: PostgresqlContext,
  archive: string,
  files: string[],
  folder: string,
  ctx: DriverContext,
): Promise<number> {
  const queue = files.values();
  const worker = async (): Promise<void> => {
    for (const file of queue) {
      checkpoint(ctx);
      const at = path.join(archive, file);
      // The directory belongs to the server: anything but a regular file must not be read.
      if (!(await lstat(at).catch(absentIsNull))?.isFile()) continue;
      await store!.upload(folder + file, at, ctx);
      await rm(at, { force: true });
    }
  };
  await Promise.all(Array.from({ length: FILES_AT_ONCE }, worker));
  return files.length;
}

/** Uploads the history, if it has changed since this process last did. */
async function storeHistory(
  engine: PostgresqlContext,
  serverDirectory: ServerDirectory,
  systemIdentifier: string,
  ctx: DriverContext,
): Promise<void> {
  if ((await systemIdentifierOf(serverDirectory.data).catch(absentIsNull)) !== systemIdentifier) return;
  const history: History = {
    since: await archivedSince(serverDirectory),
    timelines: await timelinesOf(serverDirectory),
  };
  const name = historyName(serverDirectory.id, systemIdentifier);
  const text = JSON.stringify(history);
  if (engine.histories.get(name) === text) return;
  await engine.store!.write(name, text, ctx);
  engine.histories.set(name, text);
}

/** null where the store has no history. */
export async function storedHistory(
  { store }: PostgresqlContext,
  serverId: string,
  systemIdentifier: string,
  ctx: DriverContext,
): Promise<History | null> {
  const text = (await store?.read(historyName(serverId, systemIdentifier), ctx)) ?? null;
  return text === null ? null : (JSON.parse(text) as History);
}

/** Whether the store has a WAL file. */
export async function hasStored(
  { store }: PostgresqlContext,
  { serverId, systemIdentifier }: { serverId: string; systemIdentifier: string },
  file: string,
  ctx: DriverContext,
): Promise<boolean> {
  return (await store?.has(folderOf(serverId, systemIdentifier) + file, ctx)) ?? false;
}

/**
 * Downloads the files that a recovery from a backup needs to `to`, except for existing ones. A backup without a target
 * contains its WAL; timeline histories determine the number of the new timeline.
 */
export async function fetchStored(
  { store }: PostgresqlContext,
  { serverId, backup, to, until }: { serverId: string; backup: Manifest; to: string; until: string | null },
  ctx: DriverContext,
): Promise<void> {
  if (!store) return;
  const folder = folderOf(serverId, backup.system_identifier);
  const present = new Set(await readdir(to));
  const wanted: string[] = [];
  for await (const { name } of store.list(folder, ctx)) {
    const file = name.slice(folder.length);
    const isWanted = until === null ? file.includes('.history.') : isNeeded(file, orderOf(backup.wal_file));
    if (isArchived(file) && isWanted && !present.has(file)) wanted.push(file);
  }
  const queue = wanted.values();
  const worker = async (): Promise<void> => {
    for (const file of queue) {
      checkpoint(ctx);
      await store.download(folder + file, path.join(to, file), ctx);
    }
  };
  await Promise.all(Array.from({ length: FILES_AT_ONCE * 2 }, worker));
}

/** Upload time of the last WAL file; null where there is none. */
export async function storedUntil(
  { store }: PostgresqlContext,
  serverId: string,
  systemIdentifier: string,
  ctx: DriverContext,
): Promise<string | null> {
  const folder = folderOf(serverId, systemIdentifier);
  let latest: string | null = null;
  if (!store) return null;
  for await (const { name, modified_at } of store.list(folder, ctx))
    if (isLogFile(name.slice(folder.length)) && (latest === null || modified_at > latest)) latest = modified_at;
  return latest;
}

/** Removes WAL files that no backup needs any more, including those of removed servers. */
export async function pruneStored(engine: PostgresqlContext, serverId: string, ctx: DriverContext): Promise<void> {
  const { store } = engine;
  if (!store) return;
  const backups = await backupsFound(engine, serverId, ctx);
  for await (const systemIdentifier of store.listFolders(`${serverId}/archive/`, ctx)) {
    const needed = neededOf(backups, systemIdentifier);
    const folder = folderOf(serverId, systemIdentifier);
    const isGone = typeof (await openServerDirectory(engine, serverId)) === 'string';
    for await (const { name, modified_at } of store.list(folder, ctx)) {
      const file = name.slice(folder.length);
      const isOld = isGone || Date.now() - Date.parse(modified_at) > UNCLAIMED_MS;
      if (needed === undefined ? isOld : isLogFile(file) && orderOf(file) < needed) await store.remove(name, ctx);
    }
  }
}

/** The first WAL file that any backup of this cluster needs. */
function neededOf(backups: Manifest[], systemIdentifier: string): string | undefined {
  return backups
    .filter((one) => one.system_identifier === systemIdentifier)
    .map(({ wal_file }) => orderOf(wal_file))
    .sort()[0];
}

function isNeeded(file: string, needed: string): boolean {
  return file.includes('.history') || orderOf(file) >= needed;
}

/** WAL files and timeline histories. */
function isArchived(file: string): boolean {
  return isLogFile(file) || /^[0-9A-F]{8}\.history\.gz$/.test(file);
}

function folderOf(serverId: string, systemIdentifier: string): string {
  return `${serverId}/archive/${systemIdentifier}/`;
}

function historyName(serverId: string, systemIdentifier: string): string {
  return `${folderOf(serverId, systemIdentifier)}history.json`;
}
