// Control groups, version 1 (one hierarchy a controller) or 2 (one for all): limits, counters, and the only list of the
// processes of a unit that none of them can leave. Linux: Documentation/admin-guide/cgroup-v1, cgroup-v2.rst.
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { UnitLimits } from '../runtime';
import { signalProcess } from '../../core/process/processes';

type Controller = 'memory' | 'cpu' | 'cpuacct' | 'pids' | 'freezer';

/**
 * Directories by controller; in version 2 all the same. Of the place for units, or of one unit: `groupOf` makes the one
 * of the other.
 */
export interface Group {
  version: 1 | 2;
  directories: Record<Controller, string>;
}

export const controllers: readonly Controller[] = ['memory', 'cpu', 'cpuacct', 'pids', 'freezer'];
const name = 'platform';
const periodUs = 100_000;
// Processes that the platform adds to a unit: the sandbox, its first process, a shell.
export const ownProcesses = 4;

/** Where units of this host get their groups, null where we may not make any. Proves it by a trial. */
export async function findGroups(): Promise<Group | null> {
  for (const candidate of [...unifiedCandidates(), ...legacyCandidates()]) {
    const base = candidate.version === 2 ? await delegated(candidate) : candidate;
    if (base !== null && (await works(base))) return base;
  }
  return null;
}

/** The group of one unit, whether it exists or not. */
export function groupOf(base: Group, unitId: string): Group {
  const entries = controllers.map(
    (controller) => [controller, path.join(base.directories[controller], unitId)] as const,
  );
  return { version: base.version, directories: Object.fromEntries(entries) as Group['directories'] };
}

/** Makes the group and sets its limits; `cpus` null gives way to all others. */
export async function makeGroup(group: Group, limits: UnitLimits): Promise<void> {
  for (const directory of directoriesOf(group)) await mkdir(directory, { recursive: true });
  const { memory, cpu, pids } = group.directories;
  const bytes = String(Math.floor(limits.memory_mb * 1024 * 1024));
  const quota = limits.cpus === null ? null : Math.max(1000, Math.round(limits.cpus * periodUs));
  await set(pids, 'pids.max', String(limits.processes + ownProcesses));
  if (group.version === 1) {
    await set(memory, 'memory.limit_in_bytes', bytes);
    await setIfThere(memory, 'memory.memsw.limit_in_bytes', bytes);
    await set(cpu, 'cpu.cfs_period_us', String(periodUs));
    return quota === null ? set(cpu, 'cpu.shares', '128') : set(cpu, 'cpu.cfs_quota_us', String(quota));
  }
  await set(memory, 'memory.max', bytes);
  await setIfThere(memory, 'memory.swap.max', '0');
  await setIfThere(memory, 'memory.oom.group', '1');
  return quota === null ? set(cpu, 'cpu.weight', '12') : set(cpu, 'cpu.max', `${quota} ${periodUs}`);
}

/** Files into which a process writes 0 to enter the group. */
export function procsFiles(group: Group): string[] {
  return directoriesOf(group).map((directory) => path.join(directory, 'cgroup.procs'));
}

/** The file with a line `oom_kill <number>`. */
export function memoryEventsFile(group: Group): string {
  return path.join(group.directories.memory, group.version === 1 ? 'memory.oom_control' : 'memory.events');
}

/** Host process ids in the group. Empty where there is no such group. */
export function processesIn(group: Group): number[] {
  const files = new Set(
    [group.directories.pids, group.directories.memory].map((directory) => path.join(directory, 'cgroup.procs')),
  );
  const all = [...files].flatMap((file) => readText(file).split('\n').filter(Boolean).map(Number));
  return [...new Set(all)].filter((pid) => pid > 0);
}

/** Kills all in the group; frozen meanwhile, so that a fork bomb cannot outrun it. Answers whether it is empty now. */
export async function killControlGroup(group: Group): Promise<boolean> {
  for (let round = 0; round < 50; round++) {
    if (processesIn(group).length === 0) return true;
    await killOnce(group);
    await sleep(Math.min(10 * (round + 1), 100));
  }
  return processesIn(group).length === 0;
}

/** Its processes are held still, until thawGroup. A group that is gone is success. */
export async function freezeGroup({ version, directories }: Group): Promise<void> {
  if (version === 1) await setIfThere(directories.freezer, 'freezer.state', 'FROZEN');
  else await setIfThere(directories.freezer, 'cgroup.freeze', '1');
}

/** Its processes continue. An absent group is success. */
export async function thawGroup({ version, directories }: Group): Promise<void> {
  if (version === 1) await setIfThere(directories.freezer, 'freezer.state', 'THAWED');
  else await setIfThere(directories.freezer, 'cgroup.freeze', '0');
}

