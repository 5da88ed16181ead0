// Cron expressions, explained while they are typed; their next times are found by the code of the API itself.
import { toString } from 'cronstrue';
import { cronMistake, nextDue } from '../../../../../core/protocols/cron';

export interface Explained {
  /** Such as "At 02:30, Monday through Friday"; null for what is no expression. */
  text: string | null;
  next: Date[];
}

/** The meaning of an expression and its next times; nothing for one that the API would refuse. */
export function explainCron(cron: string, timeZone: string, count = 3): Explained {
  if (cronMistake(cron) !== null) return { text: null, next: [] };
  const next: Date[] = [];
  for (let at = nextOf(cron, timeZone, new Date()); at && next.length < count; at = nextOf(cron, timeZone, at))
    next.push(at);
  return { text: textOf(cron), next };
}

/** Null for a time zone that this browser does not know, too: the API may. */
function nextOf(cron: string, timeZone: string, after: Date): Date | null {
  try {
    return nextDue(cron, timeZone, after);
  } catch {
    return null;
  }
}

function textOf(cron: string): string {
  try {
    return toString(cron, { use24HourTimeFormat: true, verbose: true });
  } catch {
    return 'At the times below';
  }
}

export function inZone(time: Date, timeZone: string): string {
  const parts = { weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' } as const;
  const clock = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZoneName: 'short' } as const;
  return new Intl.DateTimeFormat('en-GB', { ...parts, ...clock, timeZone }).format(time);
}

/** The time zone of the browser, as the API names it. */
export function ownTimeZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}
