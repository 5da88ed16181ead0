// What builds and runs applications on this machine, opened as one: the ingress first, because who has its port has the
// applications.
import { installationId } from '../../models/applications/cluster_facts';
import { openClusterParts } from '../platform/cluster';
import { join } from 'node:path';
import type { Config } from '../../core/config';
import { makePassableDirectory, hasEntries } from '../../core/directory';
import { ensureDirectoryId } from '../../core/files/directory_id';
import { limits } from '../../core/limits';
import { openLogBudget } from '../../core/log/log_budget';
import type { BuildDriver } from '../../drivers/builder';
import { openBuilder } from '../../drivers/builder/buildpack';
import type { ImageDriver } from '../../drivers/image';
import { openImages } from '../../drivers/image/pull';
import type { IngressDriver } from '../../engines/ingress/ingress';
import type { RegistryDriver } from '../../engines/registry';
import type { RuntimeDriver } from '../../drivers/runtime';
import { openLocalRuntime } from '../../drivers/runtime/local';
import type { ToolchainDriver } from '../../drivers/toolchain';
import { goRelease } from '../../drivers/toolchain/go_release';
import { uvRelease } from '../../drivers/toolchain/python_source';
import { openToolchains } from '../../drivers/toolchain/store';
import { openSource } from '../../drivers/source/git';
import { openSourceUploads } from '../../drivers/source/upload_files';
import type { HostDrivers } from '../../jobs/job';
import { startLogShipper } from './log_shipper';
import { warnOfClosedFolders } from './passable_directories';
import { allLogs, openKindDrivers } from '../../jobs/all_jobs';
import { saveUploadsMark } from '../../models/deployments/source_upload/job_queries';
import type { Platform } from '../platform/platform';
import { outboundOf, sourceOptionsOf } from '../platform/outbound';
import { startBackupStore } from './backup_store';
import { openInstallationAlarms } from './installation_alarms';
import { startCacheCleaning } from './cache_cleaning';
import { startInstallationBackup } from './installation_backup';
import { startInstallationDisks } from './installation_disks';
import { startCdnCounting } from './cdn/cdn';
import { openIngressOf } from './ingress';
import { openMailAgent, type MailServers } from './mail/mail';
import { openGitProviders } from '../../drivers/git_provider/open';
import { openNameserver } from './nameserver';
import { reportIsolation } from './isolation';
import { logNetworks, openNetworksOf } from './networks';
import { openOwnCertificates } from './own_certificates';
import { openObjectStorageAgent } from './object_storage/object_storage';
import { openRegistry } from './registry';
import { withReported } from './reported_traffic';
import { openUnchecked, releaseImagesOf, toolchainDirectory } from './release_images';
import { startRouteFeed } from './route_feed';
import { withLocations } from './route_locations';
import { openRouterLines, startSampler } from './sampler';
import { openStoredRoutes } from './stored_routes';
import { startShipper } from './shipper';
import { startUploadCopies } from './upload_copies';
import { startUnitWatch } from './unit_watch';
import { withPods } from './workloads/usage';
import { openWorkloads } from './workloads/workloads';
import { StartupError } from '../../core/startup_error';
import { DriverError } from '../../core/driver';
import { FIRST_USER_ID, claimUserIds } from '../../drivers/runtime/sandbox/user_ids';

export interface Host {
  drivers: HostDrivers;
  /** Lets open requests finish. Applications run on. */
  close(): Promise<void>;
}

type Closing = () => Promise<void> | void;

/** Servers of the process, which go on when it is the host no more; null: the host opens its own. */
export interface SharedServers {
  registry: RegistryDriver | null;
  mail: MailServers | null;
}

/**
 * @throws PortTaken; StartupError where a directory or a chosen sandbox can't be used
 */
