// The worker inside a process: the drivers of this host and the loop that uses them.
import type { Config } from '../core/config';
import { makeDirectory } from '../core/directory';
import { StartupError } from '../core/startup_error';
import { DriverError } from '../drivers/driver';
import { openVolumeDrivers, type VolumeDrivers } from '../drivers/volume';
import { startLoop, type Loop } from '../jobs/loop';
import { listen } from './listener';
import type { Platform } from './platform';

/** Opens the drivers and starts the loop. @throws StartupError where the chosen driver can't work here */
export async function startWorker(platform: Platform): Promise<Loop> {
  const { config, database, databaseUrl, secrets, probes, log } = platform;
  const volumes = await openDrivers(config);
  return startLoop(
    { database, config, secrets, probes, log, drivers: { volumes }, listen: (handlers) => listen(databaseUrl, handlers, log) },
    { concurrency: config.workerConcurrency, graceMs: config.shutdownGraceSeconds * 1000 },
  );
}

async function openDrivers(config: Config): Promise<VolumeDrivers> {
  try {
    makeDirectory(config.volumeDir, 0o711);
  } catch (error) {
    throw new StartupError(`the volume driver ${config.volumeDriver} cannot work here: ${(error as Error).message}`);
  }
  try {
    return await openVolumeDrivers({ directory: config.volumeDir, choice: config.volumeDriver });
  } catch (error) {
    if (error instanceof DriverError) throw new StartupError(error.message);
    throw error;
  }
}
