// Processes that end with the one that started them: how soon one that ended is started again, and how one is stopped.
import type { ChildProcess } from 'node:child_process';

export interface RestartPolicy {
  /** One that lives longer was no failure of its start. */
  shortLifeMs: number;
  /** By the short lives that came one after the other. */
  pausesMs: readonly number[];
  /** After them. */
  then: 'last pause again' | 'give up';
}

/**
 * @param shortLives in its place before it @param livedMs null for one that ended in order
 * @returns `pauseMs`: null to give up
 */
export function nextRestart(
  { shortLifeMs, pausesMs, then }: RestartPolicy,
  shortLives: number,
  livedMs: number | null,
): { shortLives: number; pauseMs: number | null } {
  const next = livedMs !== null && livedMs < shortLifeMs ? shortLives + 1 : 0;
  const pauseMs = pausesMs[next] ?? (then === 'give up' ? null : (pausesMs.at(-1) as number));
  return { shortLives: next, pauseMs };
}

/** Resolves when the child has ended. `ask` asks it to; after `withinMs` it is killed. */
export async function stopChild(
  child: ChildProcess,
  ask: (child: ChildProcess) => void,
  withinMs: number,
): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const timer = setTimeout(() => child.kill('SIGKILL'), withinMs);
  ask(child);
  await exited;
  clearTimeout(timer);
}
