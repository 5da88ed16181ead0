// The processes of the host: /proc where there is one (proc_pid_stat(5)), else what `ps` says. Synchronous on purpose:
// reading /proc waits for no disk, and promises would cost five times as much.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import os from 'node:os';

export interface Proc {
  pid: number;
  parent: number;
  group: number;
  /** Session id; 0 where the host doesn't report it. */
  session: number;
  /**
   * Makes a process id unique as long as the host is up. Clock ticks since its boot, or what `ps` calls lstart with _
   * for spaces.
   */
  start: string;
  zombie: boolean;
  name: string;
  cpuSeconds: number;
  memoryBytes: number;
}

const ticksPerSecond = 100;
const hasProc = process.platform === 'linux';
let pageBytes = 0;

/** Every process that can be seen, by its id. */
export function allProcesses(): Map<number, Proc> {
  const found = hasProc ? ofProc() : ofPs(['-ax']);
  return new Map(found.map((one) => [one.pid, one]));
}

/** One process, null where it has ended. */
export function processOf(pid: number): Proc | null {
  if (!Number.isSafeInteger(pid) || pid < 1) return null;
  return hasProc ? statOf(pid) : (ofPs(['-p', String(pid)])[0] ?? null);
}

/** The process of this id and start time lives. The same id with another start time is another process. */
export function isAlive(pid: number, start: string): boolean {
  const found = processOf(pid);
  return found !== null && found.start === start && !found.zombie;
}

/**
 * A process has this id now, maybe another one than the id was noted for: enough where all that follows is that
 * something is left alone for longer.
 */
export function isPidTaken(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** All below a process, itself not. */
export function descendants(all: Map<number, Proc>, root: number): Proc[] {
  const children = new Map<number, Proc[]>();
  for (const one of all.values()) children.set(one.parent, [...(children.get(one.parent) ?? []), one]);
  const found: Proc[] = [];
  const waiting = [root];
  for (let pid = waiting.pop(); pid !== undefined; pid = waiting.pop()) {
    const below = (children.get(pid) ?? []).filter((one) => one.pid !== pid);
    found.push(...below);
    waiting.push(...below.map((one) => one.pid));
  }
  return found;
}

/** Arguments; empty for a process that has ended or is not ours to see. */
export function argumentsOf(pid: number): string[] {
  return read(`/proc/${pid}/cmdline`).split('\0').filter(Boolean);
}

/** The initial environment of the process, as one text. */
export function environmentOf(pid: number): string {
  return read(`/proc/${pid}/environ`);
}

/** Whether the process has a handler for a signal; false where the host does not say (proc_pid_status(5)). */
export function catchesSignal(pid: number, signal: NodeJS.Signals): boolean {
  const mask = /^SigCgt:\s*([0-9a-f]+)$/m.exec(read(`/proc/${pid}/status`))?.[1] ?? '0';
  return ((BigInt(`0x${mask}`) >> BigInt(os.constants.signals[signal] - 1)) & 1n) === 1n;
}

/** Sends a signal; a process that has ended meanwhile is fine. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}

function ofProc(): Proc[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => statOf(Number(name)))
    .filter((one) => one !== null);
}

// 12 (name with ) and spaces) S 1 12 12 0 …; fields are counted from the state, which is the third.
function statOf(pid: number): Proc | null {
  const stat = read(`/proc/${pid}/stat`);
  const end = stat.lastIndexOf(')');
  if (end < 0) return null;
  const fields = stat.slice(end + 2).split(' ');
  const field = (number: number) => Number(fields[number - 3]);
  return {
    pid,
    parent: field(4),
    group: field(5),
    session: field(6),
    start: fields[22 - 3] ?? '',
    zombie: fields[0] === 'Z' || fields[0] === 'X',
    name: stat.slice(stat.indexOf('(') + 1, end),
    // Includes the time of exited children (16, 17), which would be lost otherwise.
    cpuSeconds: (field(14) + field(15) + field(16) + field(17)) / ticksPerSecond,
    memoryBytes: field(24) * sizeOfPage(),
  };
}

function ofPs(which: string[]): Proc[] {
  try {
    const text = execFileSync('ps', [...which, '-ww', '-o', 'pid=,ppid=,pgid=,state=,rss=,time=,lstart=,comm='], {
      encoding: 'utf8',
      env: { PATH: '/bin:/usr/bin', LC_ALL: 'C' },
    });
    return text
      .split('\n')
      .map(psLine)
      .filter((one) => one !== null);
  } catch {
    return []; // ps ends with 1 where nothing was found
  }
}

function psLine(line: string): Proc | null {
  const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\d+)\s+(\S+)\s+(\w+ +\w+ +\d+ +\S+ +\d+)\s+(.*)$/.exec(line);
  if (match === null) return null;
  const [, pid, parent, group, state = '', rss, time = '', start = '', command = ''] = match;
  const cpuSeconds = time.split(/[:-]/).reduce((sum, part) => sum * 60 + Number(part), 0);
  return {
    pid: Number(pid),
    parent: Number(parent),
    group: Number(group),
    session: 0,
    start: start.trim().replace(/ +/g, '_'),
    zombie: state.startsWith('Z'),
    name: command.slice(command.lastIndexOf('/') + 1),
    cpuSeconds,
    memoryBytes: Number(rss) * 1024,
  };
}

function sizeOfPage(): number {
  if (pageBytes === 0) {
    try {
      pageBytes = Number(execFileSync('getconf', ['PAGESIZE'], { encoding: 'utf8' })) || 4096;
    } catch {
      pageBytes = 4096;
    }
  }
  return pageBytes;
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
