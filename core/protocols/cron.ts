// Cron expressions: five fields, in a time zone. Fields are read, and changes of the clock are met, as croner does it
// (docs/decisions/0189-schedules.md).
import { Cron } from 'croner';

const FIELDS = 'minute, hour, day of month, month and day of week';
const EXAMPLE = 'such as 30 2 * * * or @daily';
const NICKNAMES = ['@hourly', '@daily', '@midnight', '@weekly', '@monthly', '@yearly', '@annually'];
const FIELD_COUNT = 5;
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
  return parse(cron, timeZone).nextRun(after);
}

/** The due times from `first`, which is one, up to `until`. */
export function dueTimes(cron: string, timeZone: string, first: Date, until: Date): DueTimes {
  const parsed = parse(cron, timeZone);
  let count = 1;
  let last = first;
  for (let next = parsed.nextRun(first); next && next <= until; next = parsed.nextRun(next)) {
    last = next;
    count += 1;
    if (count === COUNT_MAX) return { first, last: lastDue(parsed, until) ?? last, count };
  }
  return { first, last, count };
}

/** The last due time up to `until`. */
function lastDue(parsed: Cron, until: Date): Date | null {
  return parsed.previousRuns(1, new Date(until.getTime() + 1))[0] ?? null;
}

function nicknameMistake(cron: string): string | null {
  if (NICKNAMES.includes(cron.toLowerCase())) return null;
  const start = cron.toLowerCase() === '@reboot' ? ' An application has no start at which it could run.' : '';
  return `must be one of ${NICKNAMES.join(', ')}, or have five fields, such as 30 2 * * *.${start}`.replace(/\.$/, '');
}

function parsedMistake(cron: string): string | null {
  let parsed: Cron;
  try {
    parsed = parse(cron, 'UTC');
  } catch (error) {
    return `must be a cron expression, ${EXAMPLE}: ${reasonOf(error)}`;
  }
  if (parsed.nextRun() !== null) return null;
  return 'must name a day that exists: this one is never due. A day of every month is 1 to 28, such as 0 0 28 * *';
}

// Messages of croner name the value, and begin with the name of its class.
function reasonOf(error: unknown): string {
  const text = (error instanceof Error ? error.message : String(error)).replace(/^CronPattern: /, '');
  return `${text.charAt(0).toLowerCase()}${text.slice(1)}`.replace(/\.$/, '');
}

function parse(cron: string, timezone: string): Cron {
  return new Cron(cron, { timezone, paused: true, mode: '5-part' });
}

function spaced(text: string): string {
  return text.trim().replace(/[ \t]+/g, ' ');
}
