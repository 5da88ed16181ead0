// Starts a driver in a process of its own, to be killed with SIGKILL.
import { spawn, spawnSync } from 'node:child_process';
import path from 'node:path';
import type { Desired, Fingerprint } from '../../core/driver';

/** How another process opens the same driver: `module` from the root of the project, a function in it, its argument. */
export interface Recipe {
  module: string;
  factory: string;
  options: unknown;
}

export interface Job {
  recipe: Recipe;
  verb: 'ensure' | 'remove';
  desired: Desired<unknown>;
}

const program = path.join(__dirname, 'killable.js');

/** What the driver says of this host. Synchronous, so that a suite can be skipped by name. */
export function fingerprintOf(recipe: Recipe): Fingerprint {
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [program, JSON.stringify({ ...recipe, verb: 'fingerprint' })],
    { encoding: 'utf8' },
  );
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as Fingerprint;
}

/** Runs the verb to its end and answers how many continuations it had. */
export async function countContinuations(job: Job): Promise<number> {
  const { signal, stdout, stderr } = await start(job, 0, Infinity);
  if (signal !== null || stdout === '') throw new Error(`the child failed: ${stderr}`);
  return Number(stdout);
}

/** Runs the verb and kills it at its n-th continuation; false when it ended before. */
export async function killAtContinuation(job: Job, n: number): Promise<boolean> {
  return (await start(job, n, Infinity)).signal === 'SIGKILL';
}

/** Runs the verb and kills it after `ms`; false when it ended before. */
export async function killAfter(job: Job, ms: number): Promise<boolean> {
  return (await start(job, 0, ms)).signal === 'SIGKILL';
}

interface Ended {
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

function start(job: Job, killAt: number, killAfterMs: number): Promise<Ended> {
  const child = spawn(process.execPath, [
    program,
    JSON.stringify({ ...job.recipe, verb: job.verb, desired: job.desired, killAt }),
  ]);
  const timer = killAfterMs === Infinity ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfterMs);
  const words = { stdout: '', stderr: '' };
  child.stdout.on('data', (text: Buffer) => (words.stdout += text.toString()));
  child.stderr.on('data', (text: Buffer) => (words.stderr += text.toString()));
  return new Promise((resolve) => {
    child.on('close', (_, signal) => {
      clearTimeout(timer);
      resolve({ signal, ...words });
    });
  });
}
