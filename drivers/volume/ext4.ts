// An ext4 image on a loop device. Programs that modify an image hold a lock file of the volume themselves: if the
// platform is killed while one is running, the next call waits for it instead of starting a second.
import { open, truncate } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandFailed, run, runToItsEnd } from '../../core/process/command';
import { checkpoint, DriverError } from '../../core/driver';
import type { DriverContext } from '../../core/driver';
import { mountAt } from './mounts';

export interface Image {
  file: string;
  point: string;
  lock: string;
}

/** The volume is in use by programs, and cannot be unmounted. */
export class VolumeInUse extends DriverError {
  constructor() {
    super('transient', 'The volume is in use. The change continues when its application has stopped.', 5_000);
  }
}

const magicNumber = 0xef53;

/**
 * Makes a sparse image with a file system of `bytes`, without blocks reserved for root: the size is the customer's.
 * @param options of mkfs.ext4(8)
 */
export async function format(
  file: string,
  bytes: number,
  ctx: DriverContext,
  options: readonly string[] = [],
): Promise<void> {
  await (await open(file, 'wx', 0o600)).close();
  await truncate(file, bytes);
  await run('mkfs.ext4', ['-q', '-F', '-m', '0', ...options, file], ctx);
}

/**
 * Size in bytes of the file system on a device or in an image; null when there is none.
 * Superblock: linux/Documentation/filesystems/ext4/super.rst (at 1024: s_blocks_count_lo +0x4, s_log_block_size +0x18,
 * s_magic +0x38, s_blocks_count_hi +0x150).
 */
export async function fileSystemBytes(source: string): Promise<number | null> {
  const handle = await open(source, 'r');
  try {
    const block = Buffer.alloc(1024);
    const { bytesRead } = await handle.read(block, 0, 1024, 1024);
    if (bytesRead < 1024 || block.readUInt16LE(0x38) !== magicNumber) return null;
    const blocks = block.readUInt32LE(0x4) + block.readUInt32LE(0x150) * 2 ** 32;
    return blocks * 1024 * 2 ** block.readUInt32LE(0x18);
  } finally {
    await handle.close();
  }
}

/** Loop devices attached to the image. */
export async function loopsOf(file: string, ctx: DriverContext): Promise<string[]> {
  const list = await run('losetup', ['--list', '--noheadings', '--output', 'NAME', '--associated', file], ctx);
  return list
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
}

/** The mounted device of this image, or null. Throws DriverError `conflict` when something else is mounted there. */
export async function deviceAt(image: Image, ctx: DriverContext): Promise<string | null> {
  const mounted = await mountAt(image.point);
  if (mounted === null) return null;
  if ((await loopsOf(image.file, ctx)).includes(mounted.source)) return mounted.source;
  throw new DriverError('conflict', 'Something else is mounted where this volume belongs.');
}

/** Waits for a program that outlived an interrupted call. Throws DriverError `transient` on timeout. */
export async function waitForEarlierStep(image: Image, ctx: DriverContext): Promise<void> {
  await locked(image, ['true'], ctx).catch((error: unknown) => {
    if (error instanceof CommandFailed)
      throw new DriverError('transient', 'An earlier step on this volume has not finished yet.', 2_000);
    throw error;
  });
}

/** @param options of mount(8), in addition to the defaults */
export async function mount(image: Image, ctx: DriverContext, options: readonly string[] = []): Promise<void> {
  const all = ['loop', 'nosuid', 'nodev', ...options].join();
  await locked(image, ['mount', '-t', 'ext4', '-o', all, image.file, image.point], ctx);
}

/**
 * Unmounts and waits until no loop device uses the image: a remaining one is a mount in another namespace, and the
 * image must not be modified then. Throws VolumeInUse; it may then be unmounted here and still be mounted elsewhere.
 */
export async function unmount(image: Image, ctx: DriverContext): Promise<void> {
  while ((await deviceAt(image, ctx)) !== null) await locked(image, ['umount', image.point], ctx).catch(throwInUse);
  for (const giveUp = Date.now() + 2_000; Date.now() < giveUp; await sleep(20)) {
    if ((await loopsOf(image.file, ctx)).length === 0) return;
  }
  throwInUse();
}

/** As `unmount`, asked again: namespaces that begin elsewhere hold a mount for a moment. */
export async function unmountSoon(image: Image, withinMs: number, ctx: DriverContext): Promise<void> {
  for (const end = Date.now() + withinMs; ; await sleep(200)) {
    checkpoint(ctx);
    try {
      return await unmount(image, ctx);
    } catch (error) {
      if (!(error instanceof VolumeInUse) || Date.now() > end) throw error;
    }
  }
}

/** Grows a mounted file system to the size of its image, where the kernel and the permissions allow it. */
export async function growOnline(image: Image, device: string, ctx: DriverContext): Promise<'grown' | 'refused'> {
  try {
    await locked(image, ['losetup', '--set-capacity', device], ctx);
    await lockedToTheEnd(image, ['resize2fs', device], ctx);
    return 'grown';
  } catch (error) {
    if (error instanceof CommandFailed) return 'refused';
    throw error;
  }
}

/** Grows an unmounted file system to the size of its image. Throws DriverError `conflict` when it is damaged. */
export async function growOffline(image: Image, ctx: DriverContext): Promise<void> {
  await lockedToTheEnd(image, ['e2fsck', '-f', '-p', image.file], ctx).catch(requireRepaired);
  await lockedToTheEnd(image, ['resize2fs', image.file], ctx);
}

// e2fsck(8): 1 and 2 mean that errors were corrected, 4 and more that they were not.
function requireRepaired(error: unknown): void {
  if (!(error instanceof CommandFailed)) throw error;
  if (error.code === null || error.code >= 4)
    throw new DriverError(
      'conflict',
      'The file system of this volume is damaged. An operator has to repair it with e2fsck.',
    );
}

function throwInUse(): never {
  throw new VolumeInUse();
}

function locked(image: Image, command: string[], ctx: DriverContext): Promise<string> {
  return run('flock', ['--no-fork', '--timeout', '10', image.lock, ...command], ctx);
}

function lockedToTheEnd(image: Image, command: string[], ctx: DriverContext): Promise<string> {
  return runToItsEnd('flock', ['--no-fork', '--timeout', '10', image.lock, ...command], ctx);
}
