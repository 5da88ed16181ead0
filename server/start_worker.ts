// The worker inside a process: the drivers of this host and the loops that use them.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../core/config';
import { makePassableDirectory } from '../core/directory';
import { StartupError } from '../core/startup_error';
import { openCertificates } from '../drivers/certificates/open';
import { operatorCertificate } from '../drivers/certificates/operator';
import { DriverError, driverContext } from '../core/driver';
import { openVolumeDrivers } from '../drivers/volume/open';
import type { VolumeDriver, VolumeDrivers } from '../drivers/volume';
import type { Drivers } from '../jobs/job';
import { startLoop, type Loop, type LoopParts } from '../jobs/loop';
import { allJobs } from '../jobs/all_jobs';
import { installationId } from '../models/applications/cluster_facts';
import { openHost, type Host, type SharedServers } from './agents/host';
import type { CheckCounts } from '../jobs/observers/check_loop';
import { PortTaken } from './agents/ingress';
import { openSharedMailServers } from './agents/mail/mail';
import { openSharedRegistry } from './agents/registry';
import { startInstallationWal } from './backup/wal_agent';
import { startObservers } from './agents/observers/observers';
import { startReleaseNotice } from './platform/release_notice';
import { openClusterVolumes } from './platform/cluster';
import { claimHost, HostTaken } from './platform/host_claim';
import { listen } from './platform/listener';
import type { Platform } from './platform/platform';

/** Background jobs that a process runs at the same time. */
const JOBS_AT_ONCE = 4;
const STAND_BY_MS = 2_000;
/** The database ends sessions of a machine that has gone sooner, see platform/host_claim.ts. */
const MACHINE_LOST_MS = 30_000;
const FACTS_WITHIN_MS = 5_000;
const NAMESERVER_WITHIN_MS = 2_000;
/** Steps of instances and applications wait on processes, not on this one: many at a time cost little. */
const HOST_STEPS = 16;

export interface Worker {
  /** Ports of the ingress, null while another process has it. */
  ingress(): { http: number; https: number | null } | null;
  /** Whether DNS zones are answered; null where this process does not see to it. */
  nameserver(): Promise<boolean> | null;
  /** What its checks of observers have come to. */
  /** What its host gives units: facts of the runtime; none where another process runs the applications. */
  runtimeFacts(): Promise<Record<string, unknown>>;
  checks(): CheckCounts;
  /** ms since the loop that is silent for longest has looked for work, or tried to. */
  silentMs(): number;
  /** Lets running steps finish for a while, releases its leases, and stops. Applications keep running. */
  stop(): Promise<void>;
}

export interface WorkerOptions {
  /** Where another process listens on INGRESS_PORT: wait for the port, or refuse to start. */
  whenTaken: 'stand_by' | 'refuse';
}

/** Opens the drivers and starts the loops. @throws StartupError where a chosen driver can't work here */
export async function startWorker(platform: Platform, { whenTaken }: WorkerOptions): Promise<Worker> {
  const ofCluster = await openClusterVolumes(platform.config, installationId(platform.database));
  // Both try what the host can do by running programs, and wait for these most of the time.
  const opening = openDrivers(platform.config, ofCluster?.driver);
  opening.catch(() => {}); // its error is reported once the host is closed again
  const mail = await openSharedMailServers(platform);
  // Last: whoever connects to it takes the worker for ready.
  const registry = await openSharedRegistry(platform);
  const closeShared = async (): Promise<void> => {
    await mail?.close();
    await registry?.close();
  };
  const forHost = { volumes: opening, shared: { registry: registry?.driver ?? null, mail } };
  const watch = await watchHost(platform, forHost, whenTaken).catch(async (error: unknown) => {
    await closeShared();
    throw error;
  });
  const volumes = await opening;
  const operators = operatorCertificate(platform.config, () => {});
  const drivers = { volumes, host: null, ...certificates(platform.config) };
  const loop = start(platform, { ...drivers, ...(operators && { operatorCertificate: operators }) }, JOBS_AT_ONCE);
  const observers = startObservers(platform);
  const stopReleaseNotice = startReleaseNotice(platform);
  return {
    ingress: () => watch.host()?.drivers.ingress.ports ?? null,
    nameserver: () => isNameserverHealthy(watch.host()),
    runtimeFacts: async () =>
      (await watch.host()?.drivers.runtime.fingerprint(driverContext(FACTS_WITHIN_MS)))?.facts ?? {},
    checks: () => observers.counts(),
    silentMs: () => Math.max(loop.silentMs(), watch.silentMs()),
    async stop() {
      await Promise.all([observers.stop(), loop.stop(), watch.stop(), stopReleaseNotice()]);
      await closeShared();
      operators?.close();
      ofCluster?.close();
    },
  };
}

function isNameserverHealthy(host: Host | null): Promise<boolean> | null {
  const found = host?.drivers.nameserver?.fingerprint(driverContext(NAMESERVER_WITHIN_MS));
  return found ? found.then(({ healthy }) => healthy) : null;
}

