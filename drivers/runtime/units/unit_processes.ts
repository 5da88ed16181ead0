// Finds the processes of a unit, and stops them.
import { utimes, writeFile } from 'node:fs/promises';
import { statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import type { Handle, StopOptions } from '../../runtime';
import { killControlGroup, processesIn } from '../cgroup';
import {
  allProcesses,
  argumentsOf,
  catchesSignal,
  descendants,
  environmentOf,
  processOf,
  signalProcess,
  type Proc,
} from '../../../core/process/processes';
import { isRunning, OUTPUT_READER, type Unit } from '../run_directory';
import { OTHER_WRAPPERS, PACKAGE_MANAGERS, SHELLS } from './wrappers';

const pollEveryMs = 50;
const recordWithinMs = 2_000;
const killWithinMs = 20_000;
const scriptsEndAfterMs = 2_000;

/** All processes of the unit but its shim, and what copies its output. */
export function processesOfUnit(unit: Unit, handle: Handle, all = allProcesses()): Proc[] {
  const found = new Set(unit.group === null ? [] : processesIn(unit.group));
  // The pid of the shim can be reused once the shim has exited.
  if (isRunning(handle)) {
    for (const { pid } of descendants(all, handle.pid)) found.add(pid);
    for (const one of all.values()) if (one.session === handle.pid || one.group === handle.pid) found.add(one.pid);
  }
  found.delete(handle.pid);
  for (const one of outputReaders(handle, all)) found.delete(one.pid);
  return [...found].map((pid) => all.get(pid)).filter((one) => one !== undefined && !one.zombie) as Proc[];
}

// What copies the output of a unit (drivers/runtime/sandbox/launch.ts): it ends by itself, behind the last line.
function outputReaders(handle: Handle, all: Map<number, Proc>): Proc[] {
  const readers = [...all.values()].filter(
    ({ pid, parent }) => parent === handle.pid && argumentsOf(pid).includes(OUTPUT_READER),
  );
  return readers.flatMap((one) => [one, ...descendants(all, one.pid)]);
}

/**
 * Sends the signal to the innermost programs, then SIGKILL to all when the grace time is over. Repeated calls, also by
 * another control plane, continue the grace time. @throws DriverError transient when the context ends before the unit
 */
export async function stopUnit(
  runDirectory: string,
  unit: Unit,
  handle: Handle,
  options: StopOptions,
  ctx: DriverContext,
): Promise<void> {
  const { grace_ms: graceMs, signal = 'SIGTERM' } = options;
  const once: Signalled = { keys: new Set(), signal };
  const since = await stoppingSince(runDirectory, unit, handle, once);
  while (isRunning(handle) && Date.now() - since < graceMs) {
    if (ctx.signal.aborted) throw new DriverError('transient', 'The unit is still stopping.');
    await sleep(Math.max(1, Math.min(pollEveryMs, since + graceMs - Date.now())));
    // A script may continue with its next program; one that goes on and on, as a loop does, ends itself.
    once.withShells = Date.now() - since > scriptsEndAfterMs;
    if ((Date.now() - since) % 500 < pollEveryMs) signalInnermost(unit, handle, once);
  }
  await killUnit(runDirectory, unit, handle);
}

/** Sends SIGKILL until no process is left. Resolves when the exit is recorded. @throws DriverError transient */
export async function killUnit(runDirectory: string, unit: Unit, handle: Handle): Promise<void> {
  const begin = Date.now();
  // A process that is just starting its program shows no environment to be known by; a moment later it does.
  const scansNeeded = unit.group === null ? 2 : 1;
  for (let emptyScans = 0; Date.now() - begin < killWithinMs;) {
    let left = remainingProcesses(runDirectory, unit, handle);
    emptyScans = left.length === 0 && !isRunning(handle) ? emptyScans + 1 : 0;
    if (emptyScans === scansNeeded) return;
    if (unit.group !== null) await killControlGroup(unit.group);
    else left = stopAll(left, () => remainingProcesses(runDirectory, unit, handle));
    left.forEach(({ pid }) => signalProcess(pid, 'SIGKILL'));
    if (Date.now() - begin > recordWithinMs && isRunning(handle)) signalProcess(handle.pid, 'SIGKILL');
    await sleep(10);
  }
  throw new DriverError('transient', 'Processes of the unit did not end.');
}

/**
 * Stops processes and what they made meanwhile, so that none makes another while they are killed one by one: a sandbox
 * that is killed before it has tied its inner process to itself would leave that one behind.
 */
function stopAll(first: Proc[], scan: () => Proc[]): Proc[] {
  const stopped = new Map<number, Proc>();
  for (let found = first; found.some(({ pid }) => !stopped.has(pid)); found = scan()) {
    for (const one of found) {
      if (stopped.has(one.pid)) continue;
      signalProcess(one.pid, 'SIGSTOP');
      stopped.set(one.pid, one);
    }
  }
  return [...stopped.values()];
}

// Without a control group, a program that left its session is known by the directory that it got as TMPDIR.
function remainingProcesses(runDirectory: string, unit: Unit, handle: Handle): Proc[] {
  const all = allProcesses();
  const members = processesOfUnit(unit, handle, all);
  if (unit.group !== null || members.length > 0 || isRunning(handle)) return members;
  return [...all.values()].filter(
    (one) =>
      !one.zombie && one.pid !== process.pid && environmentOf(one.pid).includes(`=${path.join(runDirectory, 'tmp')}\0`),
  );
}

/** Sends a signal once to the programs that `stopUnit` would send it to. */
export function signalUnit(unit: Unit, handle: Handle, signal: NodeJS.Signals): void {
  signalInnermost(unit, handle, { keys: new Set(), signal });
}

/** The processes that got the signal already. */
interface Signalled {
  keys: Set<string>;
  signal: NodeJS.Signals;
  /** Shells get it with the programs that they start. */
  withShells?: boolean;
}

// The file's time is the beginning of the grace time. It is written after the signals: a control plane killed between
// the two sends them again, which is better than never.
async function stoppingSince(runDirectory: string, unit: Unit, handle: Handle, once: Signalled): Promise<number> {
  const file = path.join(runDirectory, 'stopping');
  const before = statSync(file, { throwIfNoEntry: false });
  if (before !== undefined) {
    innermostProcesses(unit, handle, once).forEach((one) => once.keys.add(keyOf(one)));
    return before.mtimeMs;
  }
  signalInnermost(unit, handle, once);
  const now = new Date();
  await writeFile(file, '')
    .then(() => utimes(file, now, now))
    .catch(() => undefined);
  return now.getTime();
}

function signalInnermost(unit: Unit, handle: Handle, signalled: Signalled): void {
  for (const one of innermostProcesses(unit, handle, signalled)) {
    if (signalled.keys.has(keyOf(one))) continue;
    signalled.keys.add(keyOf(one));
    signalProcess(one.pid, signalled.signal);
    const parent = signalled.withShells ? processOf(one.parent) : null;
    if (parent && isShell(parent) && !isSandbox(parent)) signalProcess(parent.pid, signalled.signal);
  }
}

const wrappers = new Set([...SHELLS, ...PACKAGE_MANAGERS, ...OTHER_WRAPPERS]);
const managerScript = new RegExp(`^(${PACKAGE_MANAGERS.join('|')})(-cli)?(\\.c?js)?$`);

// bwrap and shells do not forward signals, npm would forward them a second time. The actual program is behind them; it
// handles its own children (workers of a cluster). A shell whose script handles the signal gets it first, and what it
// waits for at the next pass: its trap runs only then.
function innermostProcesses(unit: Unit, handle: Handle, { keys, signal }: Signalled): Proc[] {
  if (!isRunning(handle)) return [];
  const all = allProcesses();
  const members = processesOfUnit(unit, handle, all);
  const childrenOf = (pid: number) => members.filter((one) => one.parent === pid);
  const found: Proc[] = [];
  const waiting = childrenOf(handle.pid);
  for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
    const children = childrenOf(one.pid);
    const isFirst = isScriptWithTrap(one, signal) && !keys.has(keyOf(one));
    if (children.length > 0 && isWrapper(one) && !isFirst) waiting.push(...children);
    else if (!isSandbox(one)) found.push(one);
  }
  return found;
}

function isWrapper(one: Proc): boolean {
  const script = path.basename(argumentsOf(one.pid)[1] ?? '');
  return isSandbox(one) || isShell(one) || wrappers.has(one.name.split(' ')[0] ?? '') || managerScript.test(script);
}

// A script with #! has its own name, and that of its shell as the first argument.
function isShell(one: Proc): boolean {
  return SHELLS.includes(path.basename(argumentsOf(one.pid)[0] ?? ''));
}

function isScriptWithTrap(one: Proc, signal: NodeJS.Signals): boolean {
  return signal === 'SIGTERM' && isShell(one) && !isSandbox(one) && catchesSignal(one.pid, signal);
}

// The fork of the shim before it became the command, and bwrap while it sets up: ending these would leave no trace of
// the program that is about to start; the next poll finds it.
function isSandbox(one: Proc): boolean {
  return one.name === 'bwrap' || argumentsOf(one.pid).includes('platform-unit');
}

function keyOf(one: Proc): string {
  return `${one.pid}@${one.start}`;
}
