// Files of a volume that were restored from a backup, which has no images of disks: they get one again.
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import type { DriverContext } from '../../core/driver';
import { syncDirectory } from '../../core/files';
import { format } from './ext4';
import { imageIn } from './image_files';

/**
 * Makes the image of an unmounted volume from the files in the place of its mount. May be repeated.
 * @throws DriverError capacity where the disk of the host is full
 */
export async function placeVolumeFiles(home: string, bytes: number, ctx: DriverContext): Promise<void> {
  const { file, point } = imageIn(home);
  if (!existsSync(file)) {
    const draft = `${file}.new`;
    await rm(draft, { force: true });
    await mkdir(point, { recursive: true, mode: 0o711 });
    // mke2fs(8): copies the files below the directory, with their owners and modes.
    await format(draft, bytes, ctx, ['-d', point]);
    await rename(draft, file);
    await syncDirectory(home);
  }
  for (const name of await readdir(point)) await rm(path.join(point, name), { recursive: true, force: true });
}
