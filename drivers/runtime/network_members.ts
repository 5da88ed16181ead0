// Units and the networks that they run in.
import { readlinkSync } from 'node:fs';
import path from 'node:path';
import type { PortLocations } from '../network';
import type { NetworkLocation } from '../../core/outbound/network_location';
import type { Handle } from '../runtime';
import { entriesOf, isRunning, readHandle, readUnit, runDirectoryOf, type Unit } from './run_directory';
import type { Proc } from '../../core/process/processes';
import { processesOfUnit } from './units/unit_processes';

/** The directory below /proc with the network tables of the unit. */
export function networkTables(unit: Unit, handle: Handle, processes: Proc[]): string {
  if (unit.network === undefined) return '/proc/net';
  // The process of the sandbox, not one inside it: a tenant can move its programs to further namespaces.
  const sandbox = processes.find(({ parent }) => parent === handle.pid);
  return sandbox === undefined ? '/proc/none' : `/proc/${sandbox.pid}/net`;
}

/** Names of the networks that units of this directory have. */
export async function networksInUse(directory: string): Promise<Set<string>> {
  const names = new Set<string>();
  for (const { entry } of await entriesOf(directory)) {
    const unit = await readUnit(path.join(directory, entry));
    if (unit?.network) names.add(unit.network.name);
    if (unit?.exposed) names.add(unit.exposed.within);
  }
  return names;
}

/** Numbers of running services on the host network and in isolated networks. Access proxies always use the host's. */
export async function unitsByNetwork(directory: string): Promise<{ onHost: number; inNetworks: number }> {
  const count = { onHost: 0, inNetworks: 0 };
  for (const { entry, leftOver } of await entriesOf(directory)) {
    if (leftOver || entry.endsWith('.proxy')) continue;
    const runDirectory = runDirectoryOf(directory, entry);
    const [unit, handle] = [await readUnit(runDirectory), readHandle(runDirectory, entry)];
    if (unit?.kind !== 'service' || handle === null || !isRunning(handle)) continue;
    count[unit.network ? 'inNetworks' : 'onHost'] += 1;
  }
  return count;
}

/** Ports of units in isolated networks that are published on the host. */
export async function portsToPublish(directory: string): Promise<PortLocations> {
  const ports = new Map<number, NetworkLocation>();
  for (const { entry, leftOver } of await entriesOf(directory)) {
    const network = leftOver ? undefined : (await readUnit(path.join(directory, entry)))?.network;
    if (network?.port !== undefined) ports.set(network.port, network.location);
  }
  return ports;
}

/** The id of a process that runs in the network; null where no unit does. */
export async function memberOfNetwork(directory: string, name: string): Promise<number | null> {
  for (const { entry, leftOver } of await entriesOf(directory)) {
    if (leftOver) continue;
    const runDirectory = runDirectoryOf(directory, entry);
    const [unit, handle] = [await readUnit(runDirectory), readHandle(runDirectory, entry)];
    if (unit?.network?.name !== name || handle === null || !isRunning(handle)) continue;
    const sandbox = processesOfUnit(unit, handle).find(({ parent }) => parent === handle.pid);
    if (sandbox !== undefined && networkIdOf(sandbox.pid) !== networkIdOf('self')) return sandbox.pid;
  }
  return null;
}

function networkIdOf(pid: number | 'self'): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return null;
  }
}
