// Memory usage of several processes together, without a control group. Processes of one program share pages: in sixteen
// connections of PostgreSQL, its shared buffers and its code would be counted sixteen times.
import { readFile } from 'node:fs/promises';
import { processOf, type Proc } from '../../../core/process/processes';

/** Bytes; shared pages count for each process that has them. Never less than `unitMemory`, and costs nothing. */
export function residentBytes(members: Proc[]): number {
  return members.reduce((total, { memoryBytes }) => total + memoryBytes, 0);
}

/**
 * Bytes; of a page that several processes have, each has its part: Pss of /proc/PID/smaps_rollup (proc(5), Linux 4.14).
 * Memory of a single process counts fully, even if it is shared with other units. Without smaps_rollup, it is measured
 * as in `residentBytes`. The kernel visits each page, so this is too expensive for every second.
 */
export async function unitMemory(members: Proc[]): Promise<number> {
  if (process.platform !== 'linux' || members.length < 2) return residentBytes(members);
  let total = 0;
  for (const { pid } of members) total += await proportionalBytes(pid);
  return Math.max(total, ...members.map(({ memoryBytes }) => memoryBytes));
}

async function proportionalBytes(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
  const kibibytes = /^Pss:\s+(\d+) kB$/m.exec(text)?.[1];
  return kibibytes === undefined ? (processOf(pid)?.memoryBytes ?? 0) : Number(kibibytes) * 1024;
}
