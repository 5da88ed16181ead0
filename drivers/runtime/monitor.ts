// Checks all units once a second: which have ended, which went beyond a limit that the kernel does not enforce for us.
// Cheap, because it looks at two numbers a unit: whether its shim is there, and whether there is a record of its end.
import { appendFile, statfs } from 'node:fs/promises';
import { statSync } from 'node:fs';
import path from 'node:path';
import type { Handle, Killed } from '../runtime';
import { diskOf } from '../volume/limited_disk';
import { freezeGroup, thawGroup } from './cgroup';
import { openDiskMeter, type DiskMeter, type MeterTiming } from './disk_meter';
import { printedBytes, trimToSize } from './log';
import { residentBytes, unitMemory } from './units/unit_memory';
import { killUnit, processesOfUnit } from './units/unit_processes';
import { allProcesses, type Proc } from '../../core/process/processes';
import { entriesOf, hasEnded, isRunning, recordKilled, readHandle, readUnit, type Unit } from './run_directory';

interface MonitorOptions {
  directory: string;
  measureServicesEveryMs?: number;
  fallocate: string | null;
  log: (message: string, error: unknown) => void;
}

export interface Monitor {
  /** Watches a unit from now on, not only from the next scan of the directory. */
  add(unit: Unit, handle: Handle): void;
  remove(unitId: string): void;
  watch(ended: (unitId: string) => void): () => void;
  /** Checks at once. */
  checkNow(): void;
  close(): Promise<void>;
}

interface Watched {
  unit: Unit;
  handle: Handle;
  runDirectory: string;
  began: number;
  /** Disk usage of a unit without a separate disk. */
  meter: DiskMeter | null;
  diskDue: number;
  /** When its memory may be measured again. */
  memoryDue: number;
  isDiskFull: boolean;
  busy: boolean;
  ended: boolean;
}

const checkEveryMs = 1_000;
const checkTasksEveryMs = 250;
// A process id may be another process's by now; and units may have been started by another control plane.
const scanEvery = 10;
const logEvery = 4;
const measuring: Record<Unit['kind'], MeterTiming> = {
  task: { everyMs: 3_000, pauses: { regular: 10, suspicion: 1 } },
  service: { everyMs: 30_000, pauses: { regular: 100, suspicion: 10 } },
};
const watchDisksEveryMs = 2_000;
const FULL_BELOW_BYTES = 2 ** 20;
/** Fraction of free space above which a full disk counts as recovered, so that the next overflow is logged again. */
const AMPLE = 0.05;
/** The pause after a memory measurement, in multiples of its duration: many processes with many pages take a while. */
const MEMORY_REST = 10;
const NOT_ENFORCED = 'A limit of a unit could not be enforced.';

/** Starts the monitor. Units that exited while no monitor ran are reported at the first check. */
export function startMonitor(options: MonitorOptions): Monitor {
  const watched = new Map<string, Watched>();
  const listeners = new Set<(unitId: string) => void>();
  const ticker = startTicker(
    async (round) => {
      if (round % scanEvery === 0) await discover(options, watched);
      await checkUnits([...watched.values()], round, options, (id) => listeners.forEach((notify) => notify(id)));
      return [...watched.values()].some((one) => one.unit.kind === 'task' && !one.ended)
        ? checkTasksEveryMs
        : checkEveryMs;
    },
    (error) => options.log('The check of the units failed.', error),
  );
  return {
    add: (unit, handle) => {
      const known = watched.get(unit.id)?.handle;
      if (known?.pid !== handle.pid || known.start_time !== handle.start_time)
        watched.set(unit.id, watchedUnit(options, unit, handle));
    },
    remove: (unitId) => void watched.delete(unitId),
    watch: (ended) => (listeners.add(ended), () => void listeners.delete(ended)),
    checkNow: ticker.checkNow,
    close: ticker.close,
  };
}