interface HostWatch {
  host(): Host | null;
  silentMs(): number;
  stop(): Promise<void>;
}

/** What the process has opened for its host, whether it is one or not. */
interface OpenedForHost {
  volumes: Promise<VolumeDrivers>;
  shared: SharedServers;
}

/** Runs the applications, at once or as soon as the process that does has gone. */
async function watchHost(
  platform: Platform,
  parts: OpenedForHost,
  whenTaken: WorkerOptions['whenTaken'],
): Promise<HostWatch> {
  const stopping = new AbortController();
  let running = await firstHost(platform, parts, whenTaken);
  const pause = (): Promise<unknown> =>
    sleep(STAND_BY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
  const follow = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      if (running) {
        await Promise.race([running.lost, once(stopping.signal, 'abort')]);
        if (stopping.signal.aborted) return;
        await running.stop();
        running = null;
      }
      await pause();
      if (stopping.signal.aborted) return;
      running = await startHost(platform, parts).catch((error: unknown) => {
        if (!isTaken(error)) platform.log.warn({ err: error }, 'the applications could not be taken over');
        return null;
      });
    }
  };
  const following = follow();
  return {
    host: () => running?.host ?? null,
    silentMs: () => running?.silentMs() ?? 0,
    async stop() {
      stopping.abort();
      await following;
      await running?.stop();
    },
  };
}

const isTaken = (error: unknown): error is Error => error instanceof PortTaken || error instanceof HostTaken;

/** null: it stands by. @throws StartupError where it must not */
async function firstHost(
  platform: Platform,
  parts: OpenedForHost,
  whenTaken: WorkerOptions['whenTaken'],
): Promise<RunningHost | null> {
  for (const end = Date.now() + MACHINE_LOST_MS; ; await sleep(STAND_BY_MS)) {
    const started = await startHost(platform, parts).catch((error: unknown) => {
      if (isTaken(error)) return error;
      throw error;
    });
    if (!(started instanceof Error)) return started;
    const mayBeGone = started instanceof HostTaken && !started.isHere && Date.now() < end;
    if (whenTaken === 'refuse' && !mayBeGone) throw new StartupError(started.message);
    platform.log.info({ reason: started.message }, 'another process runs the applications; standing by');
    if (whenTaken === 'stand_by') return null;
  }
}

interface RunningHost {
  host: Host;
  /** Resolves when another process runs the applications. */
  lost: Promise<void>;
  silentMs(): number;
  stop(): Promise<void>;
}

/** @throws PortTaken, HostTaken, StartupError */
async function startHost(platform: Platform, parts: OpenedForHost): Promise<RunningHost> {
  const claim = await claimHost(platform.databaseUrl, platform.log);
  try {
    const host = await openHost(platform, parts.shared);
    const volumes = await parts.volumes.catch(async (error: unknown) => {
      await host.close();
      throw error;
    });
    const { http, https } = host.drivers.ingress.ports;
    // With INGRESS_PORT=0 the ports are known only now.
    platform.config = Object.freeze({ ...platform.config, ingressPort: http, ingressTlsPort: https });
    const wal = await startInstallationWal(platform);
    const loop = start(platform, { volumes, host: host.drivers }, HOST_STEPS, () => claim.isHeld());
    const stop = async (): Promise<void> => {
      await loop.stop();
      await wal?.stop();
      await host.close();
      await claim.release();
    };
    return { host, lost: claim.lost, silentMs: () => loop.silentMs(), stop };
  } catch (error) {
    await claim.release();
    throw error;
  }
}

function certificates({
  acmeDirectory: directory,
  acmeEmail: email,
  acmeCaFile: caFile,
}: Config): Pick<Drivers, 'certificates'> {
  return directory === null ? {} : { certificates: openCertificates({ directory, email, caFile }) };
}

function start(platform: Platform, drivers: Drivers, concurrency: number, mayClaim?: () => boolean): Loop {
  const { config, database, databaseUrl, secrets, probes, log } = platform;
  const parts: LoopParts = {
    database,
    config,
    secrets,
    probes,
    log,
    drivers,
    listen: (handlers) => listen(databaseUrl, handlers, log),
  };
  const jobs = allJobs().filter((job) => Boolean(job.host) === (drivers.host !== null));
  const graceMs = config.shutdownGraceSeconds * 1000;
  return startLoop(parts, { concurrency, graceMs, jobs, ...(mayClaim && { mayClaim }) });
}

async function openDrivers(config: Config, ofCluster?: VolumeDriver): Promise<VolumeDrivers> {
  try {
    makePassableDirectory(config.volumeDir);
  } catch (error) {
    throw new StartupError(`the volume driver ${config.volumeDriver} cannot work here: ${(error as Error).message}`);
  }
  try {
    return await openVolumeDrivers({ directory: config.volumeDir, choice: config.volumeDriver, ofCluster });
  } catch (error) {
    if (error instanceof DriverError) throw new StartupError(error.message);
    throw error;
  }
}
