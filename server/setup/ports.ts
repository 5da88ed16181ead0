// Who listens on a port of this machine, as the kernel lists it.
import { readdir, readFile, readlink } from 'node:fs/promises';
import path from 'node:path';

export interface Listener {
  pid: number;
  /** `nginx`. */
  program: string;
  /** The program's file and arguments. */
  commandLine: string;
}

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];
/** State LISTEN of the kernel's table. */
const LISTEN = '0A';

/**
 * The program that would be in the way of a server on this port; null where the port is free. Listeners on loopback
 * count, since a socket for all addresses conflicts with them.
 * @returns a listener without a program where the kernel does not say whose it is
 */
export async function listenerOf(port: number): Promise<Listener | null> {
  const inodes = new Set((await Promise.all(TABLES.map((table) => inodesOf(table, port)))).flat());
  if (!inodes.size) return null;
  return (await ownerOf(inodes)) ?? { pid: 0, program: 'another program', commandLine: '' };
}

async function inodesOf(table: string, port: number): Promise<string[]> {
  const text = await readFile(table, 'utf8').catch(() => '');
  return text
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => state === LISTEN && parseInt(local?.split(':')[1] ?? '', 16) === port)
    .flatMap((fields) => fields[9] ?? []);
}

async function ownerOf(inodes: ReadonlySet<string>): Promise<Listener | null> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(pids.map(async (pid) => ((await holdsSocket(pid, inodes)) ? pid : null)));
  // A program that others have inherited the socket from comes first.
  const [pid] = found.flatMap((one) => one ?? []).sort((a, b) => Number(a) - Number(b));
  if (pid === undefined) return null;
  const [program, line] = await Promise.all(
    ['comm', 'cmdline'].map((file) => readFile(path.join('/proc', pid, file), 'utf8').catch(() => '')),
  );
  return {
    pid: Number(pid),
    program: program?.trim() || 'another program',
    commandLine: line?.replaceAll('\0', ' ') ?? '',
  };
}

async function holdsSocket(pid: string, inodes: ReadonlySet<string>): Promise<boolean> {
  const directory = path.join('/proc', pid, 'fd');
  const files = await readdir(directory).catch(() => []);
  const links = await Promise.all(files.map((file) => readlink(path.join(directory, file)).catch(() => '')));
  return links.some((link) => link.startsWith('socket:[') && inodes.has(link.slice(8, -1)));
}
