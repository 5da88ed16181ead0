// The files of a volume on an image, read and replaced as a whole. Beside the image of the volume:
//   snapshot.ext4  a copy of it on shared blocks, while a backup is made of it
//   next.ext4      the image of a restore, which takes the place of the other by one rename
import { lstat, mkdir, readFile, rename, rm, rmdir, statfs, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { asDriverErrors, checkpoint, DriverError, unboundedContext } from '../../core/driver';
import type { Desired, DriverContext } from '../../core/driver';
import { absentIsNull, syncDirectory } from '../../core/files';
import { CommandFailed, run } from '../../core/process/command';
import type { FilesRead, FilesReplacement, FilesToRead, HostVolumeSpec, VolumeFiles } from '../volume';
import {
  deviceAt,
  format,
  loopsOf,
  mount,
  unmount,
  unmountSoon,
  VolumeInUse,
  waitForEarlierStep,
  type Image,
} from './ext4';
import { createVolume, findVolume, nameTaken, requireVolume, type VolumeRoot } from './layout';
import { areMountedElsewhere } from './mounts';
import { forgetReplacement, noteReplacement, readReplacement, requireFreeBytes } from './replacement';

type Volume = Desired<HostVolumeSpec>;

/** Of a file system that has no more room than this, a program says that it is full. */
const FULL_BYTES = 4 * 2 ** 20;
const ownersName = '.owners';
const UNMOUNTED_WITHIN_MS = 60_000;

export function imageFiles(place: VolumeRoot): VolumeFiles {
  return {
    read: (r, read, ctx) => asDriverErrors(() => readFiles(place, r, read, ctx)),
    replace: (r, replacement, ctx) => asDriverErrors(() => replaceFiles(place, r, replacement, ctx)),
    discardReplacement: (r, ctx) => asDriverErrors(() => discardReplacement(place, r, ctx)),
  };
}

export function imageIn(home: string): Image {
  return { file: path.join(home, 'volume.ext4'), point: path.join(home, 'mount'), lock: path.join(home, '.lock') };
}

export function filesOfImage(image: Image): string {
  return path.join(image.point, 'data');
}

/** Those of backups and restores that were cut off. Absent is success. */
export async function removeOtherImages(home: string, ctx: DriverContext): Promise<void> {
  for (const name of ['snapshot', 'next']) await removeImage(otherImage(home, name), ctx);
}

async function readFiles<T>(
  place: VolumeRoot,
  r: Volume,
  read: (files: FilesToRead) => Promise<T>,
  ctx: DriverContext,
): Promise<{ result: T; how: FilesRead }> {
  checkpoint(ctx);
  const { home } = await requireVolume(place, r.id);
  const image = imageIn(home);
  await waitForEarlierStep(image, ctx);
  if ((await deviceAt(image, ctx)) === null) throw new DriverError('transient', 'The volume is not ready.');
  const snapshot = await takeSnapshot(home, image, ctx);
  if (snapshot === null) {
    const wasUsed = await isUsed(image, ctx);
    const result = await read(await filesToRead(image));
    return { result, how: wasUsed || (await isUsed(image, ctx)) ? 'live' : 'unused' };
  }
  try {
    return { result: await read(await filesToRead(snapshot)), how: 'snapshot' };
  } finally {
    // The kernel may hold it for a while. Then the next backup removes it, or the end of the volume.
    await removeImage(snapshot, unboundedContext()).catch(() => undefined);
  }
}

// As after a power cut: the copy is taken at one moment, and its journal is replayed when it is mounted. Nothing is
// frozen, which a killed platform would leave so.
async function takeSnapshot(home: string, image: Image, ctx: DriverContext): Promise<Image | null> {
  const snapshot = otherImage(home, 'snapshot');
  await removeImage(snapshot, ctx);
  try {
    await run('sync', ['-f', image.point], ctx);
    await run('cp', ['--reflink=always', '--', image.file, snapshot.file], ctx);
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    // The file system of the host shares no blocks.
    await rm(snapshot.file, { force: true });
    return null;
  }
  await mkdir(snapshot.point, { mode: 0o700 });
  await mount(snapshot, ctx);
  return snapshot;
}

async function replaceFiles(
  place: VolumeRoot,
  r: Volume,
  replacement: FilesReplacement,
  ctx: DriverContext,
): Promise<void> {
  checkpoint(ctx);
  const bytes = r.spec.size_gb * place.sizeUnitBytes;
  const found = await findVolume(place, r.id);
  if (found.state === 'foreign') throw nameTaken();
  // What was lost is made again.
  if (found.state === 'absent')
    await createVolume(place, { owner_id: r.id, driver: place.driver }, async (home) => {
      await format(imageIn(home).file, bytes, ctx);
      await mkdir(imageIn(home).point, { mode: 0o711 });
    });
  const { home } = await requireVolume(place, r.id);
  if ((await readReplacement(home))?.key !== replacement.key) await fillNext(home, bytes, replacement, ctx);
  await swapIn(home, replacement.key, ctx);
}

async function fillNext(
  home: string,
  bytes: number,
  { key, bytes: needed, owners, fill }: FilesReplacement,
  ctx: DriverContext,
): Promise<void> {
  const next = otherImage(home, 'next');
  await removeImage(next, ctx);
  if (needed > bytes) throw tooSmall();
  await requireFreeBytes(home, needed, 'The restore');
  await format(next.file, bytes, ctx);
  await mkdir(next.point, { mode: 0o700 });
  await mount(next, ctx);
  await mkdir(filesOfImage(next), { mode: 0o700 });
  await fill(filesOfImage(next)).catch(async (error: unknown) => {
    const { bavail, bsize } = await statfs(next.point);
    if (error instanceof DriverError && error.reason === 'capacity' && bavail * bsize < FULL_BYTES) throw tooSmall();
    throw error;
  });
  if (owners !== null) await writeFile(path.join(next.point, ownersName), owners, { mode: 0o600 });
  await unmountSoon(next, UNMOUNTED_WITHIN_MS, ctx);
  await run('sync', ['--', next.file], ctx);
  await noteReplacement(home, { key, state: 'filled', owners });
}

async function swapIn(home: string, key: string, ctx: DriverContext): Promise<void> {
  const [image, next] = [imageIn(home), otherImage(home, 'next')];
  await waitForEarlierStep(image, ctx);
  if ((await lstat(next.file).catch(absentIsNull)) !== null) {
    if (await isUsed(image, ctx)) throw new VolumeInUse();
    await unmount(image, ctx);
    await rename(next.file, image.file);
    await syncDirectory(home);
  }
  if ((await deviceAt(image, ctx)) === null) await mount(image, ctx);
  await noteReplacement(home, { key, state: 'done', owners: null });
  await removeImage(next, ctx);
}

async function discardReplacement(place: VolumeRoot, r: Volume, ctx: DriverContext): Promise<void> {
  const found = await findVolume(place, r.id);
  if (found.state !== 'ours') return;
  const { home } = found;
  if ((await readReplacement(home))?.state === 'filled') await forgetReplacement(home);
  await removeImage(otherImage(home, 'next'), ctx);
}

function tooSmall(): DriverError {
  return new DriverError('invalid', 'The files of the backup do not fit into the volume. Enlarge it first.');
}

async function isUsed(image: Image, ctx: DriverContext): Promise<boolean> {
  return areMountedElsewhere(await loopsOf(image.file, ctx));
}

async function filesToRead(image: Image): Promise<FilesToRead> {
  const owners = await readFile(path.join(image.point, ownersName), 'utf8').catch(absentIsNull);
  return { path: filesOfImage(image), owners };
}

async function removeImage(image: Image, ctx: DriverContext): Promise<void> {
  if ((await lstat(image.file).catch(absentIsNull)) !== null) {
    await waitForEarlierStep(image, ctx);
    await unmount(image, ctx);
    await rm(image.file, { force: true });
  }
  await rmdir(image.point).catch(absentIsNull);
  await rm(image.lock, { force: true });
}

function otherImage(home: string, name: string): Image {
  return {
    file: path.join(home, `${name}.ext4`),
    point: path.join(home, name),
    lock: path.join(home, `.${name}.lock`),
  };
}
