// The clock of a time zone, from the data that Node brings along. A reading of the clock (`local`) is written as the
// milliseconds that UTC has when its clocks read the same.

export interface LocalClock {
  /** The reading of the clock at an instant. */
  at(instant: number): number;
  /** The instants of a reading: none within a gap, two where the clock is set back, the earlier one first. */
  instantsOf(local: number): number[];
  /** The end of the gap that a reading is in: the instant at which the clock is set forward over it. */
  endOfGap(local: number): number;
  /** The instant within a day at which the clock is set back; null where there is none. */
  setBackAfter(instant: number): number | null;
}

const SECOND_MS = 1_000;
/** Beyond each offset of a time zone, and each change of one. */
const DAY_MS = 86_400_000;
const CLOCKS_MAX = 200;

const clocks = new Map<string, LocalClock>();

/** @param timeZone of the IANA database @throws RangeError for another text */
export function localClock(timeZone: string): LocalClock {
  const known = clocks.get(timeZone);
  if (known) return known;
  const made = openClock(offsetsOf(timeZone));
  if (clocks.size >= CLOCKS_MAX) clocks.clear();
  clocks.set(timeZone, made);
  return made;
}

/** What is added to an instant for the reading of the clock, in whole seconds. */
type Offsets = (instant: number) => number;

function offsetsOf(timeZone: string): Offsets {
  const numeric = { year: 'numeric', month: 'numeric', day: 'numeric' } as const;
  const clock = { hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23' } as const;
  const format = new Intl.DateTimeFormat('en-US', { timeZone, calendar: 'iso8601', ...numeric, ...clock });
  return (instant) => {
    const whole = Math.floor(instant / SECOND_MS) * SECOND_MS;
    const parts = { year: 0, month: 0, day: 0, hour: 0, minute: 0, second: 0 };
    for (const { type, value } of format.formatToParts(whole))
      if (type in parts) Object.assign(parts, { [type]: +value });
    return Date.UTC(parts.year, parts.month - 1, parts.day, parts.hour, parts.minute, parts.second) - whole;
  };
}

function openClock(offsetAt: Offsets): LocalClock {
  // Zones change their offset once in two days at most.
  const around = (local: number): [before: number, after: number] => [
    offsetAt(local - DAY_MS),
    offsetAt(local + DAY_MS),
  ];
  return {
    at: (instant) => instant + offsetAt(instant),
    instantsOf(local) {
      const instants = [...new Set(around(local))].map((offset) => local - offset);
      return instants.filter((instant) => instant + offsetAt(instant) === local).sort((one, other) => one - other);
    },
    endOfGap(local) {
      const [before, after] = around(local);
      return changeOf(offsetAt, local - after, local - before);
    },
    setBackAfter(instant) {
      const until = instant + DAY_MS;
      return offsetAt(until) < offsetAt(instant) ? changeOf(offsetAt, instant, until) : null;
    },
  };
}

/** When the offset changes between two instants that have different ones. */
function changeOf(offsetAt: Offsets, from: number, until: number): number {
  const before = offsetAt(from);
  let [low, high] = [Math.floor(from / SECOND_MS), Math.ceil(until / SECOND_MS)];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(middle * SECOND_MS) === before) low = middle;
    else high = middle;
  }
  return high * SECOND_MS;
}
