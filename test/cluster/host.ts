// What a cluster changes on its machine, and takes back: a slot, a bridge, control groups, settings of the kernel.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { clusterNetwork, SLOTS, type ClusterNetwork } from './network';
import { runProgram } from './processes';

const CLUSTERS = '/run/platform-api-test-clusters';
const KERNEL_NOTE = path.join(CLUSTERS, 'kernel.json');
const CGROUPS = '/sys/fs/cgroup';
/** kubelet sets these, and does not put them back. */
const KERNEL_SETTINGS = ['vm/overcommit_memory', 'vm/panic_on_oom', 'kernel/panic', 'kernel/panic_on_oops'];

export interface Slot {
  network: ClusterNetwork;
  /** Parent of the control groups of all nodes, from the root of each hierarchy. */
  cgroup: string;
  release(): void;
}

/** The first slot that no running process has, cleared of what a killed one left. @throws Error where all are taken */
export function takeSlot(): Slot {
  mkdirSync(CLUSTERS, { recursive: true });
  for (let number = 0; number < SLOTS; number += 1) {
    if (!claim(path.join(CLUSTERS, String(number)))) continue;
    const network = clusterNetwork(number);
    const cgroup = `/platform-api-test-${number}`;
    clear(network, cgroup);
    noteKernelSettings();
    runProgram('ip', 'link', 'add', network.bridge, 'type', 'bridge');
    runProgram('ip', 'address', 'add', `${network.host}/24`, 'dev', network.bridge);
    runProgram('ip', 'link', 'set', network.bridge, 'up');
    return {
      ...{ network, cgroup },
      release() {
        clear(network, cgroup);
        rmSync(path.join(CLUSTERS, String(number)));
        restoreKernelSettings();
      },
    };
  }
  throw new Error(`all ${SLOTS} slots for clusters of tests are taken (${CLUSTERS})`);
}

/** As they were before the first cluster. */
function noteKernelSettings(): void {
  if (existsSync(KERNEL_NOTE)) return;
  const settings = KERNEL_SETTINGS.map((name) => [name, readFileSync(`/proc/sys/${name}`, 'utf8')] as const);
  writeFileSync(KERNEL_NOTE, JSON.stringify(settings));
}

/** After the last cluster. */
function restoreKernelSettings(): void {
  if (readdirSync(CLUSTERS).some((name) => /^\d$/.test(name))) return;
  const settings = JSON.parse(readFileSync(KERNEL_NOTE, 'utf8')) as [string, string][];
  for (const [name, value] of settings) writeFileSync(`/proc/sys/${name}`, value);
  rmSync(KERNEL_NOTE);
}

/** In each hierarchy. @param group path from their roots */
export function makeControlGroup(group: string): void {
  for (const hierarchy of hierarchies()) mkdirSync(path.join(hierarchy, group), { recursive: true });
}

/** The file of a slot has the process that holds it. */
function claim(file: string): boolean {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch {
    const holder = readFileSync(file, 'utf8');
    if (existsSync(`/proc/${holder}/ns`)) return false;
    rmSync(file, { force: true });
    return claim(file);
  }
}

function clear({ bridge }: ClusterNetwork, cgroup: string): void {
  if (existsSync(`/sys/class/net/${bridge}`)) runProgram('ip', 'link', 'delete', bridge);
  for (const hierarchy of hierarchies()) removeGroups(path.join(hierarchy, cgroup));
}

/** One in version 2; in version 1 one for each controller. */
function hierarchies(): string[] {
  if (existsSync(path.join(CGROUPS, 'cgroup.procs'))) return [CGROUPS];
  return readdirSync(CGROUPS)
    .map((name) => path.join(CGROUPS, name))
    .filter((folder) => existsSync(path.join(folder, 'cgroup.procs')));
}

function removeGroups(folder: string): void {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) removeGroups(path.join(folder, entry.name));
  for (const pid of readFileSync(path.join(folder, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean))
    process.kill(Number(pid), 'SIGKILL');
  removeGroup(folder);
}

// What has just been killed may still be in it.
function removeGroup(folder: string, attempts = 50): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EBUSY' || attempts === 0) throw error;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    removeGroup(folder, attempts - 1);
  }
}
