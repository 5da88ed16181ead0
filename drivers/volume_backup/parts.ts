// Where backups of volumes lie: below <volume id>/backups/<backup id>/, in the store of the operator or in a directory
// of this host, as parts of one encrypted file and manifest.json, which is written last and removed first, so that
// nothing is a backup by half.
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { checkpoint, DriverError, type DriverContext } from '../../core/driver';
import { absentIsNull, replaceFileDurably, syncDirectory } from '../../core/files';
import type { BackupStore, FileDigest } from '../backup_store';

export interface BackupPlace {
  /** Of this host: backups, and parts on their way to the store and back. */
  directory: string;
  /** null: backups stay on this host. */
  store: BackupStore | null;
}

export interface BackupName {
  volume_id: string;
  id: string;
}

interface Part extends FileDigest {
  name: string;
}

export interface Manifest {
  parts: Part[];
  /** The note of whose the files are, see FilesToRead. */
  owners: string | null;
  /** Bytes of the compressed archive, before its encryption. */
  archive_bytes: number;
  /** Bytes of the archive of tar: so much room the files take at most, but for many small ones. */
  content_bytes: number;
  /** Files that could not be read. */
  unread: number;
}

/** So much of the disk of this host takes a backup that goes to the store. */
const PART_BYTES = 256 * 2 ** 20;
const manifestName = 'manifest.json';

/** null where there is no complete backup. */
export async function readManifest(place: BackupPlace, name: BackupName, ctx: DriverContext): Promise<Manifest | null> {
  const local = await readFile(path.join(directoryOf(place, name), manifestName), 'utf8').catch(absentIsNull);
  const text = local ?? (await place.store?.read(inStore(name, manifestName), ctx)) ?? null;
  return text === null ? null : (JSON.parse(text) as Manifest);
}

/** Writes a complete backup. May be killed at any point, and repeated. @param content encrypted */
export async function writeParts(
  place: BackupPlace,
  name: BackupName,
  content: AsyncIterable<Buffer>,
  describe: () => Omit<Manifest, 'parts'>,
  ctx: DriverContext,
): Promise<Manifest> {
  await removeParts(place, name, ctx);
  const directory = directoryOf(place, name);
  const temporary = path.join(path.dirname(directory), `.new-${name.id}-${randomBytes(6).toString('hex')}`);
  await mkdir(temporary, { recursive: true, mode: 0o700 });
  try {
    const parts: Part[] = [];
    for await (const part of splitIntoParts(content, temporary, ctx)) {
      parts.push(part);
      if (place.store) await storePart(place.store, name, part, temporary, ctx);
    }
    const manifest: Manifest = { parts, ...describe() };
    if (place.store) {
      await place.store.write(inStore(name, manifestName), JSON.stringify(manifest), ctx);
    } else {
      await replaceFileDurably(path.join(temporary, manifestName), JSON.stringify(manifest));
      await rename(temporary, directory);
      await syncDirectory(path.dirname(directory));
    }
    return manifest;
  } finally {
    // A full disk gets its room back.
    await rm(temporary, { recursive: true, force: true });
  }
}

/** The encrypted content of a backup. @throws DriverError conflict where it is not there */
export async function* readParts(
  place: BackupPlace,
  name: BackupName,
  { parts }: Manifest,
  ctx: DriverContext,
): AsyncGenerator<Buffer> {
  const directory = directoryOf(place, name);
  const isLocal = (await readdir(directory).catch(absentIsNull)) !== null;
  for (const part of parts) {
    checkpoint(ctx);
    if (isLocal) yield* fileOf(path.join(directory, part.name));
    else yield* storedPart(place, name, part, ctx);
  }
}

