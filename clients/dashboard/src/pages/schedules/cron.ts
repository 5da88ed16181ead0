// Cron expressions as the API reads them (docs/decisions/0189-schedules.md), explained while they are typed.
import { Cron } from 'croner';
import { toString } from 'cronstrue';

export interface Explained {
  /** Such as "At 02:30, Monday through Friday"; null for what is no expression. */
  text: string | null;
  next: Date[];
}

/** The meaning of an expression and its next times; nothing for one that the API would refuse. */
export function explainCron(cron: string, timeZone: string, count = 3): Explained {
  try {
    const rules = { mode: '5-part', fixedTimeRule: 'no-wildcard' } as const;
    const next = new Cron(cron.trim(), { timezone: timeZone, paused: true, ...rules }).nextRuns(count);
    return { text: textOf(cron), next };
  } catch {
    return { text: null, next: [] };
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
