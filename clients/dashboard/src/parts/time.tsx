// Times as people say them, beside the exact one in the zone of the person.
const UNITS: [name: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

/** Of 24 hours, as the lines of logs have them. */
const CLOCK = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
const short = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', ...CLOCK });
const shortWithYear = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric', ...CLOCK });
const full = new Intl.DateTimeFormat('en-GB', {
  ...{ weekday: 'long', day: 'numeric', month: 'long', year: 'numeric', ...CLOCK },
  ...{ second: '2-digit', timeZoneName: 'short' },
});

/** `5 minutes ago`, and `29 Nov, 14:05` below it or behind it. */
export function Ago({ time }: { time: string | null | undefined }) {
  if (!time) return <span class="faint">–</span>;
  return (
    <time dateTime={time} title={fullTime(time)}>
      {agoText(time)} <small>{shortTime(time)}</small>
    </time>
  );
}

/** The year where it is another one than today's. */
export function shortTime(time: string, now = new Date()): string {
  const at = new Date(time);
  return (at.getFullYear() === now.getFullYear() ? short : shortWithYear).format(at);
}

/** `29 Nov 2026, 14:05:09`, of 24 hours. @param timeZone default: that of the person */
export function momentText(time: Date, timeZone?: string): string {
  const date = { day: 'numeric', month: 'short', year: 'numeric' } as const;
  return new Intl.DateTimeFormat('en-GB', { ...date, ...CLOCK, second: '2-digit', timeZone }).format(time);
}

/** With seconds and the zone: `Sunday, 29 November 2026 at 14:05:09 CET (Europe/Berlin)`. */
export function fullTime(time: string): string {
  return `${full.format(new Date(time))} (${full.resolvedOptions().timeZone})`;
}

export function agoText(time: string, now = Date.now()): string {
  const seconds = (Date.parse(time) - now) / 1_000;
  const unit = UNITS.find(([, length]) => Math.abs(seconds) >= length);
  return unit ? relative.format(wholeOf(seconds / unit[1]), unit[0]) : 'just now';
}

/** What is to come in 6 days and 23 hours, comes in 7 days. */
const wholeOf = (count: number): number => (count > 0 ? Math.round(count) : Math.trunc(count));

/** `1 min 12 s` between two times. */
export function durationText(from: string | null, to: string | null): string {
  if (!from) return '–';
  return secondsText(Math.max(0, Math.round(((to ? Date.parse(to) : Date.now()) - Date.parse(from)) / 1_000)));
}

const LENGTHS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** `1 min 12 s`, `2 h` and `3 d 4 h`: the two largest units of a number of seconds. */
export function secondsText(seconds: number): string {
  const first = LENGTHS.findIndex(([, length]) => seconds >= length);
  if (first < 0) return '0 s';
  const parts = LENGTHS.slice(first, first + 2).map(([unit, length], index) => {
    const rest = index ? seconds % (LENGTHS[first]?.[1] ?? 1) : seconds;
    return [Math.floor(rest / length), unit] as const;
  });
  return parts.flatMap(([count, unit]) => (count ? [`${count} ${unit}`] : [])).join(' ');
}

export function bytesText(bytes: number | null): string {
  if (bytes === null) return '–';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${(bytes / 1000 ** power).toFixed(power ? 1 : 0)} ${units[power]}`;
}
