// Processes of a cluster: each writes into a log, and ends with the supervisor, however that ends.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

export function startProcess(
  log: string,
  command: readonly [string, ...string[]],
  env: Record<string, string> = {},
): ChildProcess {
  const output = openSync(log, 'a');
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...command], {
    stdio: ['ignore', output, output],
    env: { PATH: `${process.env.PATH ?? ''}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin`, LC_ALL: 'C', ...env },
  });
  closeSync(output);
  return child;
}

export async function killProcess(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await untilExited(child);
}

export async function untilExited(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

/** Runs a program of the host. @throws Error with what it printed */
export function runProgram(program: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed with ${status}: ${stderr || stdout}`);
  return stdout;
}

/** @throws Error with the last lines of the log where it does not become true in time, or a process ends meanwhile */
export async function waitUntil(
  condition: () => Promise<boolean> | boolean,
  { what, log, child, seconds }: { what: string; log: string; child?: ChildProcess; seconds: number },
): Promise<void> {
  const failed = (why: string): never => {
    const lines = readFileSync(log, 'utf8').split('\n').slice(-15).join('\n');
    throw new Error(`${what} ${why}:\n${lines}`);
  };
  for (const end = Date.now() + seconds * 1000; !(await condition()); await sleep(100)) {
    if (child && (child.exitCode !== null || child.signalCode !== null)) failed('has ended');
    if (Date.now() > end) failed(`is not ready after ${seconds} s`);
  }
}
