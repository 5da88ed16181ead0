// Carries out what the journal says, from where it stands: this is what the unit platform-upgrade.service runs, after a
// power cut too.
import type { Config } from '../../core/config';
import { toSentence } from '../../core/sentence';
import { pruneBackups } from './control_backup';
import { backupStep, checkStep, clearStaging, doctorStep, fetchStep, measureStep, unpackStep } from './prepare_steps';
import { restartStep, restoreStep, switchStep, targetStep, tidyStep, watchStep } from './change_steps';
import type { Installation } from './installation';
import { endJournal, readJournal, saveJournal, type Journal } from './journal';
import { FIRST_CHANGE, type Job, type Step } from './step';

export const STEPS: Record<Journal['kind'], readonly Step[]> = {
  upgrade: [
    ...[fetchStep, checkStep, unpackStep, doctorStep, backupStep, measureStep],
    ...[switchStep, restartStep, watchStep, tidyStep],
  ],
  rollback: [targetStep, measureStep, switchStep, restoreStep, restartStep, watchStep],
};

/**
 * @param print a line for the journal of systemd
 * @returns the journal as it ended; null where there was nothing to do
 */
export async function carryOut(
  installation: Installation,
  config: Config,
  print: (line: string) => void,
): Promise<Journal | null> {
  const journal = readJournal(installation, 'state');
  if (journal === null) return null;
  const job: Job = { installation, config, journal, save: () => saveJournal(installation, journal) };
  const steps = STEPS[journal.kind];
  const at = Math.max(0, stepIndex(steps, journal.step));
  const wasCutOff = journal.step !== steps[0]?.name;
  if (wasCutOff && journal.direction === 'forward' && at < stepIndex(steps, FIRST_CHANGE))
    await turnBack(job, `it was cut off while it was to ${steps[at]?.title}: begin it again`);
  if (journal.direction === 'forward') await goForward(job, steps.slice(at), print);
  if (journal.direction === 'back') await goBack(job, steps, print);
  await clearStaging(job);
  await pruneBackups(config, journal.point);
  journal.ended_at = new Date().toISOString();
  await endJournal(installation, journal);
  print(outcomeOf(journal));
  return journal;
}

async function goForward(job: Job, steps: readonly Step[], print: (line: string) => void): Promise<void> {
  try {
    for (const step of steps) {
      job.journal.step = step.name;
      await job.save();
      if (await step.isDone(job)) continue;
      print(step.title);
      await step.run(job);
    }
    job.journal.outcome = 'done';
  } catch (error) {
    await turnBack(job, reasonOf(error));
  }
}

async function turnBack(job: Job, reason: string): Promise<void> {
  Object.assign(job.journal, { direction: 'back', reason });
  // A disk without room for the journal has some again when the steps are undone.
  await job.save().catch(() => undefined);
}

/** From the step that failed to the first one. A step that cannot be undone does not keep the others. */
async function goBack(job: Job, steps: readonly Step[], print: (line: string) => void): Promise<void> {
  const { journal } = job;
  print(`going back: ${journal.reason}`);
  journal.outcome = 'undone';
  const begun = steps.slice(0, stepIndex(steps, journal.step) + 1);
  for (const { undo } of begun.reverse()) {
    try {
      await undo?.(job);
    } catch (error) {
      journal.outcome = 'failed';
      journal.notes.push(toSentence(reasonOf(error)));
    }
  }
}

function stepIndex(steps: readonly Step[], name: string): number {
  return steps.findIndex((step) => step.name === name);
}

/** One sentence on how it ended. */
export function outcomeOf({ kind, from, to, outcome, reason }: Journal): string {
  const what =
    kind === 'upgrade'
      ? `The upgrade from ${from}${to ? ` to ${to}` : ''}`
      : `The rollback from ${from}${to ? ` to ${to}` : ''}`;
  if (outcome === 'done') return `${what} is done.`;
  if (outcome === 'undone') return `${what} was not made, and ${from} serves as before: ${toSentence(reason ?? '')}`;
  if (outcome === 'failed') return `${what} failed, and could not be undone: ${toSentence(reason ?? '')}`;
  return `${what} is under way.`;
}

function reasonOf(error: unknown): string {
  const text = error instanceof Error ? (error.message.split('\n')[0] as string) : String(error);
  // The last is what tar says of a disk that takes a part of a file.
  return /no space left on device|quota exceeded|wrote only \d+ of \d+ bytes/i.test(text)
    ? `${text}: make room first`
    : text;
}
