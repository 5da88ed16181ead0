// The run directory of a unit: <directory>/<unit id>/ with all that a new control plane must know of it. It is filled
// under a temporary name and renamed when complete; it is renamed away before it is removed.
//   unit.json  description of the unit, without command and variables (they may be secrets)
//   handle     process id, start time and boot id of the shim; written by the shim itself, once (O_EXCL)
//   exit       exit code and number of kills for memory; written by the shim at the end, by rename
//   killed     why we killed it       stopping  SIGTERM was sent at the time of this file
//   out, err   its output             trimmed   how much of the output was discarded
//   stdout, stderr  FIFOs that it writes its output to
//   stdin      its input, a FIFO; stdin_end  a line in it ends it; terminal  the name of its terminal
//   files/     copy of a service      tmp/, etc/  its /tmp; its passwd and group
//   disk/      its disk, where it has one (disk.ext4): files and tmp are links into it
import { randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { readFile, readdir, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { DriverError } from '../../core/driver';
import { HOST_NETWORK, type NetworkLocation } from '../../core/outbound/network_location';
import type { Handle, Killed, UnitLimits, UnitSpec, UnitState } from '../runtime';
import type { Group } from './cgroup';
import { isRunningSince, parseProcessNote } from '../../core/process/process_note';

/** FIFOs of a unit with input. */
export const INPUT_FILE = 'stdin';
export const INPUT_END_FILE = 'stdin_end';

/** FIFOs to which a unit writes, by the file that their content is copied to. */
export const OUTPUT_FIFOS = { out: 'stdout', err: 'stderr' } as const;
/** Argument of the processes that copy it. */
export const OUTPUT_READER = 'platform-output';

/** unit.json. `directory`: where it works on the host. */
export interface Unit {
  id: string;
  kind: UnitSpec['kind'];
  directory: string;
  /** For a task: directories besides `directory` that count towards its disk usage. Older units have none. */
  caches?: string[];
  limits: UnitLimits;
  group: Group | null;
  /**
   * The isolated network of the unit; absent: the network of the host, as for all older units. `port`: published on the
   * host.
   */
  network?: { name: string; location: NetworkLocation; port?: number };
  /** `network` belongs to the unit alone. `within`: name of the project's network. */
  exposed?: { port: number; reached_at: number; within: string };
}

export type Exited = Extract<UnitState, { state: 'exited' }>;

/** @throws DriverError invalid for an id that no directory can be named after */
export function runDirectoryOf(directory: string, unitId: string): string {
  if (!/^[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)?$/i.test(unitId) || unitId.length > 100)
    throw new DriverError('invalid', 'The id of the unit cannot be the name of a directory.');
  return path.join(directory, unitId);
}

export function temporaryName(directory: string, purpose: 'new' | 'trash', unitId: string): string {
  return path.join(directory, `.${purpose}-${unitId}-${randomBytes(6).toString('hex')}`);
}

/** Ids of units by entry of the directory; left-overs of interrupted calls count to the unit that they were for. */
export async function entriesOf(directory: string): Promise<{ entry: string; unitId: string; leftOver: boolean }[]> {
  const names = await readdir(directory).catch(() => []);
  return names.flatMap((entry): { entry: string; unitId: string; leftOver: boolean }[] => {
    if (!entry.startsWith('.')) return [{ entry, unitId: entry, leftOver: false }];
    const unitId = /^\.(?:new|trash)-(.+)-[0-9a-f]{12}$/.exec(entry)?.[1];
    return unitId === undefined ? [] : [{ entry, unitId, leftOver: true }];
  });
}

/** Null where there is no such unit. */
export async function readUnit(runDirectory: string): Promise<Unit | null> {
  const text = await readFile(path.join(runDirectory, 'unit.json'), 'utf8').catch(() => null);
  return text === null ? null : (JSON.parse(text) as Unit);
}

/** Where its ports are reached; of a unit that is not there: on the host. */
export function locationOf(runDirectory: string): NetworkLocation {
  const text = readText(path.join(runDirectory, 'unit.json'));
  return text === '' ? HOST_NETWORK : ((JSON.parse(text) as Unit).network?.location ?? HOST_NETWORK);
}

/** The handle of the shim; null if it was never started, or was killed before its first step. */
export function readHandle(runDirectory: string, unitId: string): Handle | null {
  const note = parseProcessNote(readText(path.join(runDirectory, 'handle')));
  return note && { unit_id: unitId, pid: note.pid, start_time: `${note.start}@${note.boot}` };
}

/** The shim of this handle runs, on this boot of the host. */
export function isRunning(handle: Handle): boolean {
  const [start = '', boot = ''] = handle.start_time.split('@');
  return isRunningSince({ pid: handle.pid, start, boot });
}

/**
 * How it ended, null while it runs. A unit without a record was killed together with its shim, or by the end of the
 * host.
 */
export async function exitOf(runDirectory: string, handle: Handle): Promise<Exited | null> {
  // In this order: the record is written before the process exits.
  const running = isRunning(handle);
  const record = await readFile(path.join(runDirectory, 'exit'), 'utf8').catch(() => null);
  if (record === null && running) return null;
  const killed = readText(path.join(runDirectory, 'killed')).trim();
  const at = await timeOf(runDirectory, record === null ? ['err', 'out', 'handle'] : ['exit']);
  const [code = NaN, memoryKills = 0] = record?.trim().split(' ').map(Number) ?? [];
  const end = outcome(record === null ? 128 + os.constants.signals.SIGKILL : code);
  return { state: 'exited', ...end, killed: isKilled(killed) ? killed : byMemory(memoryKills, end), at };
}

/** There is a record of its end. */
export function hasEnded(runDirectory: string): boolean {
  return statSync(path.join(runDirectory, 'exit'), { throwIfNoEntry: false }) !== undefined;
}

/** Notes why it is about to be killed; the first reason stands. */
export async function recordKilled(runDirectory: string, why: Killed): Promise<void> {
  await writeFile(path.join(runDirectory, 'killed'), why, { flag: 'wx' }).catch(() => undefined);
}

export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

// Shells say 128 + number for a program that a signal ended. So do programs that end themselves in the name of a
// signal.
function outcome(code: number): { code: number | null; signal: string | null } {
  const signal = Object.entries(os.constants.signals).find(([, number]) => number === code - 128)?.[0];
  return signal === undefined ? { code: Number.isNaN(code) ? null : code, signal: null } : { code: null, signal };
}

// The kernel may have killed one of many processes long ago: that is not the cause if the unit exited with success or
// after SIGTERM.
function byMemory(kills: number, end: { code: number | null; signal: string | null }): Killed | null {
  return kills > 0 && end.code !== 0 && end.signal !== 'SIGTERM' ? 'memory' : null;
}

function isKilled(text: string): text is Killed {
  return ['memory', 'time', 'output', 'disk'].includes(text);
}

async function timeOf(runDirectory: string, files: string[]): Promise<string> {
  const times = await Promise.all(
    files.map((file) =>
      stat(path.join(runDirectory, file)).then(
        ({ mtimeMs }) => mtimeMs,
        () => 0,
      ),
    ),
  );
  return new Date(Math.max(...times)).toISOString();
}
