// The worker inside a process: the drivers of this host and the loop that uses them.
import { openVolumeDrivers } from '../drivers/volume';
import { startLoop, type Loop } from '../jobs/loop';
import { listen } from './listener';
import type { Platform } from './platform';

/** Opens the drivers and starts the loop. */
export async function startWorker(platform: Platform): Promise<Loop> {
  const { config, database, databaseUrl, secrets, probes, log } = platform;
  const volumes = await openVolumeDrivers({ directory: config.volumeDir, choice: config.volumeDriver });
  return startLoop({ database, config, secrets, probes, log, drivers: { volumes }, listen: (handlers) => listen(databaseUrl, handlers, log) });
}
