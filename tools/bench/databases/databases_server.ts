// A service that has nothing but databases, and what a bench sees of their servers from outside.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { openStage, type Stage } from '../../demo/stage';
import { processesWith } from '../../demo/traces';

export type EngineName = 'postgresql' | 'redis' | 'mariadb';

export interface Login {
  username: string;
  password: string;
  endpoints: { host: string; port: number }[];
}

/** @param network the setting NETWORK; @param firstPort of two hundred */
export function openDatabases(network: string, firstPort: number): Promise<Stage> {
  return openStage({
    NETWORK: network,
    RATE_LIMIT_READ: '10000000',
    RATE_LIMIT_WRITE: '10000000',
    DATABASE_PORTS: `${firstPort}-${firstPort + 199}`,
    QUOTAS: '{"databases":null,"database_storage_gb":null}',
    // More than one may run at a time.
    ...{ S3_PORT: '0', REGISTRY_PORT: '0', SMTP_PORTS: '0', MX_PORT: '0', DNS_PORT: '0' },
  });
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
