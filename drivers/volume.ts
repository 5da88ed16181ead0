// Volumes: directories with a size. Two engines: a directory whose use is measured (soft limit) and a disk image
// on a loop device (hard limit).
import { DriverError, driverContext } from '../core/driver';
import type { ResourceDriver } from '../core/driver';
import { directoryVolumes } from './volume/directory';
import { loopImageVolumes } from './volume/loop_image';

/** Bytes in one GB of `size_gb`: 2^30, as sizes of memory and disks are counted everywhere on the platform. */
export const gigabyteBytes = 2 ** 30;

/** `size_gb` is in units of 2^30 bytes. */
export interface VolumeSpec {
  size_gb: number;
}

/** hard: writes fail at the limit. soft: use is measured and shown, nothing stops a writer. */
export type VolumeEnforcement = 'hard' | 'soft';

/** `used_bytes` is null when it could not be measured in the time of one look. `path` is where the user's files are. */
export interface VolumeObserved {
  size_gb: number;
  used_bytes: number | null;
  over_quota: boolean;
  enforcement: VolumeEnforcement;
  path: string;
}

export interface VolumeDriver extends ResourceDriver<VolumeSpec, VolumeObserved> {
  readonly enforcement: VolumeEnforcement;
}

export type VolumeDriverName = 'directory' | 'loop_image';
type VolumeDriverChoice = 'auto' | VolumeDriverName;

interface VolumeOptions {
  directory: string;
  choice: VolumeDriverChoice;
  sizeUnitBytes?: number;
}
export interface VolumeDrivers {
  default: VolumeDriver;
  byName: Map<string, VolumeDriver>;
}

/**
 * The drivers of this host. `default` is for new volumes; an existing one keeps the driver it was made with, so both
 * are
 * in `byName`. `auto` takes the loop image where a trial mount works, else the directory.
 * Throws DriverError `unsupported` when the chosen one cannot work here.
 */
export async function openVolumeDrivers(options: VolumeOptions): Promise<VolumeDrivers> {
  const place = { directory: options.directory, sizeUnitBytes: options.sizeUnitBytes ?? gigabyteBytes };
  const directory = directoryVolumes(place);
  const loopImage = loopImageVolumes(place);
  const byName = new Map([directory, loopImage].map((driver) => [driver.name, driver]));
  if (options.choice === 'auto') return { default: await firstHealthy(loopImage, directory), byName };
  const chosen = options.choice === 'directory' ? directory : loopImage;
  await requireHealthy(chosen);
  return { default: chosen, byName };
}

async function firstHealthy(preferred: VolumeDriver, fallback: VolumeDriver): Promise<VolumeDriver> {
  const { healthy } = await preferred.fingerprint(driverContext(20_000));
  if (healthy) return preferred;
  await requireHealthy(fallback);
  return fallback;
}

async function requireHealthy(driver: VolumeDriver): Promise<void> {
  const { healthy, reason } = await driver.fingerprint(driverContext(20_000));
  if (!healthy)
    throw new DriverError(
      'unsupported',
      `The volume driver ${driver.name} (VOLUME_DRIVER) does not work on this host. ${reason}`,
    );
}
