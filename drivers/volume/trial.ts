// Tests whether images can be mounted here by mounting a tiny one: it depends on permissions, kernel and programs, and
// in containers no check of these is reliable.
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { driverContext } from '../../core/driver';
import type { DriverContext } from '../../core/driver';
import { abandonedTrials, makeTrial } from '../trial';
import { fileSystemBytes, format, loopsOf, mount, unmount } from './ext4';
import type { Image } from './ext4';
import { removeUnmountedTree } from './layout';

const trialBytes = 2 * 2 ** 20;

/** Makes, mounts and removes a small image in `directory`. Throws the error. */
export async function tryMount(directory: string, ctx: DriverContext): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o711 });
  for (const left of abandonedTrials(directory)) await removeTrial(left, ctx);
  const home = makeTrial(directory);
  try {
    await mountOnce(imageIn(home), ctx);
  } finally {
    // Clean up after a timeout too.
    await removeTrial(home, driverContext(5_000));
  }
}

async function mountOnce(image: Image, ctx: DriverContext): Promise<void> {
  await format(image.file, trialBytes, ctx);
  await mkdir(image.point);
  await mount(image, ctx);
  const [device = image.file] = await loopsOf(image.file, ctx);
  await fileSystemBytes(device);
  await mkdir(path.join(image.point, 'data'));
}

async function removeTrial(home: string, ctx: DriverContext): Promise<void> {
  await unmount(imageIn(home), ctx).catch(() => undefined);
  await removeUnmountedTree(home, ctx);
}

function imageIn(home: string): Image {
  return { file: path.join(home, 'image'), point: path.join(home, 'mount'), lock: path.join(home, 'lock') };
}
