// Cron expressions: five fields, in a time zone. croner reads the fields and knows the calendar; changes of the clock
// are met here (docs/decisions/0189-schedules.md).
import { Cron, CronPattern } from 'croner';
import { localClock, type LocalClock } from './local_clock';

const FIELDS = 'minute, hour, day of month, month and day of week';
const EXAMPLE = 'such as 30 2 * * * or @daily';
const NICKNAMES = ['@hourly', '@daily', '@midnight', '@weekly', '@monthly', '@yearly', '@annually'];
const FIELD_COUNT = 5;
const MODE = '5-part';
const TIME_ZONE_PREFIX = /^(?:CRON_)?TZ=/i;
// croner has `?` and `+` too, which other crons do not have or read otherwise.
const FIELD = /^[0-9A-Za-z*,\-/#]+$/;
const TIME_ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*$/;

/** Due times within a span. Counting stops at `COUNT_MAX`. */
export interface DueTimes {
  first: Date;
  last: Date;
  count: number;
}

/** More due times than these are not counted. */
export const COUNT_MAX = 1_000;

/** The expression with single spaces; null for one that is malformed or never due. */
export function normalCron(text: string): string | null {
  return cronMistake(text) === null ? spaced(text) : null;
}

/** Why a text is no expression that becomes due, as the end of a sentence about its field; null for a good one. */
export function cronMistake(text: string): string | null {
  const cron = spaced(text);
  if (TIME_ZONE_PREFIX.test(cron)) return 'must not name a time zone. Set `time_zone`, such as Europe/Berlin';
  if (cron.startsWith('@')) return nicknameMistake(cron);
  const fields = cron.split(' ');
  if (fields.length !== FIELD_COUNT) {
    const seconds = fields.length > FIELD_COUNT ? ' There is no field for seconds.' : '';
    return `must have five fields (${FIELDS}), ${EXAMPLE}.${seconds}`.replace(/\.$/, '');
  }
  if (!fields.every((field) => FIELD.test(field)))
    return `may have digits, names such as MON and JAN, and * , - / # L W in its five fields (${FIELDS}), ${EXAMPLE}`;
  return parsedMistake(cron);
}

/** Whether the text names a time zone of the IANA database, such as Europe/Berlin. Offsets are none. */
export function isTimeZone(text: string): boolean {
  if (!TIME_ZONE_NAME.test(text)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: text });
    return true;
  } catch {
    return false;
  }
}

/** The first due time after `after`; null where there is none. @throws Error for what `cronMistake` refuses */
export function nextDue(cron: string, timeZone: string, after: Date): Date | null {
  return timesOf(cron, timeZone).next(after);
}

/** The due times from `first`, which is one, up to `until`. */
export function dueTimes(cron: string, timeZone: string, first: Date, until: Date): DueTimes {
  const times = timesOf(cron, timeZone);
  let count = 1;
  let last = first;
  for (let next = times.next(first); next && next <= until; next = times.next(next)) {
    last = next;
    count += 1;
    if (count === COUNT_MAX) return { first, last: lastDue(times, last, until), count };
  }
  return { first, last, count };
}

interface Times {
  next(after: Date): Date | null;
}

/** The last due time up to `until`, searched in ever longer spans before it. @param known an earlier due time */
function lastDue(times: Times, known: Date, until: Date): Date {
  for (let spanMs = HOUR_MS; until.getTime() - spanMs > known.getTime(); spanMs *= 24) {
    let last: Date | null = null;
    let next = times.next(new Date(until.getTime() - spanMs));
    for (; next && next <= until; next = times.next(next)) last = next;
    if (last) return last;
  }
  let last = known;
  for (let next = times.next(known); next && next <= until; next = times.next(next)) last = next;
  return last;
}

const HOUR_MS = 3_600_000;

function timesOf(cron: string, timeZone: string): Times {
  const [calendar, clock] = [calendarOf(cron), localClock(timeZone)];
  const next = followsClock(cron) ? nextOfClock : nextOfTimes;
  return {
    next(after) {
      const found = next(calendar, clock, after.getTime());
      return found === null ? null : new Date(found);
    },
  };
}

/** A field of hours or minutes with `*`: due whenever the clock reads so. */
function followsClock(cron: string): boolean {
  const [minutes = '', hours = ''] = spaced(cron).split(' ');
  return minutes.toLowerCase() === '@hourly' || minutes.includes('*') || hours.includes('*');
}

/** The next reading of a clock that the fields match; null where there is none. */
type Calendar = (local: number) => number | null;

function calendarOf(cron: string): Calendar {
  const parsed = new Cron(cron, { utcOffset: 0, paused: true, mode: MODE });
  return (local) => parsed.nextRun(new Date(local))?.getTime() ?? null;
}

/** Each time once: within a gap at its end, and of two that the clock reads alike the earlier one. */
function nextOfTimes(calendar: Calendar, clock: LocalClock, after: number): number | null {
  for (let local = calendar(clock.at(after)); local !== null; local = calendar(local)) {
    const due = clock.instantsOf(local)[0] ?? clock.endOfGap(local);
    if (due > after) return due;
  }
  return null;
}

function nextOfClock(calendar: Calendar, clock: LocalClock, after: number): number | null {
  let found: number | undefined;
  let local = calendar(clock.at(after));
  for (; local !== null; local = calendar(local)) {
    found = clock.instantsOf(local).find((instant) => instant > after);
    if (found !== undefined) break;
  }
  return earlier(found ?? null, againDue(calendar, clock, after));
}

/** After the clock is set back it reads times again that are not after those of now. */
function againDue(calendar: Calendar, clock: LocalClock, after: number): number | null {
  const change = clock.setBackAfter(after);
  const local = change === null ? null : calendar(clock.at(change) - 1);
  if (change === null || local === null) return null;
  return clock.instantsOf(local).find((instant) => instant >= change) ?? null;
}

function earlier(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

function nicknameMistake(cron: string): string | null {
  if (NICKNAMES.includes(cron.toLowerCase())) return null;
  const start = cron.toLowerCase() === '@reboot' ? ' An application has no start at which it could run.' : '';
  return `must be one of ${NICKNAMES.join(', ')}, or have five fields, such as 30 2 * * *.${start}`.replace(/\.$/, '');
}

function parsedMistake(cron: string): string | null {
  let pattern: CronPattern;
  try {
    pattern = new CronPattern(cron, undefined, { mode: MODE });
  } catch (error) {
    return `must be a cron expression, ${EXAMPLE}: ${reasonOf(error)}`;
  }
  if (hasDay(pattern)) return null;
  return 'must name a day that exists: this one is never due. A day of every month is 1 to 28, such as 0 0 28 * *';
}

/** Whether any day matches. A search for one would go through centuries of days; other days come within 40 years. */
function hasDay({ day, nearestWeekdays, month, lastDayOfMonth, lastWeekday, starDOW }: CronPattern): boolean {
  if (!starDOW || lastDayOfMonth || lastWeekday) return true;
  const firstDay = day.findIndex((named, index) => named || nearestWeekdays[index]) + 1;
  return month.some((named, index) => named && firstDay <= (DAYS_OF_MONTHS[index] ?? 0));
}

const DAYS_OF_MONTHS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

// Messages of croner name the value, and begin with the name of its class.
function reasonOf(error: unknown): string {
  const text = (error instanceof Error ? error.message : String(error)).replace(/^CronPattern: /, '');
  return `${text.charAt(0).toLowerCase()}${text.slice(1)}`.replace(/\.$/, '');
}

function spaced(text: string): string {
  return text.trim().replace(/[ \t]+/g, ' ');
}
