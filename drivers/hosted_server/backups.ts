// Backups: <directory>/backups/<server id>/<backup id>/ contains one file and manifest.json. They are made under a
// temporary name and renamed when complete, and are readable by the platform only. With a store, the file is moved
// there (stored_backups.ts).
import { randomBytes } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { mkdir, open, readFile, readdir, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { absentIsNull } from '../../core/files';
import type { BackupMade, OpenedBackup } from '../hosted_server';
import { DriverError, checkpoint, driverContext } from '../../core/driver';
import type { DriverContext } from '../../core/driver';
import { exists, removeServerTree, type EngineContext, type Owner, type ServerDirectory } from './server_directory';
import {
  backupDirectoryOf,
  fetchFiles,
  importBackup,
  manifestName,
  openStoredFile,
  removeStoredBackup,
  storeBackup,
  storedSize,
  type BackupId,
} from './stored_backups';

/** Where backups are. */
export type BackupEngine = Pick<EngineContext, 'directory' | 'name' | 'store'>;

interface Backup {
  file: string;
  manifest: BackupMade['manifest'];
}

/** Downloads that take longer are aborted. */
export const DOWNLOAD_WITHIN_MS = 24 * 3_600_000;

/** Null where there is no complete backup. */
async function findBackup(engine: BackupEngine, serverId: string, backupId: string): Promise<Backup | null> {
  const directory = directoryOf(engine, serverId, backupId);
  const text = await readFile(path.join(directory, manifestName), 'utf8').catch(absentIsNull);
  if (text === null) return null;
  const manifest = JSON.parse(text) as BackupMade['manifest'];
  return { manifest, file: path.join(directory, String(manifest.file)) };
}

/** What the backup says of itself; null where there is none on this host. */
export async function readBackupManifest(
  engine: BackupEngine,
  serverId: string,
  backupId: string,
): Promise<BackupMade['manifest'] | null> {
  return (await findBackup(engine, serverId, backupId))?.manifest ?? null;
}

/** @throws DriverError conflict where there is no backup, here or in the store */
async function requireBackup(
  engine: BackupEngine,
  serverId: string,
  backupId: string,
  ctx: DriverContext,
): Promise<Backup> {
  await importBackup(engine, { serverId, backupId }, ctx);
  const backup = await findBackup(engine, serverId, backupId);
  if (backup === null) throw new DriverError('conflict', 'The files of the backup are not on this host.');
  return backup;
}

/** Works with the file of a backup, which is first downloaded to the directory of `target` where it is in the store. */
export async function withBackupFile<T>(
  engine: BackupEngine,
  target: Pick<ServerDirectory, 'path'>,
  id: BackupId,
  work: (file: string) => Promise<T>,
  ctx: DriverContext,
): Promise<T> {
  const { file } = await requireBackup(engine, id.serverId, id.backupId, ctx);
  if (await exists(file)) return work(file);
  const to = path.join(target.path, 'fetched');
  await fetchFiles(engine, id, { names: [path.basename(file)], to }, ctx);
  try {
    return await work(path.join(to, path.basename(file)));
  } finally {
    await rm(to, { recursive: true, force: true });
  }
}

/** Finds the backup, or makes it: `fill` writes the file to the given path and returns the manifest. */
export async function makeBackup(
  engine: BackupEngine,
  serverId: string,
  backupId: string,
  fileName: string,
  fill: (file: string) => Promise<BackupMade['manifest']>,
  ctx: DriverContext,
): Promise<BackupMade> {
  const id = { serverId, backupId };
  const known = await findBackup(engine, serverId, backupId);
  if (known !== null) return storeMade(engine, id, known, ctx);
  await removeLocalBackup(engine, serverId, backupId, ctx);
  const directory = directoryOf(engine, serverId, backupId);
  const temporary = path.join(path.dirname(directory), `.new-${backupId}-${randomBytes(6).toString('hex')}`);
  await mkdir(temporary, { recursive: true, mode: 0o700 });
  const manifest = {
    ...(await fill(path.join(temporary, fileName))),
    engine: engine.name,
    server_id: serverId,
    file: fileName,
  };
  await writeFile(path.join(temporary, manifestName), JSON.stringify(manifest), { mode: 0o600, flush: true });
  await rename(temporary, directory);
  return storeMade(engine, id, { manifest, file: path.join(directory, fileName) }, ctx);
}

/** Removes the backup and remains of interrupted calls, also from the store. Absent is success. */
export async function removeBackupDirectory(
  engine: BackupEngine,
  serverId: string,
  backupId: string,
  ctx: DriverContext,
): Promise<void> {
  await removeStoredBackup(engine, { serverId, backupId }, ctx);
  await removeLocalBackup(engine, serverId, backupId, ctx);
}

async function removeLocalBackup(
  engine: BackupEngine,
  serverId: string,
  backupId: string,
  ctx: DriverContext,
): Promise<void> {
  const directory = directoryOf(engine, serverId, backupId);
  const place = path.dirname(directory);
  for (const entry of (await readdir(place).catch(absentIsNull)) ?? []) {
    if (entry === backupId || entry.startsWith(`.new-${backupId}-`))
      await removeServerTree(path.join(place, entry), ctx);
  }
  await rmdir(place).catch(() => undefined); // other backups remain in it
}

/** The file as a stream from a byte on, a file name, and the size of all of it where it is known. */
export async function openBackupFile(
  engine: BackupEngine,
  serverId: string,
  backupId: string,
  from = 0,
): Promise<OpenedBackup> {
  const ctx = driverContext(DOWNLOAD_WITHIN_MS);
  const { file } = await requireBackup(engine, serverId, backupId, ctx);
  const file_name = `${serverId}-${backupId}${path.extname(file)}`;
  return { ...(await openPart(engine, { serverId, backupId }, file, from, ctx)), file_name };
}

/** A file of a backup from a byte on: here, or in the store, where what comes before is read and dropped. */
export async function openPart(
  engine: BackupEngine,
  id: BackupId,
  file: string,
  from: number,
  ctx: DriverContext,
): Promise<Omit<OpenedBackup, 'file_name'>> {
  const here = await stat(file).catch(absentIsNull);
  if (here) return { stream: createReadStream(file, { start: from }), size_bytes: here.size };
  const name = path.basename(file);
  const size_bytes = await storedSize(path.dirname(file), name);
  const stream = await openStoredFile(engine, id, name, ctx);
  return { stream: from === 0 ? stream : stream.compose(withoutFirst(from)), size_bytes };
}

/** @param count of bytes that are read and dropped */
export function withoutFirst(count: number): (source: AsyncIterable<Buffer>) => AsyncGenerator<Buffer> {
  return async function* (source) {
    let left = count;
    for await (const piece of source) {
      const rest = piece.subarray(Math.min(left, piece.length));
      left -= piece.length - rest.length;
      if (rest.length) yield rest;
    }
  };
}

/** Copies a whole file, without following a link that its owner may have put in its place. `owner`: of the copy. */
export async function copyFile(from: string, to: string, owner: Owner | null, ctx: DriverContext): Promise<void> {
  const source = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW);
  const target = await open(
    to,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    0o600,
  );
  try {
    const part = Buffer.allocUnsafe(1 << 20);
    for (let { bytesRead } = await source.read(part); bytesRead > 0; { bytesRead } = await source.read(part)) {
      checkpoint(ctx);
      await target.writeFile(part.subarray(0, bytesRead));
    }
    if (owner !== null && process.getuid?.() === 0) await target.chown(owner.uid, owner.gid);
    await target.sync();
  } finally {
    await Promise.all([target.close(), source.close()]);
  }
}

async function storeMade(
  engine: BackupEngine,
  id: BackupId,
  { file, manifest }: Backup,
  ctx: DriverContext,
): Promise<BackupMade> {
  const name = path.basename(file);
  await storeBackup(engine, id, [name], ctx);
  const size_bytes = (await storedSize(path.dirname(file), name)) ?? (await stat(file)).size;
  return { size_bytes, manifest };
}

function directoryOf(engine: BackupEngine, serverId: string, backupId: string): string {
  return backupDirectoryOf(engine, { serverId, backupId });
}
