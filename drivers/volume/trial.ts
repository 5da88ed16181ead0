// Whether an image can be mounted here is found out by mounting a tiny one: rights, kernel and programs all have a say,
// and no list of them tells the truth about containers.
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { driverContext } from '../../core/driver';
import type { DriverContext } from '../../core/driver';
import { abandonedTrials, makeTrial } from '../trial';
import { fileSystemBytes, format, loopsOf, mount, unmount } from './ext4';
import type { Image } from './ext4';
import { removeUnmountedTree } from './layout';

const trialBytes = 2 * 2 ** 20;

/** Makes, mounts and takes away a small image in `directory`. Throws what went wrong. */
export async function tryMount(directory: string, ctx: DriverContext): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o711 });
  for (const left of abandonedTrials(directory)) await removeTrial(left, ctx);
  const home = makeTrial(directory);
  try {
    await mountOnce(imageIn(home), ctx);
  } finally {
    // Cleans up after a time-out too.
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
