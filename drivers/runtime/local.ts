// Runs units as processes of this host. They are not children to wait for: a control plane comes and goes, they stay.
// All that is known of a unit lies in its run directory (run_directory.ts), so any control plane can take over.
import { chmod, mkdir, rename } from 'node:fs/promises';
import { DriverError, asDriverErrors, checkpoint, untilAborted } from '../../core/driver';
import type { DriverContext, Fingerprint } from '../../core/driver';
import type { EnteredNetwork, NetworkDriver } from '../network';
import { copyFilesForOther } from './copy_files';
import type {
  FilesCopy,
  Handle,
  Listener,
  LogChunk,
  RuntimeDriver,
  StopOptions,
  UnitSpec,
  UnitState,
  UnitUsage,
} from '../runtime';
import { groupOf, killControlGroup, removeGroup } from './cgroup';
import { probeHost, type RuntimeHost } from './host_probe';
import { readHealth } from './sandbox/image_health';
import { readLines, trimBefore } from './log';
import { killUnit, stopUnit } from './units/unit_processes';
import { startMonitor, type Monitor } from './monitor';
import { allProcesses, type Proc } from '../../core/process/processes';
import {
  entriesOf,
  exitOf,
  runDirectoryOf,
  isRunning,
  locationOf,
  readHandle,
  readUnit,
  temporaryName,
} from './run_directory';
import { forwardPort, isForwarded, type UnitForwards } from './forwarded_ports';
import { removeStaging, startUnit } from './start';
import { listenersOfUnit, portsOfUnit } from './listening';
import { findUserRange } from './sandbox/user_ranges';
import { openUnitNetworks, type UnitNetworks } from './units/unit_networks';
import { freePort, isFreeOnLoopback, unitUsage } from './usage';

export interface LocalRuntimeOptions {
  /** Parent of the run directories; created if missing. */
  directory: string;
  /** First and last port for instances. */
  ports: readonly [number, number];
  sandbox: 'auto' | 'bubblewrap' | 'none';
  /** As root, a unit runs with this user id plus the number of its tenant. */
  tenantUidBase: number;
  /** Directories that all units may read, seen at the same path. */
  readable?: readonly string[];
  /** poll: uses no control groups even if the host supports them. */
  limits?: 'auto' | 'poll';
  /** soft: gives units no separate disks even if the host supports them. */
  disks?: 'auto' | 'soft';
  /** Directory for copies of programs that users of tenants cannot reach where they are; absent: none are made. */
  programs?: string;
  /** How often the files of services are measured. Default: 30 seconds. */
  measureServicesEveryMs?: number;
  log?: (message: string, error: unknown) => void;
  /**
   * Absent: this installation never had isolated networks. `isolated`: whether units started from now on get one;
   * `wanted`: only with bubblewrap.
   */
  networks?: { driver: NetworkDriver; isolated: 'required' | 'wanted' | 'no' };
}

const NO_SANDBOX = 'Networks of projects need bubblewrap. Install it, or set NETWORK to shared.';

interface Runtime {
  host: RuntimeHost;
  directory: string;
  monitor: Monitor;
  networks: UnitNetworks | null;
  forwards: UnitForwards;
  isIsolated: boolean;
  starting: Map<string, Promise<Handle>>;
}

/** Probes the features of the host, and starts to monitor existing units. */
export async function openLocalRuntime(options: LocalRuntimeOptions): Promise<RuntimeDriver> {
  const { directory } = options;
  await mkdir(directory, { recursive: true });
  // Tenants may enter their own subdirectories, but not list the directory.
  await chmod(directory, 0o711);
  const runtime = await runtimeOf(options);
  await runtime.networks?.sweep();
  await runtime.networks?.publish();
  return {
    name: 'local',
    fingerprint: () => Promise.resolve(fingerprintOf(runtime, options.networks)),
    start: (spec, ctx) => asDriverErrors(() => start(runtime, spec, ctx)),
    inspect: (handle) => asDriverErrors(() => inspect(runtime, handle)),
    find: (unitId) => asDriverErrors(() => find(runtime, unitId)),
    stop: (handle, options, ctx) => asDriverErrors(() => stop(runtime, handle, options, ctx)),
    destroy: (unitId, ctx) => asDriverErrors(() => destroy(runtime, unitId, ctx)),
    usage: (handles) => asDriverErrors(() => usage(runtime, handles)),
    listening: (handle) => asDriverErrors(() => listening(runtime, handle)),
    listeners: (handle) => asDriverErrors(() => listeners(runtime, handle)),
    health: (handle) => asDriverErrors(() => readHealth(runDirectoryOf(directory, handle.unit_id))),
    readLog: (unitId, position) => asDriverErrors(() => readLog(runtime, unitId, position)),
    trimLog: (unitId, position) => asDriverErrors(() => trimLog(runtime, unitId, position)),
    freePort: (taken, network) =>
      freePort(options.ports, taken, runtime.isIsolated ? runtime.networks?.portCheck(network) : undefined),
    exposesPorts: exposesPorts(runtime, options),
    locationOf: (unitId) => locationOf(runDirectoryOf(directory, unitId)),
    forwardPort: (unitId, port, ctx) => asDriverErrors(() => forwardPort(runtime.forwards, unitId, port, ctx)),
    isForwarded: (unitId, port) => asDriverErrors(() => isForwarded(runtime.forwards, unitId, port)),
    isPortFree: (port, network) =>
      runtime.networks && runtime.isIsolated && network !== undefined
        ? runtime.networks.isFreeForServer(port, network)
        : isFreeOnLoopback(port),
    userRange: (place, tenant) => asDriverErrors(() => findUserRange(runtime.host, place, tenant)),
    copyFiles: (copy, ctx) => asDriverErrors(() => copyFiles(runtime, copy, ctx)),
    list: () => listUnits(directory),
    watch: (ended) => runtime.monitor.watch(ended),
    close: () => (runtime.networks?.close(), runtime.monitor.close()),
  };
}

