// The disk of a server with an enforced storage limit: an image in the server directory, which contains the data.
// Servers of earlier versions have none, nor do hosts that cannot mount images.
//   disk.ext4  mounted at disk/        next/  a directory with a disk for replacement data
//   disk.before.ext4  the previous disk, until the new data are verified (replacement.ts)
import { chmod, mkdir, rmdir, stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import { driverContext, type DriverContext } from '../../core/driver';
import {
  closeDisk,
  diskOf,
  growClosedDisk,
  growDisk,
  hasDiskAside,
  makeDisk,
  openDisk,
  removeDisk,
  removeDiskAside,
  sizeOfDisk,
  takeBackDisk,
  takeDisk,
} from '../volume/limited_disk';
import { tryMount } from '../volume/trial';
import type { EngineContext, ServerDirectory } from './server_directory';

const mountWithinMs = 30_000;
const fullBelowBytes = 48 * 2 ** 20;
const atWork = new Map<string, Promise<void>>();
const mountable = new Set<string>();

/** Parent of data/: the disk of this server directory, or the directory itself. */
export function placeOfData(home: string): string {
  return diskOf(home) ?? home;
}

/** Makes and mounts a disk in a new server directory, where supported. @returns parent of data/ */
export async function makeServerDisk(
  engine: EngineContext,
  home: string,
  bytes: number | null,
  ctx: DriverContext,
): Promise<string> {
  if (bytes === null || !(await canMount(engine, ctx))) return home;
  const point = await makeDisk(home, bytes, 'kept', ctx);
  await chmod(point, 0o711);
  return point;
}

/** Mounts the disk if needed, e.g. after a boot. @throws DriverError where that fails: nothing may run then */
export async function openServerDisk(home: string): Promise<void> {
  const point = diskOf(home);
  if (point === null || (await isMounted(home, point))) return;
  await alone(home, () => openDisk(home, driverContext(mountWithinMs)));
}

// Serialises work on a directory.
async function alone(home: string, work: () => Promise<void>): Promise<void> {
  const before = atWork.get(home) ?? Promise.resolve();
  const now = before.catch(() => undefined).then(work);
  atWork.set(home, now);
  await now.finally(() => {
    if (atWork.get(home) === now) atWork.delete(home);
  });
}

/** Makes and mounts a disk for replacement data. @returns null where disks are not supported */
export async function makeNextDisk(
  engine: EngineContext,
  home: string,
  bytes: number,
  ctx: DriverContext,
): Promise<string | null> {
  const next = nextOf(home);
  await mkdir(next, { mode: 0o711 });
  const point = await makeServerDisk(engine, next, bytes, ctx);
  if (point !== next) return point;
  await rmdir(next);
  return null;
}

export function hasNextDisk(home: string): boolean {
  return diskOf(nextOf(home)) !== null;
}

/** Replaces the current disk, if there is one, by the next disk, and sets it aside. No server is running. */
export async function swapInNextDisk(home: string, ctx: DriverContext): Promise<void> {
  await alone(home, async () => {
    for (const one of [nextOf(home), home]) await closeDisk(one, ctx);
    await takeDisk(home, nextOf(home));
    await openDisk(home, ctx);
  });
}

/** Reverts swapInNextDisk. @param hadDisk false: the server had no disk before. No server is running. */
export async function swapBackDisk(home: string, hadDisk: boolean, ctx: DriverContext): Promise<void> {
  await alone(home, async () => {
    if (!hadDisk) return removeDisk(home, ctx);
    if (!hasDiskAside(home)) return;
    await closeDisk(home, ctx);
    await takeBackDisk(home);
    await openDisk(home, ctx);
  });
}

/**
 * Unmounts the next disk, whose directory next/ can then be removed, and deletes the previous one. Absent is success.
 */
export async function dropOtherDisks(home: string, ctx: DriverContext): Promise<void> {
  await closeDisk(nextOf(home), ctx);
  await removeDiskAside(home);
}

/** Unmounts all disks of a server before its removal. */
export async function closeServerDisks(home: string, ctx: DriverContext): Promise<void> {
  for (const one of [nextOf(home), home]) await closeDisk(one, ctx);
}

const nextOf = (home: string): string => path.join(home, 'next');

/** Grows the disk to at least `bytes`; no disk is success. @param stop stops the server, where that is required */
export async function growServerDisk(
  { path: home }: ServerDirectory,
  bytes: number,
  stop: () => Promise<void>,
  ctx: DriverContext,
): Promise<void> {
  if (diskOf(home) === null || ((await sizeOfDisk(home)) ?? 0) >= bytes) return;
  if ((await growDisk(home, bytes, ctx)) === 'grown') return;
  await stop();
  // Prevents a concurrent mount.
  await alone(home, async () => {
    await growClosedDisk(home, bytes, ctx);
    await openDisk(home, ctx);
  });
}

/** Whether a disk of less than `bytes` has almost no free space: the server may fail to start. */
export async function isServerDiskFull({ path: home }: ServerDirectory, bytes: number): Promise<boolean> {
  const point = diskOf(home);
  if (point === null || ((await sizeOfDisk(home)) ?? 0) >= bytes) return false;
  const { bavail, bsize } = await statfs(point);
  return bavail * bsize < fullBelowBytes;
}

async function isMounted(home: string, point: string): Promise<boolean> {
  const [outside, inside] = await Promise.all([stat(home), stat(point)]);
  return outside.dev !== inside.dev;
}

// A failure is not cached: it is retried for the next server.
async function canMount({ directory, disks }: EngineContext, ctx: DriverContext): Promise<boolean> {
  if (disks !== true || process.getuid?.() !== 0) return false;
  if (mountable.has(directory)) return true;
  const works = await tryMount(directory, ctx).then(
    () => true,
    () => false,
  );
  if (works) mountable.add(directory);
  return works;
}
