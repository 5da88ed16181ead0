// Backups in the store of the operator, below <server id>/backups/<backup id>/: the files, and manifest.json, which is
// written last and removed first, so that nothing is a backup by half. What is stored leaves this host but for its
// manifest; a host that has not even that takes it from there.
//   beside a manifest here: stored.json   what is in the store, and the digests to verify it by
import { mkdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { absentIsNull, replaceFile, replaceFileDurably } from '../../core/files';
import type { BackupStore, FileDigest } from '../backup_store';
import { DriverError, checkpoint } from '../../core/driver';
import type { DriverContext } from '../../core/driver';
import { ensureDirectoryOfServers, exists, requireName, type EngineContext } from './server_directory';

export const manifestName = 'manifest.json';
const noteName = 'stored.json';

interface StoredContent extends FileDigest {
  /** Relative to the directory of the backup. */
  name: string;
}

/** Content of stored.json. */
interface StoredNote {
  address: string;
  files: StoredContent[];
}

/** manifest.json in the store. */
interface StoredManifest {
  manifest: Record<string, string | number>;
  files: StoredContent[];
}

export interface BackupId {
  serverId: string;
  backupId: string;
}

type StoreEngine = Pick<EngineContext, 'directory' | 'store'>;

export function backupDirectoryOf(engine: Pick<EngineContext, 'directory'>, { serverId, backupId }: BackupId): string {
  requireName(serverId);
  requireName(backupId);
  return path.join(engine.directory, 'backups', serverId, backupId);
}

/** Whether a complete backup of this host needs no upload. */
export async function isStored(engine: StoreEngine, id: BackupId): Promise<boolean> {
  return !engine.store || (await readStoredNote(backupDirectoryOf(engine, id))) !== null;
}

/** Uploads the files of a complete backup of this host. May be killed at any point, and repeated. */
export async function storeBackup(
  engine: StoreEngine,
  id: BackupId,
  files: readonly string[],
  ctx: DriverContext,
): Promise<void> {
  const { store } = engine;
  if (!store) return;
  const directory = backupDirectoryOf(engine, id);
  if ((await readStoredNote(directory)) === null) {
    const manifest = JSON.parse(await readFile(path.join(directory, manifestName), 'utf8')) as Record<string, string>;
    // An earlier attempt may have completed unnoticed: while its files are replaced, it must not be visible as a
    // backup.
    await store.remove(nameInStore(id, manifestName), ctx);
    const stored: StoredContent[] = [];
    for (const name of files) {
      checkpoint(ctx);
      stored.push({ name, ...(await store.upload(nameInStore(id, name), path.join(directory, name), ctx)) });
    }
    const whole: StoredManifest = { manifest, files: stored };
    await store.write(nameInStore(id, manifestName), JSON.stringify(whole), ctx);
    // What it stands for is removed next.
    await replaceFileDurably(path.join(directory, noteName), JSON.stringify({ address: store.address, files: stored }));
  }
  for (const name of files) await rm(path.join(directory, name), { force: true });
}

/** Downloads the manifest of a backup that is only in the store. @returns whether it exists */
export async function importBackup(engine: StoreEngine, id: BackupId, ctx: DriverContext): Promise<boolean> {
  const { store } = engine;
  const directory = backupDirectoryOf(engine, id);
  if (await exists(path.join(directory, manifestName))) return true;
  const text = store ? await store.read(nameInStore(id, manifestName), ctx) : null;
  if (!store || text === null) return false;
  const { manifest, files } = JSON.parse(text) as StoredManifest;
  await ensureDirectoryOfServers(engine);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await replaceFile(path.join(directory, noteName), JSON.stringify({ address: store.address, files }));
  await replaceFile(path.join(directory, manifestName), JSON.stringify(manifest));
  return true;
}

/** Downloads the manifests of all backups of a server. */
export async function importBackups(engine: StoreEngine, serverId: string, ctx: DriverContext): Promise<void> {
  requireName(serverId);
  if (!engine.store) return;
  for await (const backupId of engine.store.listFolders(`${serverId}/backups/`, ctx))
    await importBackup(engine, { serverId, backupId }, ctx);
}

/** Removes it from the store, before the local manifest is removed: it would be imported again. Absent is success. */
export async function removeStoredBackup({ store }: StoreEngine, id: BackupId, ctx: DriverContext): Promise<void> {
  if (!store) return;
  const folder = nameInStore(id, '');
  await store.remove(nameInStore(id, manifestName), ctx);
  await store.removeUnfinished(folder, new Date(), ctx);
  for await (const { name } of store.list(folder, ctx)) await store.remove(name, ctx);
}

/**
 * Downloads and verifies the files of a backup to `to`, which is recreated.
 * @throws DriverError conflict where they are missing, transient where they differ from the stored digests
 */
export async function fetchFiles(
  engine: StoreEngine,
  id: BackupId,
  { names, to }: { names: readonly string[]; to: string },
  ctx: DriverContext,
): Promise<void> {
  const { store, note } = await requireStored(engine, id);
  await rm(to, { recursive: true, force: true });
  await mkdir(to, { recursive: true, mode: 0o700 });
  for (const name of names) {
    const expected = note.files.find((file) => file.name === name);
    const found = await store.download(nameInStore(id, name), path.join(to, path.basename(name)), ctx);
    if (found.sha256 !== expected?.sha256 || found.size_bytes !== expected.size_bytes)
      throw new DriverError('transient', 'A file of the backup in the backup store is not what was stored there.');
  }
}

/** A file as a stream, for a download. */
export async function openStoredFile(
  engine: StoreEngine,
  id: BackupId,
  name: string,
  ctx: DriverContext,
): Promise<Readable> {
  const { store } = await requireStored(engine, id);
  return store.open(nameInStore(id, name), ctx);
}

/** Size in bytes of a file of a stored backup; null where the store does not have it. */
export async function storedSize(directory: string, name: string): Promise<number | null> {
  const note = await readStoredNote(directory);
  return note?.files.find((file) => file.name === name)?.size_bytes ?? null;
}

/** @throws DriverError conflict where the files are neither here nor in a configured store */
async function requireStored(
  { directory, store }: StoreEngine,
  id: BackupId,
): Promise<{ store: BackupStore; note: StoredNote }> {
  const note = await readStoredNote(backupDirectoryOf({ directory }, id));
  if (note === null) throw new DriverError('conflict', 'The files of the backup are not on this host.');
  if (!store)
    throw new DriverError('conflict', `The backup is in the store ${note.address}, and BACKUP_STORE is not set.`);
  return { store, note };
}

async function readStoredNote(directory: string): Promise<StoredNote | null> {
  const text = await readFile(path.join(directory, noteName), 'utf8').catch(absentIsNull);
  return text === null ? null : (JSON.parse(text) as StoredNote);
}

function nameInStore({ serverId, backupId }: BackupId, name: string): string {
  return `${serverId}/backups/${backupId}/${name}`;
}
