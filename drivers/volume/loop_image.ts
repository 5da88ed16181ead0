// A volume as an ext4 image on a loop device. The limit is hard: writes fail with ENOSPC. Requires permission to mount.
import { lstat, mkdir, stat, statfs, truncate } from 'node:fs/promises';
import path from 'node:path';
import { absentIsNull } from '../../core/files';
import { CommandFailed } from '../../core/process/command';
import { DriverError, asDriverErrors, checkpoint } from '../../core/driver';
import type { Desired, DriverContext, Ensured, Fingerprint, Observation } from '../../core/driver';
import type { HostVolumeDriver, HostVolumeObserved, HostVolumeSpec } from '../volume';
import {
  deviceAt,
  fileSystemBytes,
  format,
  growOffline,
  growOnline,
  loopsOf,
  mount,
  unmount,
  VolumeInUse,
  waitForEarlierStep,
} from './ext4';
import type { Image } from './ext4';
import { filesOfImage, imageFiles, imageIn, removeOtherImages } from './image_files';
import {
  removeLeftovers,
  removeVolume,
  findVolume,
  listOwned,
  filesMissing,
  requireGrowth,
  createVolume,
  nameTaken,
} from './layout';
import type { VolumeRoot } from './layout';
import { areMountedElsewhere } from './mounts';
import { tryMount } from './trial';

type Volume = Desired<HostVolumeSpec>;

/** `device` is the loop device when mounted. `bytes` is the smaller size of the image and its file system. */
interface ImageState {
  fileBytes: number;
  bytes: number;
  device: string | null;
  whole: boolean;
}

/** The driver on `directory`; `sizeUnitBytes`: bytes per GB. */
export function loopImageVolumes(options: { directory: string; sizeUnitBytes: number }): HostVolumeDriver {
  const place: VolumeRoot = { ...options, driver: 'loop_image' };
  return {
    name: place.driver,
    enforcement: 'hard',
    fingerprint: (ctx) => fingerprint(place, ctx),
    observe: (r, ctx) => asDriverErrors(() => observe(place, r, ctx)),
    ensure: (r, _obs, ctx) => asDriverErrors(() => ensure(place, r, ctx)),
    remove: (r, _obs, ctx) => asDriverErrors(() => remove(place, r, ctx)),
    list: (ctx) => listOwned(place, ctx),
    files: imageFiles(place),
  };
}

async function fingerprint(place: VolumeRoot, ctx: DriverContext): Promise<Fingerprint> {
  try {
    await asDriverErrors(() => tryMount(place.directory, ctx));
    const disk = await statfs(place.directory);
    return {
      healthy: true,
      reason: null,
      facts: { enforcement: 'hard', free_bytes: disk.bavail * disk.bsize, total_bytes: disk.blocks * disk.bsize },
    };
  } catch (error) {
    return { healthy: false, reason: `A disk image cannot be mounted on this host: ${messageOf(error)}`, facts: {} };
  }
}

function messageOf(error: unknown): string {
  const output = error instanceof CommandFailed ? error.stderr.split('\n')[0] : '';
  return output || (error as Error).message;
}

async function observe(place: VolumeRoot, r: Volume, ctx: DriverContext): Promise<Observation<HostVolumeObserved>> {
  checkpoint(ctx);
  const found = await findVolume(place, r.id);
  if (found.state !== 'ours') return found;
  try {
    return await observeImage(place, r, imageIn(found.home), ctx);
  } catch (error) {
    if (error instanceof DriverError && error.reason === 'conflict') return damaged(imageIn(found.home), error.message);
    throw error;
  }
}

async function ensure(place: VolumeRoot, r: Volume, ctx: DriverContext): Promise<Ensured> {
  checkpoint(ctx);
  const bytes = r.spec.size_gb * place.sizeUnitBytes;
  const found = await findVolume(place, r.id);
  if (found.state === 'foreign') throw nameTaken();
  if (found.state === 'absent') await create(place, r, bytes, ctx);
  const growth = await ensureImage(place, r, bytes, ctx);
  return { ref: { driver: place.driver, name: r.id }, ...(growth === 'waiting' && { waiting: growsLater(r) }) };
}

async function remove(place: VolumeRoot, r: Volume, ctx: DriverContext): Promise<void> {
  checkpoint(ctx);
  const found = await findVolume(place, r.id);
  if (found.state !== 'ours') return removeLeftovers(place, r.id, ctx);
  const image = imageIn(found.home);
  await waitForEarlierStep(image, ctx);
  await removeOtherImages(found.home, ctx);
  await unmount(image, ctx);
  await removeVolume(place, r.id, ctx);
}

