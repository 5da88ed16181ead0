// Times as people say them, the exact one on demand.
const UNITS: [name: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

export function Ago({ time }: { time: string | null | undefined }) {
  if (!time) return <span class="faint">–</span>;
  return (
    <time dateTime={time} title={new Date(time).toLocaleString()}>
      {agoText(time)}
    </time>
  );
}

export function agoText(time: string, now = Date.now()): string {
  const seconds = (Date.parse(time) - now) / 1_000;
  const unit = UNITS.find(([, length]) => Math.abs(seconds) >= length);
  return unit ? relative.format(Math.trunc(seconds / unit[1]), unit[0]) : 'just now';
}

/** `1 min 12 s` between two times. */
export function durationText(from: string | null, to: string | null): string {
  if (!from) return '–';
  const seconds = Math.max(0, Math.round(((to ? Date.parse(to) : Date.now()) - Date.parse(from)) / 1_000));
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

export function bytesText(bytes: number | null): string {
  if (bytes === null) return '–';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${(bytes / 1000 ** power).toFixed(power ? 1 : 0)} ${units[power]}`;
}
