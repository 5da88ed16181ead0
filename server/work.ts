// The worker inside a process: the drivers of this host and the loops that use them.
import type { Config } from '../core/config';
import { makeDirectory } from '../core/directory';
import { StartupError } from '../core/startup_error';
import { DriverError } from '../drivers/driver';
import { openVolumeDrivers, type VolumeDrivers } from '../drivers/volume';
import type { HostDrivers } from '../jobs/job';
import { startLoop, type Loop, type LoopParts } from '../jobs/loop';
import { allJobs } from '../jobs/registry';
import { listen } from './listener';
import type { Platform } from './platform';

export interface Worker {
  /** Ports of the ingress, null while another process has it. */
  ingress(): { http: number; https: number | null } | null;
  /** Lets running steps finish for a while, gives back what it holds, and ends. Applications run on. */
  stop(): Promise<void>;
}

export interface WorkerOptions {
  /** Where another process listens on INGRESS_PORT: wait for the port, or refuse to start. */
  whenTaken: 'stand_by' | 'refuse';
}

/** Opens the drivers and starts the loops. @throws StartupError where a chosen driver can't work here */
export async function startWorker(platform: Platform, _options: WorkerOptions): Promise<Worker> {
  const volumes = await openDrivers(platform.config);
  const loop = start(platform, { volumes, host: null }, platform.config.workerConcurrency);
  return { ingress: () => null, stop: () => loop.stop() };
}

function start(platform: Platform, drivers: { volumes: VolumeDrivers; host: HostDrivers | null }, concurrency: number): Loop {
  const { config, database, databaseUrl, secrets, probes, log } = platform;
  const parts: LoopParts = { database, config, secrets, probes, log, drivers, listen: (handlers) => listen(databaseUrl, handlers, log) };
  const jobs = allJobs().filter((job) => Boolean(job.host) === (drivers.host !== null));
  return startLoop(parts, { concurrency, graceMs: config.shutdownGraceSeconds * 1000, jobs });
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
