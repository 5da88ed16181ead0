// Why a due time started no run, or a late one: sentences for users.
import { COUNT_MAX, type DueTimes } from '../../../core/protocols/cron';

export const STOPPED = 'The application is stopped. Start the application, or disable the schedule.';
export const OVERLAPS =
  'The last run of the schedule had not finished. Set `concurrency` to `allow` or `replace`, or run the command less ' +
  'often.';
export const REPLACED = 'Canceled because its schedule started the next run.';

/** Why due times have passed: the platform was stopped, or had too much to do. */
export type Cause = 'down' | 'busy';

const CAUSES: Record<Cause, string> = {
  down: 'The platform did not work',
  busy: 'The platform was overloaded',
};

/** For due times that start no run. */
export function missedReason(due: DueTimes, cause: Cause): string {
  return `${CAUSES[cause]} ${spanOf(due)}, so the command did not run.`;
}

/** For due times that one run makes up for. @param late whether the last of them has passed long ago too */
export function caughtUpReason(due: DueTimes, late: boolean, cause: Cause): string {
  const missed = late ? due : { ...due, count: due.count - 1 };
  return `${CAUSES[cause]} ${spanOf(missed)}. This run makes up for ${missed.count === 1 ? 'it' : 'them'}.`;
}

function spanOf({ first, last, count }: DueTimes): string {
  if (count === 1) return `at ${first.toISOString()}`;
  const times = count >= COUNT_MAX - 1 ? `${COUNT_MAX - 1} or more` : String(count);
  return `at ${times} times between ${first.toISOString()} and ${last.toISOString()}`;
}