/** Removes the backup and what interrupted calls left, here and in the store. Absent is success. */
export async function removeParts(place: BackupPlace, name: BackupName, ctx: DriverContext): Promise<void> {
  const { store } = place;
  if (store) {
    await store.remove(inStore(name, manifestName), ctx);
    await store.removeUnfinished(inStore(name, ''), new Date(), ctx);
    for await (const { name: file } of store.list(inStore(name, ''), ctx)) await store.remove(file, ctx);
  }
  const directory = directoryOf(place, name);
  const above = path.dirname(directory);
  await rm(path.join(directory, manifestName), { force: true });
  for (const entry of (await readdir(above).catch(absentIsNull)) ?? []) {
    if (entry === name.id || (/^\.(?:new|fetched)-/.test(entry) && entry.includes(`-${name.id}-`)))
      await rm(path.join(above, entry), { recursive: true, force: true });
  }
}

async function* splitIntoParts(
  content: AsyncIterable<Buffer>,
  directory: string,
  ctx: DriverContext,
): AsyncGenerator<Part> {
  let current: OpenPart | null = null;
  let count = 0;
  try {
    for await (const piece of content) {
      checkpoint(ctx);
      for (let rest = piece; rest.length > 0;) {
        current ??= await openPart(directory, (count += 1));
        const taken = rest.subarray(0, PART_BYTES - current.bytes);
        await current.handle.writeFile(taken);
        current.hash.update(taken);
        current.bytes += taken.length;
        rest = rest.subarray(taken.length);
        if (current.bytes < PART_BYTES) continue;
        const whole = await closePart(current);
        current = null;
        yield whole;
      }
    }
    const last = current;
    current = null;
    if (last) yield await closePart(last);
  } finally {
    await current?.handle.close();
  }
}

interface OpenPart {
  name: string;
  handle: FileHandle;
  hash: ReturnType<typeof createHash>;
  bytes: number;
}

async function openPart(directory: string, number: number): Promise<OpenPart> {
  const name = `part-${String(number).padStart(5, '0')}.age`;
  const handle = await open(path.join(directory, name), 'wx', 0o600);
  return { name, handle, hash: createHash('sha256'), bytes: 0 };
}

async function closePart({ name, handle, hash, bytes }: OpenPart): Promise<Part> {
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  return { name, size_bytes: bytes, sha256: hash.digest('hex') };
}

async function storePart(
  store: BackupStore,
  name: BackupName,
  part: Part,
  directory: string,
  ctx: DriverContext,
): Promise<void> {
  const file = path.join(directory, part.name);
  const stored = await store.upload(inStore(name, part.name), file, ctx);
  if (stored.sha256 !== part.sha256)
    throw new DriverError('transient', 'A part of the backup has changed on the disk of the host.');
  await rm(file);
}

/** As a file first: a connection that breaks in the middle is continued. */
async function* storedPart(
  { directory, store }: BackupPlace,
  name: BackupName,
  part: Part,
  ctx: DriverContext,
): AsyncGenerator<Buffer> {
  if (!store) throw partsMissing();
  const above = path.join(directory, name.volume_id);
  const temporary = path.join(above, `.fetched-${name.id}-${randomBytes(6).toString('hex')}`);
  await mkdir(temporary, { recursive: true, mode: 0o700 });
  try {
    const file = path.join(temporary, part.name);
    const found = await store.download(inStore(name, part.name), file, ctx);
    if (found.sha256 !== part.sha256)
      throw new DriverError('conflict', 'The backup is damaged: a part of it is not what was stored.');
    yield* fileOf(file);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

async function* fileOf(file: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) yield chunk as Buffer;
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? partsMissing() : error;
  }
}

export function partsMissing(): DriverError {
  return new DriverError('conflict', 'The files of the backup are neither on this host nor in its backup store.');
}

function directoryOf({ directory }: BackupPlace, { volume_id, id }: BackupName): string {
  requireName(volume_id);
  requireName(id);
  return path.join(directory, volume_id, id);
}

function inStore({ volume_id, id }: BackupName, file: string): string {
  requireName(volume_id);
  requireName(id);
  return `${volume_id}/backups/${id}/${file}`;
}

function requireName(name: string): void {
  if (!/^[a-z][a-z0-9_]{0,63}$/.test(name)) throw new DriverError('invalid', 'An id cannot be the name of a file.');
}
