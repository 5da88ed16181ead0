// Backups of volumes: the files as an archive of tar, compressed by gzip and encrypted in the format of age.
import { mkdir } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { createGunzip, createGzip } from 'node:zlib';
import { asDriverErrors, DriverError, type Desired, type DriverContext } from '../../core/driver';
import { AgeError, decryptAge, encryptAge } from '../../core/protocols/age';
import type { FilesRead, HostVolumeSpec, VolumeFiles } from '../volume';
import { requireFreeBytes } from '../volume/replacement';
import { partsMissing, readParts, readManifest, removeParts, writeParts } from './parts';
import type { BackupName, BackupPlace, Manifest } from './parts';
import { packFiles, unpackFiles } from './tar';

/** Of passphrases, which are random: it need not delay guesses. */
const LOG_ROUNDS = 10;
const GZIP_LEVEL = 1;

export interface BackupOfVolume extends BackupName {
  passphrase: string;
}

export interface VolumeBackupMade {
  /** Of the compressed archive, and of what is in it. */
  size_bytes: number;
  content_bytes: number;
  how: FilesRead;
  /** Files that could not be read. */
  unread: number;
}

/**
 * Finds the backup, or makes it. May be killed at any point, and repeated.
 * @param usedBytes of the volume; null where it is not known
 * @throws DriverError capacity where backups stay on this host and its disk has no room
 */
export function makeVolumeBackup(
  place: BackupPlace,
  { files, volume }: { files: VolumeFiles; volume: Desired<HostVolumeSpec> },
  backup: BackupOfVolume,
  usedBytes: number | null,
  ctx: DriverContext,
): Promise<VolumeBackupMade> {
  return asDriverErrors(async () => {
    const known = await readManifest(place, backup, ctx);
    if (known !== null) return madeOf(known);
    await mkdir(place.directory, { recursive: true, mode: 0o700 });
    if (place.store === null) await requireFreeBytes(place.directory, usedBytes ?? 0, 'The backup');
    const { result, how } = await files.read(
      volume,
      async ({ path, owners }) => {
        const packing = packFiles(path, ctx);
        const [plain, compressed] = [{ bytes: 0 }, { bytes: 0 }];
        const archive = counted(compress(counted(packing.content, plain)), compressed);
        const describe = () => ({
          ...{ owners, archive_bytes: compressed.bytes, content_bytes: plain.bytes, unread: packing.unread() },
        });
        const encrypted = encryptAge(archive, backup.passphrase, LOG_ROUNDS);
        return writeParts(place, backup, encrypted, describe, ctx);
      },
      ctx,
    );
    return { ...madeOf(result), how };
  });
}

/** Replaces the files of a volume with those of a backup. @throws DriverError as VolumeFiles.replace */
export function restoreVolumeBackup(
  place: BackupPlace,
  { files, volume }: { files: VolumeFiles; volume: Desired<HostVolumeSpec> },
  backup: BackupOfVolume,
  { key, bytes }: { key: string; bytes: number },
  ctx: DriverContext,
): Promise<void> {
  return asDriverErrors(async () => {
    const manifest = await requireManifest(place, backup, ctx);
    const fill = async (directory: string): Promise<void> => {
      const archive = archiveOf(place, backup, manifest, ctx);
      const source = Readable.from(archive, { objectMode: false });
      const content = createGunzip();
      source.on('error', (error) => content.destroy(error));
      source.pipe(content);
      try {
        await unpackFiles(content, directory, ctx);
      } catch (error) {
        throw String((error as NodeJS.ErrnoException).code).startsWith('Z_') ? damaged() : error;
      } finally {
        source.destroy();
      }
    };
    await files.replace(volume, { key, bytes, owners: manifest.owners, fill }, ctx);
  });
}

/** The compressed archive as it was made, for a download. `bytes`: its length. */
export function openVolumeBackup(
  place: BackupPlace,
  backup: BackupOfVolume,
  ctx: DriverContext,
): Promise<{ content: AsyncIterable<Buffer>; bytes: number }> {
  return asDriverErrors(async () => {
    const manifest = await requireManifest(place, backup, ctx);
    return { content: archiveOf(place, backup, manifest, ctx), bytes: manifest.archive_bytes };
  });
}

/** Absent is success. */
export function removeVolumeBackup(place: BackupPlace, backup: BackupName, ctx: DriverContext): Promise<void> {
  return asDriverErrors(() => removeParts(place, backup, ctx));
}

async function requireManifest(place: BackupPlace, backup: BackupName, ctx: DriverContext): Promise<Manifest> {
  const manifest = await readManifest(place, backup, ctx);
  if (manifest === null) throw partsMissing();
  return manifest;
}

/** @throws DriverError conflict where it is not what was written */
async function* archiveOf(
  place: BackupPlace,
  backup: BackupOfVolume,
  manifest: Manifest,
  ctx: DriverContext,
): AsyncGenerator<Buffer> {
  try {
    yield* decryptAge(readParts(place, backup, manifest, ctx), backup.passphrase);
  } catch (error) {
    throw error instanceof AgeError ? damaged() : error;
  }
}

async function* counted(content: AsyncIterable<Buffer>, count: { bytes: number }): AsyncGenerator<Buffer> {
  for await (const chunk of content) {
    count.bytes += chunk.length;
    yield chunk;
  }
}

async function* compress(content: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const source = Readable.from(content, { objectMode: false });
  const compressed = createGzip({ level: GZIP_LEVEL });
  source.on('error', (error) => compressed.destroy(error));
  try {
    for await (const chunk of source.pipe(compressed) as AsyncIterable<Buffer>) yield chunk;
  } finally {
    source.destroy();
  }
}

/** How the files were read is known to the call alone that has read them. */
function madeOf({ archive_bytes, content_bytes, unread }: Manifest): VolumeBackupMade {
  return { size_bytes: archive_bytes, content_bytes, unread, how: 'live' };
}

function damaged(): DriverError {
  return new DriverError('conflict', 'The backup is damaged: its content is not what was written. Take another one.');
}
