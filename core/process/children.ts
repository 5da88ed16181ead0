// Child processes that end with their parent: the back-off before a restart, and how a child is stopped.
import type { ChildProcess } from 'node:child_process';

export interface RestartPolicy {
  /** A child that lives longer did not fail at its start, which resets the back-off. */
  shortLifeMs: number;
  /** Pause before a restart, by the number of consecutive short lives. */
  pausesMs: readonly number[];
  /** Policy after the last pause. */
  then: 'last pause again' | 'give up';
}

/**
 * @param shortLives consecutive short lives before this one @param livedMs null for an orderly exit
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

/** Resolves when the child has exited. `requestStop` starts a graceful stop; after `withinMs` the child is killed. */
export async function stopChild(
  child: ChildProcess,
  requestStop: (child: ChildProcess) => void,
  withinMs: number,
): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const timer = setTimeout(() => child.kill('SIGKILL'), withinMs);
  requestStop(child);
  await exited;
  clearTimeout(timer);
}
