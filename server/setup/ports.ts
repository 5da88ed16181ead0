// Who listens on a port of this machine, as the kernel lists it.
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { listeningSockets, socketsOf } from '../../core/process/sockets';

export interface Listener {
  pid: number;
  /** `nginx`. */
  program: string;
  /** The program's file and arguments. */
  commandLine: string;
}

/**
 * The program that would be in the way of a server on this port; null where the port is free. Listeners on loopback
 * count, since a socket for all addresses conflicts with them.
 * @returns a listener without a program where the kernel does not say whose it is
 */
export async function listenerOf(port: number): Promise<Listener | null> {
  const listening = [...(await listeningSockets())].filter(([, socket]) => socket.port === port);
  if (!listening.length) return null;
  const owner = await ownerOf(new Set(listening.map(([inode]) => inode)));
  return owner ?? { pid: 0, program: 'another program', commandLine: '' };
}

async function ownerOf(inodes: ReadonlySet<string>): Promise<Listener | null> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const holds = async (pid: string): Promise<boolean> =>
    ((await socketsOf(Number(pid))) ?? []).some((inode) => inodes.has(inode));
  const found = await Promise.all(pids.map(async (pid) => ((await holds(pid)) ? pid : null)));
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
