import { DriverError, driverContext } from '../../core/driver';
import { gigabyteBytes, type VolumeDriver, type VolumeDriverName, type VolumeDrivers } from '../volume';
import { directoryVolumes } from './directory';
import { loopImageVolumes } from './loop_image';

type VolumeDriverChoice = 'auto' | VolumeDriverName;

interface VolumeOptions {
  directory: string;
  choice: VolumeDriverChoice;
  sizeUnitBytes?: number;
  /** Where a cluster runs applications: new volumes are in it, whatever is chosen. */
  ofCluster?: VolumeDriver;
}

/**
 * The drivers of this host. `default` is for new volumes; an existing one keeps the driver it was made with, so both
 * are in `byName`. `auto` takes the loop image where a trial mount works, else the directory.
 * Throws DriverError `unsupported` when the chosen one cannot work here.
 */
export async function openVolumeDrivers(options: VolumeOptions): Promise<VolumeDrivers> {
  const place = { directory: options.directory, sizeUnitBytes: options.sizeUnitBytes ?? gigabyteBytes };
  const directory = directoryVolumes(place);
  const loopImage = loopImageVolumes(place);
  const { ofCluster } = options;
  const all: VolumeDriver[] = [directory, loopImage, ...(ofCluster ? [ofCluster] : [])];
  const byName = new Map<string, VolumeDriver>(all.map((driver) => [driver.name, driver]));
  if (ofCluster) return { default: ofCluster, byName };
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