async function observeImage(
  place: VolumeRoot,
  r: Volume,
  image: Image,
  ctx: DriverContext,
): Promise<Observation<HostVolumeObserved>> {
  const state = await inspectImage(image, ctx);
  const diff = difference(state, r.spec.size_gb * place.sizeUnitBytes);
  const used = state.device === null ? null : await usedBytes(image.point);
  return {
    state: 'present',
    upToDate: diff === undefined,
    observed: observedOf(image, Math.floor(state.bytes / place.sizeUnitBytes), used),
    diff,
  };
}

// Only `ensure` throws for a damaged volume: it must remain deletable.
function damaged(image: Image, diff: string): Observation<HostVolumeObserved> {
  return { state: 'present', upToDate: false, observed: observedOf(image, 0, null), diff };
}

function observedOf(image: Image, sizeGb: number, usedBytes: number | null): HostVolumeObserved {
  return { size_gb: sizeGb, used_bytes: usedBytes, over_quota: false, enforcement: 'hard', path: filesOfImage(image) };
}

async function create(place: VolumeRoot, r: Volume, bytes: number, ctx: DriverContext): Promise<void> {
  if (r.ref !== undefined) throw filesMissing();
  await removeLeftovers(place, r.id, ctx);
  await createVolume(place, { owner_id: r.id, driver: place.driver }, async (home) => {
    await format(imageIn(home).file, bytes, ctx);
    await mkdir(imageIn(home).point, { mode: 0o711 });
  });
}

async function ensureImage(place: VolumeRoot, r: Volume, bytes: number, ctx: DriverContext): Promise<Growth> {
  const image = imageIn(path.join(place.directory, r.id));
  await waitForEarlierStep(image, ctx);
  const state = await inspectImage(image, ctx);
  requireGrowth(Math.floor(state.fileBytes / place.sizeUnitBytes), r.spec.size_gb);
  const growth = await grow(image, state, bytes, ctx);
  checkpoint(ctx);
  await makePoint(image);
  if ((await deviceAt(image, ctx)) === null) await mount(image, ctx);
  await makeFiles(image);
  return growth;
}

type Growth = 'done' | 'waiting';

// A volume in use is not unmounted: some hosts cannot grow a mounted file system, and a sandbox keeps its own mount, so
// that the image could neither grow nor be used by another instance.
async function grow(image: Image, state: ImageState, bytes: number, ctx: DriverContext): Promise<Growth> {
  if (state.fileBytes < bytes) await truncate(image.file, bytes);
  if (state.bytes >= bytes) return 'done';
  if (state.device !== null && (await growOnline(image, state.device, ctx)) === 'grown') return 'done';
  if (!(await unmountUnused(image, ctx))) return 'waiting';
  await growOffline(image, ctx);
  return 'done';
}

async function unmountUnused(image: Image, ctx: DriverContext): Promise<boolean> {
  if (await areMountedElsewhere(await loopsOf(image.file, ctx))) return false;
  try {
    await unmount(image, ctx);
    return true;
  } catch (error) {
    if (error instanceof VolumeInUse) return false;
    throw error;
  }
}

function growsLater({ spec }: Volume): string {
  return (
    'This host cannot grow a volume while it is in use. ' +
    `The volume grows to ${spec.size_gb} GB at the next restart of its application.`
  );
}

async function inspectImage(image: Image, ctx: DriverContext): Promise<ImageState> {
  const file = await stat(image.file).catch(absentIsNull);
  if (file === null) throw filesMissing();
  const device = await deviceAt(image, ctx);
  // For a mounted file system, the superblock on the device is current; the image may be stale.
  const bytes = await fileSystemBytes(device ?? image.file);
  if (bytes === null) throw new DriverError('conflict', 'The image of this volume contains no file system.');
  const whole = device !== null && ((await lstat(filesOfImage(image)).catch(absentIsNull))?.isDirectory() ?? false);
  return { fileBytes: file.size, bytes: Math.min(bytes, file.size), device, whole };
}

async function usedBytes(point: string): Promise<number> {
  const disk = await statfs(point);
  return (disk.blocks - disk.bfree) * disk.bsize;
}

async function makePoint(image: Image): Promise<void> {
  if ((await lstat(image.point).catch(absentIsNull)) === null) await mkdir(image.point, { mode: 0o711 });
}

// The files are in a subdirectory: it hides lost+found, and prevents writes to an unmounted volume by mistake.
async function makeFiles(image: Image): Promise<void> {
  if ((await lstat(filesOfImage(image)).catch(absentIsNull)) === null)
    await mkdir(filesOfImage(image), { mode: 0o700 });
}

function difference(state: ImageState, bytes: number): string | undefined {
  if (state.fileBytes !== bytes) return `The image has ${state.fileBytes} bytes instead of ${bytes}.`;
  if (state.bytes !== bytes) return `The file system has ${state.bytes} bytes instead of ${bytes}.`;
  if (state.device === null) return 'The image is not mounted.';
  return state.whole ? undefined : 'The directory of the files is missing.';
}
