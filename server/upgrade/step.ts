// An upgrade is a list of steps: each can be run again after a kill in the middle of it, and those that change what
// runs can be undone.
import type { Config } from '../../core/config';
import type { Installation } from './installation';
import type { Journal } from './journal';

export interface Job {
  installation: Installation;
  config: Config;
  journal: Journal;
  /** Writes the journal. */
  save(): Promise<void>;
}

export interface Step {
  name: string;
  /** For people, while it runs: `unpack the release`. */
  title: string;
  isDone(job: Job): boolean | Promise<boolean>;
  /** @throws CommandError with the reason why it goes back */
  run(job: Job): Promise<void>;
  undo?(job: Job): Promise<void>;
}

/** Before this step, what runs is untouched: an upgrade that was cut off goes back, after it goes on. */
export const FIRST_CHANGE = 'switch';

/** Version to which the journal leads, known once the archive was read. */
export function targetOf({ journal }: Job): string {
  return journal.to as string;
}
