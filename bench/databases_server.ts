// What a bench sees of a server of a database from outside.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { processesWith } from '../demo/traces';

export type EngineName = 'postgresql' | 'redis' | 'mariadb';

export interface Login {
  username: string;
  password: string;
  endpoints: { host: string; port: number }[];
}

/** MiB of all processes of a server; a page that several share counts once (proc_pid_smaps_rollup(5), Pss). */
export function memoryOf(id: string): number {
  return processesWith(id).reduce((sum, pid) => sum + proportionalKib(pid), 0) / 1024;
}

/** MiB on the disk of all that lies in a directory. */
export function sizeOf(directory: string): number {
  return Number(/^\d+/.exec(execFileSync('du', ['-sk', directory], { encoding: 'utf8' }))?.[0]) / 1024;
}

export async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return (performance.now() - begin) / 1000;
}

function proportionalKib(pid: number): number {
  try {
    return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0; // it has ended
  }
}
