// A directory whose limit is hard: <home>/disk.ext4, an image with a file system of its own, mounted at <home>/disk.
// A home may be renamed while its disk is mounted: the mount goes with it. Everything may be repeated after an
// interruption; a home that was being made is closed and removed by whoever finds it.
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
  unmount,
  VolumeInUse,
  waitForEarlierStep,
  type Image,
} from './ext4';

/** What happens at the end of the host. `kept`: the content is there again; `lost`: it goes with its processes. */
type DiskLife = 'kept' | 'lost';

/** ext4(5): nothing waits until it is written, and nothing is written before it is needed. */
const UNSYNCED = ['noatime', 'nobarrier', 'noinit_itable'];

/** The mount point of the disk of this directory; null where it has none. */
export function diskOf(home: string): string | null {
  const image = imageIn(home);
  return existsSync(image.file) ? image.point : null;
}

/** Makes and mounts it, in a directory that nobody else uses yet. @returns the mount point. @throws CommandFailed */
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

/** Mounts it where it is not, as after a start of the host. No disk is success. @throws DriverError */
export async function openDisk(home: string, ctx: DriverContext): Promise<void> {
  const image = imageIn(home);
  if (!existsSync(image.file)) return;
  await waitForEarlierStep(image, ctx);
  if ((await deviceAt(image, ctx)) === null) await mount(image, ctx, ['discard']);
}

/** Whether it is mounted. A directory that has no disk counts as if it were. */
export async function isDiskOpen(home: string, ctx: DriverContext): Promise<boolean> {
  const image = imageIn(home);
  return !existsSync(image.file) || (await deviceAt(image, ctx)) !== null;
}

/** Bytes of the disk; null where growing it was interrupted, or where there is none. */
export async function sizeOfDisk(home: string): Promise<number | null> {
  if (existsSync(growingMark(home))) return null;
  return (await stat(imageIn(home).file).catch(absentIsNull))?.size ?? null;
}

/** Grows the disk while it is mounted; where that is refused, growClosedDisk does. @throws DriverError */
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
 * Grows the disk where that is refused while it is mounted: nothing uses it, and nobody opens it meanwhile. It is not
 * mounted afterwards. @throws DriverError conflict where it is damaged, transient
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

/** Unmounts it; the image stays. Absent is success. @throws DriverError transient while a program uses it */
export async function closeDisk(home: string, ctx: DriverContext): Promise<void> {
  const image = imageIn(home);
  if ((await stat(image.file).catch(absentIsNull)) === null) return;
  await waitForEarlierStep(image, ctx);
  await unmount(image, ctx).catch((error: unknown) => {
    if (error instanceof VolumeInUse) throw new DriverError('transient', 'The disk is still in use.', 1_000);
    throw error;
  });
}

/**
 * The disk of another directory becomes that of `home`, whose own is kept aside. Both are closed. Absent is success:
 * repeated after an interruption, it goes on.
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

/** The disk that was kept aside is that of `home` again, and the present one is gone. Both are closed. */
export async function takeBackDisk(home: string): Promise<void> {
  await rename(asideOf(home), imageIn(home).file);
  await rm(asideOf(home), { force: true }); // rename(2) leaves both where they are one file
}

export async function removeDiskAside(home: string): Promise<void> {
  await rm(asideOf(home), { force: true });
}

/** Closes it and deletes it with its content. Absent is success. @throws DriverError transient while it is used */
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
