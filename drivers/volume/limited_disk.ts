// A directory with a hard limit: <home>/disk.ext4, an image with its own file system, mounted at <home>/disk. The
// directory may be renamed while its disk is mounted: the mount moves with it. All operations may be repeated after an
// interruption; an incomplete directory is closed and removed by the next process that finds it.
import { existsSync } from 'node:fs';
import { link, mkdir, rename, rm, rmdir, stat, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { DriverError } from '../../core/driver';
import type { DriverContext } from '../../core/driver';
import { absentIsNull } from '../../core/files';
import {
  deviceAt,
  format,
  growOffline,
  growOnline,
  mount,
  unmountSoon,
  VolumeInUse,
  waitForEarlierStep,
  type Image,
} from './ext4';

/** Durability of the content. `kept`: it survives a crash of the host; `lost`: it is as temporary as its processes. */
type DiskLife = 'kept' | 'lost';

/** ext4(5): no write barriers, and no initialisation ahead of use. */
const UNSYNCED = ['noatime', 'nobarrier', 'noinit_itable'];

const CLOSED_WITHIN_MS = 5_000;

/** The mount point of the directory's disk; null where it has none. */
export function diskOf(home: string): string | null {
  const image = imageIn(home);
  return existsSync(image.file) ? image.point : null;
}

/** Makes and mounts a disk in an unused directory. @returns the mount point. @throws CommandFailed */
export async function makeDisk(home: string, bytes: number, life: DiskLife, ctx: DriverContext): Promise<string> {
  const image = imageIn(home);
  await format(image.file, bytes, ctx, [
    ...['-E', 'lazy_itable_init=1,lazy_journal_init=1,nodiscard'],
    ...(life === 'lost' ? ['-O', '^has_journal'] : []),
  ]);
  await mkdir(image.point, { mode: 0o711 });
  await mount(image, ctx, life === 'lost' ? ['discard', ...UNSYNCED] : ['discard']);
  return image.point;
}

/** Mounts the disk if needed, e.g. after a boot. No disk is success. @throws DriverError */
export async function openDisk(home: string, ctx: DriverContext): Promise<void> {
  const image = imageIn(home);
  if (!existsSync(image.file)) return;
  await waitForEarlierStep(image, ctx);
  if ((await deviceAt(image, ctx)) === null) await mount(image, ctx, ['discard']);
}

/** Whether the disk is mounted. True for a directory without a disk. */
export async function isDiskOpen(home: string, ctx: DriverContext): Promise<boolean> {
  const image = imageIn(home);
  return !existsSync(image.file) || (await deviceAt(image, ctx)) !== null;
}

/** Size of the disk in bytes; null where growing it was interrupted, or without a disk. */
export async function sizeOfDisk(home: string): Promise<number | null> {
  if (existsSync(growingMark(home))) return null;
  return (await stat(imageIn(home).file).catch(absentIsNull))?.size ?? null;
}

/** Grows the mounted disk; if that is refused, use growClosedDisk. @throws DriverError */
export async function growDisk(home: string, bytes: number, ctx: DriverContext): Promise<'grown' | 'refused'> {
  const image = imageIn(home);
  await waitForEarlierStep(image, ctx);
  const device = await deviceAt(image, ctx);
  if (device === null) throw new DriverError('conflict', 'The disk is not mounted.');
  await growImage(home, bytes);
  const result = await growOnline(image, device, ctx);
  if (result === 'grown') await rm(growingMark(home));
  return result;
}

/**
 * Grows an unmounted disk, for kernels that refuse to grow a mounted one. It must be unused, and stays unmounted.
 * @throws DriverError conflict where it is damaged, transient
 */
export async function growClosedDisk(home: string, bytes: number, ctx: DriverContext): Promise<void> {
  await closeDisk(home, ctx);
  await growImage(home, bytes);
  await growOffline(imageIn(home), ctx);
  await rm(growingMark(home));
}

// The mark stays until the file system is as large as the image.
async function growImage(home: string, bytes: number): Promise<void> {
  const { file } = imageIn(home);
  await writeFile(growingMark(home), '', { flush: true });
  if ((await stat(file)).size < bytes) await truncate(file, bytes);
}

/** Unmounts the disk; the image is kept. Absent is success. @throws DriverError transient while it is in use */
export async function closeDisk(home: string, ctx: DriverContext): Promise<void> {
  const image = imageIn(home);
  if ((await stat(image.file).catch(absentIsNull)) === null) return;
  await waitForEarlierStep(image, ctx);
  await unmountSoon(image, CLOSED_WITHIN_MS, ctx).catch((error: unknown) => {
    if (error instanceof VolumeInUse) throw new DriverError('transient', 'The disk is still in use.', 1_000);
    throw error;
  });
}

/**
 * Moves the disk of another directory to `home`, and sets the previous disk aside. Both are unmounted. Absent is
 * success: a repeated call continues.
 */
export async function takeDisk(home: string, from: string): Promise<void> {
  const [{ file, point }, taken] = [imageIn(home), imageIn(from).file];
  if (!existsSync(taken)) return;
  if (existsSync(file) && !hasDiskAside(home)) await link(file, asideOf(home));
  await mkdir(point, { recursive: true, mode: 0o711 });
  await rename(taken, file);
}

export function hasDiskAside(home: string): boolean {
  return existsSync(asideOf(home));
}

/** Puts the previous disk back, and deletes the current one. Both are unmounted. */
export async function takeBackDisk(home: string): Promise<void> {
  await rename(asideOf(home), imageIn(home).file);
  await rm(asideOf(home), { force: true }); // rename(2) does nothing for two links to one file
}

export async function removeDiskAside(home: string): Promise<void> {
  await rm(asideOf(home), { force: true });
}

/** Unmounts and deletes the disk with its content. Absent is success. @throws DriverError transient while in use */
export async function removeDisk(home: string, ctx: DriverContext): Promise<void> {
  await closeDisk(home, ctx);
  const { file, point } = imageIn(home);
  await rm(file, { force: true });
  await rmdir(point).catch(absentIsNull);
}

const asideOf = (home: string): string => path.join(home, 'disk.before.ext4');
const growingMark = (home: string): string => path.join(home, '.disk.growing');

function imageIn(home: string): Image {
  return { file: path.join(home, 'disk.ext4'), point: path.join(home, 'disk'), lock: path.join(home, '.disk.lock') };
}