// `check` answers after how many milliseconds it wants to be called again. Never two at a time.
function startTicker(
  check: (round: number) => Promise<number>,
  failed: (error: unknown) => void,
): Pick<Monitor, 'checkNow' | 'close'> {
  let round = 0;
  let timer: NodeJS.Timeout | undefined;
  let state: 'waiting' | 'checking' | 'urgent' | 'closed' = 'waiting';
  let running: Promise<void> = Promise.resolve();
  const wait = (ms: number): void => {
    if (state === 'closed') return;
    timer = setTimeout(begin, state === 'urgent' ? 0 : ms).unref();
    state = 'waiting';
  };
  const begin = (): void => {
    state = 'checking';
    running = check(round++)
      .catch((error: unknown) => (failed(error), checkEveryMs))
      .then(wait);
  };
  begin();
  return {
    checkNow: () => {
      if (state === 'checking') state = 'urgent';
      if (state !== 'waiting') return;
      clearTimeout(timer);
      begin();
    },
    close: async () => ((state = 'closed'), clearTimeout(timer), await running),
  };
}

async function discover(options: MonitorOptions, watched: Map<string, Watched>): Promise<void> {
  const { directory } = options;
  const entries = await entriesOf(directory);
  const there = new Set(entries.map(({ entry }) => entry));
  for (const unitId of watched.keys()) if (!there.has(unitId)) watched.delete(unitId);
  for (const { unitId, leftOver } of entries) {
    if (leftOver || watched.has(unitId)) continue;
    const runDirectory = path.join(directory, unitId);
    const handle = readHandle(runDirectory, unitId);
    const unit = handle && (await readUnit(runDirectory));
    if (unit === null || watched.has(unitId)) continue;
    // A control plane that was killed while it measured has left it frozen.
    if (unit.group !== null) await thawGroup(unit.group);
    watched.set(unitId, watchedUnit(options, unit, handle as Handle));
  }
}

