// The disk of a server, where its storage is hard: an image in the server directory, in which the data are. Servers
// from before have none, and neither has a host that cannot mount images.
//   disk.ext4  mounted at disk/        next/  a directory with a disk for data that will take the place of the others
//   disk.before.ext4  the disk of the others, until the new data are known to be good (replacement.ts)
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

/** Where data/ belongs: the disk of this server directory, or the directory itself. */
export function placeOfData(home: string): string {
  return diskOf(home) ?? home;
}

/** A mounted disk in a new server directory; none where this host has none. @returns where data/ belongs */
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

/** Mounts it where it is not, as after a start of the host. @throws DriverError where that fails: nothing may run */
export async function openServerDisk(home: string): Promise<void> {
  const point = diskOf(home);
  if (point === null || (await isMounted(home, point))) return;
  await alone(home, () => openDisk(home, driverContext(mountWithinMs)));
}

// One after the other.
async function alone(home: string, work: () => Promise<void>): Promise<void> {
  const before = atWork.get(home) ?? Promise.resolve();
  const now = before.catch(() => undefined).then(work);
  atWork.set(home, now);
  await now.finally(() => {
    if (atWork.get(home) === now) atWork.delete(home);
  });
}

/** A mounted disk for data that will take the place of others. @returns null where this host has none */
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

/** The next disk takes the place of the present one, if there is one, which is kept aside. No server runs. */
export async function swapInNextDisk(home: string, ctx: DriverContext): Promise<void> {
  await alone(home, async () => {
    for (const one of [nextOf(home), home]) await closeDisk(one, ctx);
    await takeDisk(home, nextOf(home));
    await openDisk(home, ctx);
  });
}

/** Undoes swapInNextDisk. @param hadDisk false: the server had none before, and has none again. No server runs. */
export async function swapBackDisk(home: string, hadDisk: boolean, ctx: DriverContext): Promise<void> {
  await alone(home, async () => {
    if (!hadDisk) return removeDisk(home, ctx);
    if (!hasDiskAside(home)) return;
    await closeDisk(home, ctx);
    await takeBackDisk(home);
    await openDisk(home, ctx);
  });
}

/** Unmounts the next disk, whose directory next/ can be removed then, and deletes the one aside. Absent is success. */
export async function dropOtherDisks(home: string, ctx: DriverContext): Promise<void> {
  await closeDisk(nextOf(home), ctx);
  await removeDiskAside(home);
}

/** Unmounts all disks of a server that is to be removed. */
export async function closeServerDisks(home: string, ctx: DriverContext): Promise<void> {
  for (const one of [nextOf(home), home]) await closeDisk(one, ctx);
}

const nextOf = (home: string): string => path.join(home, 'next');

/** To at least `bytes`; no disk is success. @param stop ends the server, where that is needed to grow its disk */
export async function growServerDisk(
  { path: home }: ServerDirectory,
  bytes: number,
  stop: () => Promise<void>,
  ctx: DriverContext,
): Promise<void> {
  if (diskOf(home) === null || ((await sizeOfDisk(home)) ?? 0) >= bytes) return;
  if ((await growDisk(home, bytes, ctx)) === 'grown') return;
  await stop();
  // Nobody mounts it in between.
  await alone(home, async () => {
    await growClosedDisk(home, bytes, ctx);
    await openDisk(home, ctx);
  });
}

/** Next to nothing is free on a disk of less than `bytes`: the server may not start any more. */
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

// What did not work is tried again for the next server.
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
