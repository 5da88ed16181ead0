// Dates of HTTP.

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAY = '(?:mon|tue|wed|thu|fri|sat|sun)';
const WEEKDAY = '(?:mon|tues|wednes|thurs|fri|satur|sun)day';
const MONTH = `(?<month>${MONTHS.join('|')})`;
const TIME = '(?<hour>[01]\\d|2[0-3]):(?<minute>[0-5]\\d):(?<second>[0-5]\\d|60)';
const FORMS = [
  `${DAY}, (?<day>\\d\\d) ${MONTH} (?<year>\\d{4}) ${TIME} GMT`,
  `${WEEKDAY}, (?<day>\\d\\d)-${MONTH}-(?<year>\\d\\d) ${TIME} GMT`,
  `${DAY} ${MONTH} (?<day>\\d\\d| \\d) ${TIME} (?<year>\\d{4})`,
].map((form) => new RegExp(`^${form}$`, 'i'));

/** A two-digit year is at most this far in the future. */
const AHEAD_YEARS_MAX = 50;

/**
 * Milliseconds since the epoch of a date in one of the three formats of RFC 9110 §5.6.7; other formats that
 * `Date.parse` accepts are rejected. Case-insensitive, as RFC 9111 §4.2 requires of caches. NaN for an invalid date.
 */
export function parseHttpDate(text: string | undefined): number {
  const found = FORMS.map((form) => form.exec(text?.trim() ?? '')).find((match) => match !== null);
  const { day = '', month = '', year = '', hour, minute, second } = found?.groups ?? {};
  const fullYear = year.length === 2 ? withCentury(Number(year)) : Number(year);
  const date = new Date(0);
  date.setUTCFullYear(fullYear, MONTHS.indexOf(month.toLowerCase()), Number(day));
  // 31 February would be a day in March.
  if (!found || date.getUTCDate() !== Number(day)) return NaN;
  return date.setUTCHours(Number(hour), Number(minute), Number(second));
}

function withCentury(year: number): number {
  const now = new Date().getUTCFullYear();
  const near = now - (now % 100) + year;
  return near > now + AHEAD_YEARS_MAX ? near - 100 : near;
}