function watchedUnit(options: MonitorOptions, unit: Unit, handle: Handle): Watched {
  const runDirectory = path.join(options.directory, unit.id);
  const began = statSync(path.join(runDirectory, 'handle'), { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
  return {
    unit,
    handle,
    runDirectory,
    began,
    meter: diskOf(runDirectory) === null ? meterOf(unit, runDirectory, options) : null,
    diskDue: 0,
    memoryDue: 0,
    isDiskFull: false,
    busy: false,
    ended: false,
  };
}

async function checkUnits(
  all: Watched[],
  round: number,
  options: MonitorOptions,
  notify: (unitId: string) => void,
): Promise<void> {
  let table: Map<number, Proc> | undefined;
  for (const one of all) {
    if (one.ended) continue;
    if (isEnded(one, round)) {
      one.ended = true;
      // No process outlives its unit. Not waited for: other units are to be checked.
      void killUnit(one.runDirectory, one.unit, one.handle)
        .catch((error: unknown) => options.log('Processes of a unit outlived it.', error))
        .then(() => notify(one.unit.id));
      continue;
    }
    if (one.busy) continue;
    if (one.unit.group === null) checkProcesses(one, (table ??= allProcesses()), options);
    if (one.unit.kind === 'task') checkTask(one, options);
    else if (round % logEvery === 0) checkService(one, options);
  }
}

function isEnded(one: Watched, round: number): boolean {
  if (hasEnded(one.runDirectory)) return true;
  if (round % scanEvery === 0) return !isRunning(one.handle);
  try {
    process.kill(one.handle.pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

function checkService(one: Watched, options: MonitorOptions): void {
  const bytes = one.unit.limits.output_bytes;
  if (printedBytes(one.runDirectory) > bytes)
    return runInBackground(one, options, () => trimToSize(one.runDirectory, bytes, options.fallocate));
  runInBackground(one, options, () => checkFiles(one));
}

function checkTask(one: Watched, options: MonitorOptions): void {
  const { limits } = one.unit;
  if (limits.time_ms !== null && Date.now() - one.began > limits.time_ms) return killFor(one, 'time', options);
  runInBackground(one, options, async () => {
    if (printedBytes(one.runDirectory) > limits.output_bytes) return killNow(one, 'output');
    await checkFiles(one);
  });
}

async function checkFiles(one: Watched): Promise<void> {
  const disk = one.meter === null ? diskOf(one.runDirectory) : null;
  if (disk !== null && Date.now() >= one.diskDue) return watchDisk(one, disk);
  if (await one.meter?.isBeyondLimit((measure) => whileFrozen(one.unit, measure))) await killNow(one, 'disk');
}

async function whileFrozen<T>({ group }: Unit, work: () => Promise<T>): Promise<T> {
  if (group === null) return work();
  await freezeGroup(group);
  return work().finally(() => thawGroup(group));
}

// Its writes fail: the tenant should know why.
async function watchDisk(one: Watched, disk: string): Promise<void> {
  one.diskDue = Date.now() + watchDisksEveryMs;
  const { bavail, bsize, blocks, ffree } = await statfs(disk);
  const wasFull = one.isDiskFull;
  if (bavail > blocks * AMPLE && ffree > 0) one.isDiskFull = false;
  else if (bavail * bsize < FULL_BELOW_BYTES || ffree === 0) one.isDiskFull = true;
  if (!one.isDiskFull || wasFull) return;
  const line = `The disk of ${one.unit.limits.disk_mb ?? 0} MB is full. Writes fail until files are deleted.\n`;
  await appendFile(path.join(one.runDirectory, 'err'), line);
}

// Where there is no control group.
function checkProcesses(one: Watched, table: Map<number, Proc>, options: MonitorOptions): void {
  const members = processesOfUnit(one.unit, one.handle, table);
  const { memory_mb, processes } = one.unit.limits;
  if (residentBytes(members) > memory_mb * 1024 * 1024 && Date.now() >= one.memoryDue)
    void checkMemory(one, members).catch((error: unknown) => options.log(NOT_ENFORCED, error));
  if (members.length <= processes + 4) return;
  runInBackground(one, options, async () => {
    await appendFile(path.join(one.runDirectory, 'err'), `Ended: it had more than ${processes} processes.\n`);
    await killUnit(one.runDirectory, one.unit, one.handle);
  });
}

// Runs concurrently to the other work for the unit, which it must not delay.
async function checkMemory(one: Watched, members: Proc[]): Promise<void> {
  one.memoryDue = Infinity;
  const began = Date.now();
  try {
    if ((await unitMemory(members)) > one.unit.limits.memory_mb * 1024 * 1024) await killNow(one, 'memory');
  } finally {
    one.memoryDue = Date.now() + MEMORY_REST * (Date.now() - began);
  }
}

function killFor(one: Watched, why: Killed, options: MonitorOptions): void {
  runInBackground(one, options, () => killNow(one, why));
}

async function killNow(one: Watched, why: Killed): Promise<void> {
  if (!isRunning(one.handle) || hasEnded(one.runDirectory)) return;
  await recordKilled(one.runDirectory, why);
  await killUnit(one.runDirectory, one.unit, one.handle);
}

// Runs one task at a time for a unit, while the checks continue.
function runInBackground(one: Watched, options: MonitorOptions, work: () => Promise<void>): void {
  if (one.busy) return;
  one.busy = true;
  void work()
    .catch((error: unknown) => options.log(NOT_ENFORCED, error))
    .finally(() => (one.busy = false));
}

function meterOf(unit: Unit, runDirectory: string, { measureServicesEveryMs }: MonitorOptions): DiskMeter | null {
  const { kind, directory, caches = [], limits } = unit;
  if (limits.disk_mb === null) return null;
  const timing = measuring[kind];
  const everyMs = (kind === 'service' ? measureServicesEveryMs : undefined) ?? timing.everyMs;
  const directories = [directory, path.join(runDirectory, 'tmp'), ...caches];
  return openDiskMeter(directories, limits.disk_mb, { ...timing, everyMs });
}
