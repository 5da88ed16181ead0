// The disk of a server, where its storage is hard: an image in the server directory, in which the data are. Servers
// from before have none, and neither has a host that cannot mount images.
import { chmod, stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import { driverContext, type DriverContext } from '../driver';
import { diskOf, growDisk, makeDisk, openDisk } from '../volume/limited_disk';
import { tryMount } from '../volume/trial';
import type { EngineContext, ServerDirectory } from './server_directory';

const mountWithinMs = 30_000;
// ext4 takes some of the image for itself.
const usableShare = 0.88;
const opening = new Map<string, Promise<void>>();
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
  const going = opening.get(home) ?? openDisk(home, driverContext(mountWithinMs)).finally(() => opening.delete(home));
  opening.set(home, going);
  await going;
}

/** To at least `bytes`; no disk is success. */
export async function growServerDisk(
  { path: home }: ServerDirectory,
  bytes: number,
  ctx: DriverContext,
): Promise<'grown' | 'refused'> {
  const point = diskOf(home);
  if (point === null) return 'grown';
  const image = await stat(path.join(home, 'disk.ext4'));
  const { blocks, bsize } = await statfs(point);
  // An interrupted call has grown the image alone.
  if (image.size >= bytes && blocks * bsize >= image.size * usableShare) return 'grown';
  return growDisk(home, Math.max(bytes, image.size), ctx);
}

async function isMounted(home: string, point: string): Promise<boolean> {
  const [outside, inside] = await Promise.all([stat(home), stat(point)]);
  return outside.dev !== inside.dev;
}

// What did not work is tried again for the next server.
async function canMount({ directory, disks }: EngineContext, ctx: DriverContext): Promise<boolean> {
  if ((disks !== true && process.env.XDISKS === undefined) || process.getuid?.() !== 0) return false;
  if (mountable.has(directory)) return true;
  const works = await tryMount(directory, ctx).then(
    () => true,
    () => false,
  );
  if (works) mountable.add(directory);
  return works;
}
