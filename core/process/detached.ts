// Programs that outlive the control plane that started them. Each writes a separate log, and the next control plane
// finds it by a socket or a note (process_note.ts).
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

export interface DetachedProgram {
  /** The program and its arguments. */
  command: readonly string[];
  cwd: string;
  /** All of it: nothing is inherited, since our own environment has secrets. */
  env: NodeJS.ProcessEnv;
  /** Output of the program, readable by this user alone. */
  log: { file: string; mode: 'append' | 'replace' };
}

const POLL_MS = 10;
/** The program may have exited because another control plane has just started one, which responds in a moment. */
const ENDED_GRACE_MS = 500;
const TAIL_CHARACTERS = 1_000;

/**
 * Starts a program and polls until `probe` answers.
 * @returns its answer; null where the program ended, or `withinMs` have passed
 * @throws the errors of `probe`
 */
export async function startDetached<T>(
  program: DetachedProgram,
  probe: () => Promise<T | null>,
  withinMs: number,
): Promise<T | null> {
  let until = Date.now() + withinMs;
  launch(program, () => (until = Math.min(until, Date.now() + ENDED_GRACE_MS)));
  while (Date.now() < until) {
    const found = await probe();
    if (found !== null) return found;
    await sleep(POLL_MS);
  }
  return null;
}

function launch({ command: [file = '', ...args], cwd, env, log }: DetachedProgram, ended: () => void): void {
  const output = openSync(log.file, log.mode === 'append' ? 'a' : 'w', 0o600);
  try {
    const child = spawn(file, args, { cwd, env, detached: true, stdio: ['ignore', output, output] });
    // One that cannot be started does not answer either.
    child.once('error', ended).once('exit', ended);
    child.unref();
  } finally {
    closeSync(output);
  }
}

/** The end of what a program has printed, for the operator. */
export function logTail(file: string): string {
  try {
    return readFileSync(file, 'utf8').slice(-TAIL_CHARACTERS);
  } catch {
    return '';
  }
}
