// A note by which a process is found again after a restart of the control plane: `<pid> <start> <boot>`, written by the
// process itself, with further words after them where it has more to say. The id alone may be another process's by now,
// and the start time counts from the boot of the host.
import { readFileSync } from 'node:fs';
import { isAlive } from './processes';

interface ProcessNote {
  pid: number;
  /** Start time in the format of `Proc.start`. */
  start: string;
  /** Boot id of the host, `bootId()`. */
  boot: string;
  /** Further words. */
  others: string[];
}

/** null for an incomplete note, as left by a process that was killed while it wrote. */
export function parseProcessNote(text: string): ProcessNote | null {
  const [pid = '', start = '', boot = '', ...others] = text.trim().split(' ');
  return /^\d+$/.test(pid) ? { pid: Number(pid), start, boot, others } : null;
}

/** The process of a note while it runs; null if it has exited or never existed. */
export function readRunningProcess(file: string): ProcessNote | null {
  const note = parseProcessNote(readText(file));
  return note !== null && isRunningSince(note) ? note : null;
}

/** Whether the noted process still runs: same start time, same boot of the host. */
export function isRunningSince({ pid, start, boot }: Pick<ProcessNote, 'pid' | 'start' | 'boot'>): boolean {
  return boot === bootId() && isAlive(pid, start);
}

let knownBoot: string | undefined;

/** Changes with each start of the host; empty where the host has none. */
export function bootId(): string {
  return (knownBoot ??= readText('/proc/sys/kernel/random/boot_id').trim());
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