async function copyFiles({ host, directory }: Runtime, copy: FilesCopy, ctx: DriverContext): Promise<void> {
  checkpoint(ctx);
  await removeStaging(directory, copy.id);
  await copyFilesForOther(host, directory, copy, ctx);
}

async function listUnits(directory: string): Promise<string[]> {
  return [...new Set((await entriesOf(directory)).map(({ unitId }) => unitId))];
}

function exposesPorts({ isIsolated }: Runtime, { networks }: LocalRuntimeOptions): boolean {
  return isIsolated && networks?.driver.ensureMember !== undefined;
}

async function runtimeOf(options: LocalRuntimeOptions): Promise<Runtime> {
  const { directory, measureServicesEveryMs, log = () => undefined } = options;
  const host = await probeHost(options);
  const isolated = options.networks?.isolated ?? 'no';
  if (isolated === 'required' && host.bubblewrap === null) host.unsupportedReason ??= NO_SANDBOX;
  return {
    host,
    directory,
    networks: options.networks ? openUnitNetworks(directory, options.networks.driver, log) : null,
    forwards: { directory, driver: options.networks?.driver.forwards },
    isIsolated: isolated === 'required' || (isolated === 'wanted' && host.bubblewrap !== null),
    starting: new Map(),
    monitor: startMonitor({ directory, measureServicesEveryMs, fallocate: host.fallocate, log }),
  };
}

function fingerprintOf({ host, isIsolated }: Runtime, networks: LocalRuntimeOptions['networks']): Fingerprint {
  const limits = host.groups === null ? 'poll' : `cgroup${host.groups.version}`;
  return {
    healthy: host.unsupportedReason === null,
    reason: host.unsupportedReason,
    facts: {
      images: host.runsImages,
      sandbox: host.bubblewrap === null ? 'none' : 'bubblewrap',
      system_calls: host.seccomp ? 'filtered' : 'all',
      limits,
      users: host.users,
      disk_limit: host.hardDisks ? 'hard' : 'soft',
      process_limit: host.groups === null ? host.processLimit : 'unit',
      ...(networks && isIsolated ? networks.driver.fingerprint().facts : { network: 'shared', way_out: true }),
    },
  };
}

async function start(runtime: Runtime, spec: UnitSpec, ctx: DriverContext): Promise<Handle> {
  checkpoint(ctx);
  const begun = runtime.starting.get(spec.id) ?? begin(runtime, spec);
  return untilAborted(ctx.signal, begun);
}

function begin(runtime: Runtime, spec: UnitSpec): Promise<Handle> {
  const { host, directory, monitor, networks, isIsolated } = runtime;
  const startIn = (network: EnteredNetwork | null) => startUnit(host, directory, spec, network, monitor.checkNow);
  const work = (
    networks && isIsolated && spec.network ? enter(networks, spec, spec.network, startIn) : startIn(null)
  ).finally(() => runtime.starting.delete(spec.id));
  runtime.starting.set(spec.id, work);
  // Monitors the unit even if the caller no longer awaits the start.
  work.then((handle) => monitorUnit(runtime, handle)).catch(() => undefined);
  if (networks && spec.published_port) return work.finally(() => networks.publish());
  return work;
}

/** A unit's isolated network is connected to the network of its project. */
function enter(
  networks: UnitNetworks,
  { id, exposed }: UnitSpec,
  project: string,
  startIn: (network: EnteredNetwork) => Promise<Handle>,
): Promise<Handle> {
  if (!exposed) return networks.within(project, startIn);
  return networks.within(project, () => networks.within(id, startIn, { ...exposed, within: project }));
}