export async function openHost(platform: Platform, shared: SharedServers): Promise<Host> {
  const opened: Closing[] = [];
  const close = async (): Promise<void> => {
    for (const step of opened.splice(0).reverse()) await step();
  };
  try {
    return { drivers: await open(platform, shared, opened), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Pushes how to close each part as it opens it. */
async function open(platform: Platform, shared: SharedServers, opened: Closing[]): Promise<HostDrivers> {
  const { config, database, databaseUrl, log, facts } = platform;
  void platform.engines(); // asked for below; the programs run meanwhile
  const budget = openLogBudget(limits.logBytesPerSecond);
  const lines = openRouterLines({ database, log, budget });
  opened.push(() => lines.close());
  const units = join(config.runtimeDir, 'units');
  const directories = makeDirectories(config);
  const { ingress: bare, cdn } = await openIngressOf(platform, lines, opened);
  const ingress = withLocations(bare, units);
  const stored = openStoredRoutes({ file: join(config.runtimeDir, 'routes.json'), units, log });
  opened.push(() => stored.close());
  ingress.restoreRoutes(await stored.load());
  // Before the runtime, which shows the directory to its units.
  const toolchains = await openToolchainsOf(config);
  const builder = openHostBuilder(toolchains, config);
  const [runtime, servers] = await together(openRuntime(platform, opened), openServers(platform, shared, opened));
  const source = await openSource(sourceOptionsOf(config));
  const shipper = startShipper({ database, runtime, log, budget });
  opened.push(() => shipper.stop());
  const cluster = await openWorkloads(platform, budget, opened);
  const counting = countingOf(platform, ingress, opened);
  const measured = withPods(runtime, cluster.workloads, log);
  const sampler = startSampler({ database, runtime: measured, ingress: counting, log });
  opened.push(() => sampler.stop());
  const feed = await startRouteFeed({
    database,
    databaseUrl,
    ingress,
    stored,
    onCluster: cluster.workloads !== null,
    log,
  });
  opened.push(() => feed.close());
  const cdnCounting = startCdnCounting(cdn, database, log);
  opened.push(() => cdnCounting.finish());
  const outbound = outboundOf(config);
  const gitProviders = openGitProviders(outbound);
  const served = { cdn, outbound, gitProviders, ...servers };
  const uploads = openSourceUploads(config.runtimeDir, platform.fileStore);
  await saveUploadsMark(database, await uploads.ensureMark());
  opened.push(startUploadCopies(platform, uploads));
  const programs = { source, uploads, builder, runtime, ...cluster, images: openHostImages(config) };
  const openReleaseImages = releaseImagesOf(config, servers.registry, toolchains);
  const place = { directories, directoryId: await ensureDirectoryId(config.runtimeDir) };
  const own = { ...programs, openReleaseImages, ingress, ...served, ...place, shipper, facts };
  const drivers: HostDrivers = { ...own, ...(await openKinds(platform, runtime, opened)) };
  const logShipper = startLogShipper({ database, sources: () => allLogs(database, drivers), log, budget });
  opened.push(() => logShipper.stop());
  opened.push(await openOwnCertificates(platform));
  startBackups(platform, drivers, opened);
  startOwnersEyes(platform, drivers, opened);
  const tending = startUnitWatch(platform, drivers);
  opened.push(() => tending.close());
  // Before the last points are written.
  opened.push(() => bare.holdTraffic?.());
  return drivers;
}

async function openKinds(
  { config, database, facts, engines }: Platform,
  runtime: RuntimeDriver,
  opened: Closing[],
): ReturnType<typeof openKindDrivers> {
  const cluster = await openClusterParts(config, installationId(database));
  if (cluster) opened.push(() => cluster.close());
  const drivers = await openKindDrivers({ config, runtime, facts, engines, cluster });
  opened.push(() => drivers.clusterDatabases.forEach((driver) => driver.close()));
  return drivers;
}

/** What operators are shown and told of this machine. */
function startOwnersEyes(platform: Platform, drivers: HostDrivers, opened: Closing[]): void {
  const { database, log } = platform;
  const disks = startInstallationDisks(platform);
  const cleaning = startCacheCleaning({ database, log, caches: drivers.directories.caches }, () => disks.measureSoon());
  opened.push(
    openInstallationAlarms(platform, drivers),
    () => disks.stop(),
    () => cleaning.stop(),
  );
}

function startBackups({ config, log }: Platform, drivers: HostDrivers, opened: Closing[]): void {
  const store = startBackupStore({ config, log, engines: drivers.databases.values() });
  const whole = startInstallationBackup(config, log);
  for (const backups of [store, whole]) if (backups) opened.push(() => backups.stop());
}

/** Beside applications on a cluster there may be further ingresses. */
function countingOf(
  { config, database, log }: Platform,
  ingress: Pick<IngressDriver, 'takeTraffic'>,
  opened: Closing[],
): Pick<IngressDriver, 'takeTraffic'> {
  if (config.workloads !== 'kubernetes') return ingress;
  const reported = withReported({ database, ingress, log });
  opened.push(() => reported.close());
  return reported;
}

/** First of all: what opens later may make its own directory with the way to it, for us alone. */
function makeDirectories({ runtimeDir, databaseDir }: Config): HostDrivers['directories'] {
  const directories = { releases: join(runtimeDir, 'releases'), caches: join(runtimeDir, 'caches') };
  for (const directory of [runtimeDir, join(runtimeDir, 'units'), ...Object.values(directories), databaseDir])
    makePassableDirectory(directory);
  return directories;
}

/** Both results. Where one fails the other is waited for, so that all it has opened can be closed. */
async function together<A, B>(one: Promise<A>, other: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([one, other]);
  return Promise.all([one, other]);
}

/** Opens the engines that listen on separate ports, as far as this machine can run them. */
async function openServers(
  platform: Platform,
  shared: SharedServers,
  opened: Closing[],
): Promise<Pick<HostDrivers, 'nameserver' | 'registry'>> {
  const closable = async <Server extends { close(): Promise<void> }>(
    opening: Promise<Server | null>,
  ): Promise<Server | null> => {
    const server = await opening;
    if (server) opened.push(() => server.close());
    return server;
  };
  const [[dns, images]] = await together(
    together(
      closable(openNameserver(platform)),
      shared.registry ? Promise.resolve(null) : closable(openRegistry(platform)),
    ),
    together(closable(openMailAgent(platform, shared.mail)), closable(openObjectStorageAgent(platform))),
  );
  return { nameserver: dns?.driver ?? null, registry: shared.registry ?? images?.driver ?? null };
}

function openHostBuilder(toolchains: ToolchainDriver, config: Config): BuildDriver {
  const isPortable = config.releaseImages === 'always' || config.workloads === 'kubernetes';
  return openBuilder(toolchains, config.preferredNode, config.preferredPython, isPortable);
}

function openHostImages(config: Config): ImageDriver {
  return openImages(outboundOf(config), openUnchecked());
}

function openToolchainsOf(config: Config): Promise<ToolchainDriver> {
  const { goProxy, pythonIndex, pythonMirror, pythonBuilds } = config;
  const python = { uv: uvRelease, index: pythonIndex, mirror: pythonMirror, builds: pythonBuilds };
  return openToolchains(toolchainDirectory(config), { ...goRelease, proxy: goProxy }, python);
}

async function openRuntime(platform: Platform, opened: Closing[]): Promise<RuntimeDriver> {
  const { config, log } = platform;
  const networks = await openNetworksOf(platform);
  if (networks) opened.push(() => networks.driver.close());
  const runtime = await openLocalRuntime({
    directory: join(config.runtimeDir, 'units'),
    programs: join(config.runtimeDir, 'programs'),
    ports: config.appPorts,
    sandbox: config.sandbox,
    tenantUidBase: await tenantUserIds(config, log),
    readable: [toolchainDirectory(config)],
    networks,
    disks: config.volumeDriver === 'directory' ? 'soft' : 'auto',
    log: (message, error) => log.warn({ err: error }, message),
  });
  opened.push(() => runtime.close());
  await logNetworks(platform, runtime, networks);
  await warnOfClosedFolders(platform, runtime);
  await reportIsolation(platform, runtime);
  return runtime;
}

/**
 * The first of the user ids of tenants; only root has users to give.
 * @throws StartupError where TENANT_UID_BASE names ids of another installation
 */
async function tenantUserIds({ runtimeDir, databaseDir, volumeDir, tenantUidBase }: Config, log: Platform['log']) {
  const unclaimed = tenantUidBase ?? FIRST_USER_ID;
  if (process.getuid?.() !== 0) return unclaimed;
  const isUsed = [join(runtimeDir, 'releases'), databaseDir, volumeDir].some(hasEntries);
  try {
    const { base, sharedWith } = await claimUserIds({ directory: runtimeDir, base: tenantUidBase, isUsed });
    if (sharedWith) log.warn({ directory: sharedWith }, 'tenants of another installation have the same user ids');
    return base;
  } catch (error) {
    if (error instanceof DriverError) throw new StartupError(error.message);
    // The root of a container may be read-only: then its users are its own.
    log.warn({ err: error }, 'user ids of tenants are not claimed on this host');
    return unclaimed;
  }
}
