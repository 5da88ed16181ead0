// Resource usage and listeners of units.
import { createServer } from 'node:net';
import { DriverError } from '../../core/driver';
import { listeningSockets, socketsOf } from '../../core/process/sockets';
import type { Handle, Listener, UnitUsage } from '../runtime';
import { groupUsage } from './cgroup';
import { unitMemory } from './units/unit_memory';
import { processesOfUnit } from './units/unit_processes';
import type { Proc } from '../../core/process/processes';
import type { Unit } from './run_directory';

/**
 * By the counters of the control group, else by the running processes. Network traffic is not measured: units may share
 * the network of the host.
 */
export async function unitUsage(unit: Unit, handle: Handle, all: () => Map<number, Proc>): Promise<UnitUsage> {
  const counted = unit.group && (await groupUsage(unit.group));
  if (counted !== null) return { ...counted, network: null };
  const members = processesOfUnit(unit, handle, all());
  const cpuSeconds = members.reduce((total, one) => total + one.cpuSeconds, 0);
  return { cpu_seconds: cpuSeconds, memory_bytes: await unitMemory(members), network: null };
}

/** Of one core. @param ms between the two measurements */
export function cpuPercent(before: UnitUsage, now: UnitUsage, ms: number): number {
  const seconds = Math.max(0, now.cpu_seconds - before.cpu_seconds);
  return Math.round((seconds / Math.max(ms, 1)) * 1e7) / 100;
}

/**
 * TCP listeners of the processes, by ascending ports; null where the host does not show them: no /proc, or a container
 * without CAP_SYS_PTRACE.
 * @param net directory with the network tables of the processes
 */
export async function findListeners(pids: number[], net = '/proc/net'): Promise<Listener[] | null> {
  const [listeners, ...sockets] = await Promise.all([listeningSockets(net), ...pids.map(socketsOf)]);
  if (listeners.size === 0 || (pids.length > 0 && sockets.every((one) => one === null))) return null;
  const inodes = new Set(sockets.flatMap((one) => one ?? []));
  return [...listeners]
    .filter(([inode]) => inodes.has(inode))
    .map(([, listener]) => listener)
    .sort((a, b) => a.port - b.port);
}

/** A free port of the range, at a random place of it. @throws DriverError capacity */
export async function freePort(
  [first, last]: readonly [number, number],
  taken: ReadonlySet<number>,
  isPortFree = isFreeOnHost,
): Promise<number> {
  const count = last - first + 1;
  const start = Math.floor(Math.random() * count);
  for (let i = 0; i < count; i++) {
    const port = first + ((start + i) % count);
    if (!taken.has(port) && (await isPortFree(port))) return port;
  }
  throw new DriverError(
    'capacity',
    `All ports from ${first} to ${last} are taken. Enlarge APP_PORTS, or stop applications.`,
  );
}

/** On the host; IPv4 only. */
export function isFreeOnLoopback(port: number): Promise<boolean> {
  return isFree(port, '127.0.0.1');
}

async function isFreeOnHost(port: number): Promise<boolean> {
  return (await isFreeOnLoopback(port)) && (await isFree(port, '::1'));
}

function isFree(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    // On a host without IPv6 no program listens on an IPv6 address.
    server.once('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'EADDRNOTAVAIL' || error.code === 'EAFNOSUPPORT'),
    );
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