/** Takes the group away. False while processes (or zombies) are in it. */
export async function removeGroup(group: Group): Promise<boolean> {
  for (let round = 0; round < 20; round++) {
    const results = await Promise.all(
      directoriesOf(group).map((directory) =>
        rmdir(directory).then(
          () => true,
          (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
        ),
      ),
    );
    if (results.every(Boolean)) return true;
    await sleep(50);
  }
  return false;
}

/** Counters since the group was made; null where it is gone. Memory without the page cache that could go at once. */
export async function groupUsage(group: Group): Promise<{ cpu_seconds: number; memory_bytes: number } | null> {
  const { memory, cpuacct, cpu } = group.directories;
  const unified = group.version === 2;
  try {
    const [cpuText, used, stat] = await Promise.all([
      readFile(unified ? path.join(cpu, 'cpu.stat') : path.join(cpuacct, 'cpuacct.usage'), 'utf8'),
      readFile(path.join(memory, unified ? 'memory.current' : 'memory.usage_in_bytes'), 'utf8'),
      readFile(path.join(memory, 'memory.stat'), 'utf8'),
    ]);
    const cpu_seconds = unified ? counterIn(cpuText, 'usage_usec') / 1e6 : Number(cpuText) / 1e9;
    return {
      cpu_seconds,
      memory_bytes: Math.max(0, Number(used) - counterIn(stat, unified ? 'inactive_file' : 'total_inactive_file')),
    };
  } catch {
    return null;
  }
}

/** The number behind a key in a file of lines `key number`, 0 where it is not. */
function counterIn(text: string, key: string): number {
  return Number(new RegExp(`^${key} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
}

async function killOnce(group: Group): Promise<void> {
  if (group.version === 2) {
    if (await setIfThere(group.directories.pids, 'cgroup.kill', '1')) return;
    return killAll(group);
  }
  await freezeGroup(group);
  killAll(group);
  // A frozen process dies when it thaws.
  await thawGroup(group);
}

function killAll(group: Group): void {
  for (const pid of processesIn(group)) signalProcess(pid, 'SIGKILL');
}

async function works(base: Group): Promise<boolean> {
  const trial = groupOf(base, `trial-${randomBytes(6).toString('hex')}`);
  try {
    await makeGroup(trial, { memory_mb: 64, cpus: 0.5, processes: 10, time_ms: null, output_bytes: 0, disk_mb: null });
    return (await groupUsage(trial)) !== null && existsSync(memoryEventsFile(trial));
  } catch {
    return false;
  } finally {
    await removeGroup(trial);
  }
}

// Below our own group first, so that the limits of a container hold for its units as well; a container that sees the
// groups of its host by another path has them at the mount itself.
function legacyCandidates(): Group[] {
  const own = ownGroups();
  const places = new Map(
    mounts()
      .filter(({ type }) => type === 'cgroup')
      .flatMap(({ point, options }) => options.map((option) => [option, point])),
  );
  if (!controllers.every((controller) => places.has(controller))) return [];
  const at = (below: (controller: Controller) => string): Group => ({
    version: 1,
    directories: Object.fromEntries(
      controllers.map((controller) => [controller, path.join(places.get(controller)!, below(controller), name)]),
    ) as Group['directories'],
  });
  return [at((controller) => own.get(controller) ?? '/'), at(() => '/')];
}

function unifiedCandidates(): Group[] {
  const point = mounts().find(({ type }) => type === 'cgroup2')?.point;
  if (point === undefined || !/\bmemory\b/.test(readText(path.join(point, 'cgroup.controllers')))) return [];
  const at = (below: string): Group => unified(path.join(point, below, name));
  return [at('/'), at(ownGroups().get('') ?? '/')];
}

function unified(directory: string): Group {
  return {
    version: 2,
    directories: Object.fromEntries(controllers.map((controller) => [controller, directory])) as Group['directories'],
  };
}

// A group that hands controllers on may hold no processes itself, but for the root of all. In one that was delegated to
// us (systemd: Delegate=yes) its processes, ourselves among them, move one level down, as the kernel's text advises.
async function delegated(candidate: Group): Promise<Group | null> {
  const directory = candidate.directories.memory;
  const parent = path.dirname(directory);
  try {
    if (!(await setIfThere(parent, 'cgroup.subtree_control', '+memory +cpu +pids'))) {
      const aside = path.join(parent, 'control');
      await mkdir(aside, { recursive: true });
      for (const pid of readText(path.join(parent, 'cgroup.procs')).split('\n').filter(Boolean))
        await setIfThere(aside, 'cgroup.procs', pid);
      await set(parent, 'cgroup.subtree_control', '+memory +cpu +pids');
    }
    await mkdir(directory, { recursive: true });
    await set(directory, 'cgroup.subtree_control', '+memory +cpu +pids');
    return candidate;
  } catch {
    return null;
  }
}

function ownGroups(): Map<string, string> {
  const lines = readText('/proc/self/cgroup').split('\n').filter(Boolean);
  return new Map(
    lines.flatMap((line) => {
      const [, names = '', ...rest] = line.split(':');
      return names.split(',').map((one) => [one, rest.join(':')] as const);
    }),
  );
}

function mounts(): { point: string; type: string; options: string[] }[] {
  return readText('/proc/mounts')
    .split('\n')
    .map((line) => {
      const [, point = '', type = '', options = ''] = line.split(' ');
      return { point, type, options: options.split(',') };
    });
}

function directoriesOf(group: Group): string[] {
  return [...new Set(Object.values(group.directories))];
}

function set(directory: string, file: string, value: string): Promise<void> {
  return writeFile(path.join(directory, file), value, { flag: 'r+' });
}

function setIfThere(directory: string, file: string, value: string): Promise<boolean> {
  return set(directory, file, value).then(
    () => true,
    () => false,
  );
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
