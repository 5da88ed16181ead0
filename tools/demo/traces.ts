// What an application leaves on the host while it runs, and must not leave behind: processes, ports, directories.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';

export interface Traces {
  processes: number[];
  /** Requested ports that have a listener. */
  ports: number[];
  directories: string[];
}

const LISTEN = '0A';
const FOLDERS = ['units', 'releases', 'caches', 'mirrors'];

/** @param applicationId every process of the application has it in its environment */
export async function tracesOf(directory: string, applicationId: string, ports: number[]): Promise<Traces> {
  const open = await Promise.all(ports.map(isOpen));
  const processes = processesWith(applicationId);
  const inNetworks = new Set(processes.flatMap(listeningPortsOf));
  return {
    processes,
    ports: ports.filter((port, index) => open[index] || inNetworks.has(port)),
    directories: FOLDERS.flatMap((folder) => entriesOf(path.join(directory, 'runtime', folder))),
  };
}

/** Processes whose environment or arguments name it. */
export function processesWith(word: string): number[] {
  if (!existsSync('/proc/self/environ')) return processesOfPs(word);
  const pids = readdirSync('/proc').map(Number).filter(Boolean);
  return pids.filter((pid) => ['environ', 'cmdline'].some((file) => read(`/proc/${pid}/${file}`).includes(word)));
}

function processesOfPs(word: string): number[] {
  const lines = execFileSync('ps', ['-axwwE', '-o', 'pid=,command='], { encoding: 'utf8' }).split('\n');
  return lines.filter((line) => line.includes(word)).map((line) => Number.parseInt(line, 10));
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    socket.once('connect', () => (socket.destroy(), resolve(true))).once('error', () => resolve(false));
  });
}

/** Sockets of a process's network, which may be that of its project. In the format of proc(5). */
function listeningPortsOf(pid: number): number[] {
  const lines = ['tcp', 'tcp6'].flatMap((name) => read(`/proc/${pid}/net/${name}`).split('\n').slice(1));
  return lines.flatMap((line) => {
    const [, local, , state] = line.trim().split(/\s+/);
    return state === LISTEN ? [Number.parseInt(local?.split(':')[1] ?? '', 16)] : [];
  });
}

/** What begins with a dot belongs to the service. */
function entriesOf(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => !name.startsWith('.'))
    .map((name) => path.join(path.basename(folder), name));
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // it has ended, or is not ours
  }
}