async function monitorUnit(runtime: Runtime, handle: Handle): Promise<void> {
  const unit = await readUnit(runDirectoryOf(runtime.directory, handle.unit_id));
  if (unit !== null) runtime.monitor.add(unit, handle);
}

async function inspect(runtime: Runtime, handle: Handle): Promise<UnitState> {
  const runDirectory = runDirectoryOf(runtime.directory, handle.unit_id);
  const current = readHandle(runDirectory, handle.unit_id);
  // Another unit has the id by now: it was destroyed and started again.
  if (current === null || !isSame(current, handle)) return { state: 'gone' };
  return (await exitOf(runDirectory, handle)) ?? { state: 'running' };
}

async function find(runtime: Runtime, unitId: string): Promise<Handle | null> {
  return readHandle(runDirectoryOf(runtime.directory, unitId), unitId);
}

async function stop(runtime: Runtime, handle: Handle, options: StopOptions, ctx: DriverContext): Promise<void> {
  const runDirectory = runDirectoryOf(runtime.directory, handle.unit_id);
  const current = readHandle(runDirectory, handle.unit_id);
  const unit = await readUnit(runDirectory);
  if (unit === null || current === null || !isSame(current, handle)) return;
  await stopUnit(runDirectory, unit, handle, options, ctx);
}

async function destroy(runtime: Runtime, unitId: string, ctx: DriverContext): Promise<void> {
  const { directory, host, monitor } = runtime;
  const runDirectory = runDirectoryOf(directory, unitId);
  await untilAborted(
    ctx.signal,
    runtime.starting.get(unitId)?.catch(() => undefined),
  );
  checkpoint(ctx);
  await forwardPort(runtime.forwards, unitId, null, ctx);
  monitor.remove(unitId);
  const unit = await readUnit(runDirectory);
  if (unit !== null) {
    await killIn(runDirectory, runDirectory, unitId);
    const trash = temporaryName(directory, 'trash', unitId);
    await rename(runDirectory, trash).catch(unlessAbsent);
    // A shim that had not written its handle yet cannot do so any more, or has just done it.
    await killIn(trash, runDirectory, unitId);
  }
  const group = unit?.group ?? (host.groups && groupOf(host.groups, unitId));
  if (group !== null) {
    await killControlGroup(group);
    if (!(await removeGroup(group)))
      throw new DriverError('transient', 'The control group of the unit is still in use.');
  }
  checkpoint(ctx);
  await removeStaging(directory, unitId);
  monitor.remove(unitId);
  if (unit?.network?.port) await runtime.networks?.publish();
  if (unit?.network) await runtime.networks?.sweep();
}

// Another call was faster.
function unlessAbsent(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}

async function killIn(place: string, runDirectory: string, unitId: string): Promise<void> {
  const [unit, handle] = [await readUnit(place), readHandle(place, unitId)];
  if (unit !== null && handle !== null) await killUnit(runDirectory, unit, handle);
}

async function usage(runtime: Runtime, handles: readonly Handle[]): Promise<Map<string, UnitUsage>> {
  let table: Map<number, Proc> | undefined;
  const all = () => (table ??= allProcesses());
  const found = new Map<string, UnitUsage>();
  for (const handle of handles) {
    const unit = isRunning(handle) ? await readUnit(runDirectoryOf(runtime.directory, handle.unit_id)) : null;
    if (unit !== null) found.set(handle.unit_id, await unitUsage(unit, handle, all));
  }
  return found;
}

async function listening(runtime: Runtime, handle: Handle): Promise<number[] | null> {
  const unit = await readUnit(runDirectoryOf(runtime.directory, handle.unit_id));
  if (unit === null || !isRunning(handle)) return [];
  return portsOfUnit(unit, handle);
}

async function listeners(runtime: Runtime, handle: Handle): Promise<Listener[] | null> {
  const unit = await readUnit(runDirectoryOf(runtime.directory, handle.unit_id));
  if (unit === null || !isRunning(handle)) return [];
  return listenersOfUnit(unit, handle);
}

async function readLog(runtime: Runtime, unitId: string, position: string | null): Promise<LogChunk> {
  const runDirectory = runDirectoryOf(runtime.directory, unitId);
  return readLines(runDirectory, position, async () => {
    const handle = readHandle(runDirectory, unitId);
    return handle !== null && (await exitOf(runDirectory, handle)) !== null;
  });
}

async function trimLog({ directory, host }: Runtime, unitId: string, position: string): Promise<void> {
  await trimBefore(runDirectoryOf(directory, unitId), position, host.fallocate);
}

function isSame(one: Handle, other: Handle): boolean {
  return one.pid === other.pid && one.start_time === other.start_time;
}
