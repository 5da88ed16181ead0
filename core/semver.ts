// Versions and ranges in the grammar of npm, without pre-releases.
// See https://docs.npmjs.com/cli/v11/configuring-npm/package-json#engines

type Version = [major: number, minor: number, patch: number];
type Bounds = { from: Version; below: Version };

const RANGE_LENGTH_MAX = 1000;
const endless: Version = [Infinity, 0, 0];
const none: Version = [0, 0, 0];

/** null where the range cannot be read, or is longer than anybody writes: strangers do. */
export function satisfies(version: string, range: string): boolean | null {
  const found = numbers(version);
  if (found === null || range.length > RANGE_LENGTH_MAX) return null;
  const answers = range.split('||').map((set) => inSet(complete(found), set.trim()));
  if (answers.includes(true)) return true;
  return answers.includes(null) ? null : false;
}

/** The highest of the versions, null of none. Pre-releases do not count. */
export function highest<T extends { version: string }>(versions: readonly T[]): T | null {
  const sorted = versions
    .map((one) => ({ one, at: isExact(one.version) ? numbers(one.version) : null }))
    .filter((entry): entry is { one: T; at: number[] } => entry.at !== null)
    .sort((a, b) => compare(complete(a.at), complete(b.at)));
  return sorted.at(-1)?.one ?? null;
}

/** 22.1.0, not 22 or 22.x. */
export function isExact(version: string): boolean {
  return /^\d+\.\d+\.\d+$/.test(version);
}

/** 22 of 22.1.0. */
export function majorOf(version: string): number {
  return Number(version.split('.')[0]);
}

function inSet(version: Version, set: string): boolean | null {
  const hyphen = /^(\S+)\s+-\s+(\S+)$/.exec(set);
  const words = hyphen
    ? [`>=${hyphen[1]}`, `<=${hyphen[2]}`]
    : set
        .replace(/([<>=~^])\s+/g, '$1')
        .split(/\s+/)
        .filter(Boolean);
  const bounds = words.map(boundsOf);
  if (bounds.includes(null)) return null;
  return bounds.every((one) => one !== null && compare(version, one.from) >= 0 && compare(version, one.below) < 0);
}

function boundsOf(word: string): Bounds | null {
  const [, sign = '', text = ''] = /^([<>]=?|=|~>?|\^)?v?(.*)$/.exec(word) ?? [];
  const given = numbers(text);
  if (given === null) return null;
  const from = complete(given);
  const after = next(from, given.length - 1);
  switch (sign) {
    case '>=':
      return { from, below: endless };
    case '>':
      return { from: after, below: endless };
    case '<':
      return { from: none, below: from };
    case '<=':
      return { from: none, below: after };
    case '^':
      return { from, below: next(from, firstOf(from)) };
    case '~':
    case '~>':
      return { from, below: next(from, Math.min(given.length - 1, 1)) };
    default:
      return { from, below: after };
  }
}

/** 20, 20.x, 20.1.2; none for *. */
function numbers(text: string): number[] | null {
  const parts = text.split('-')[0]!.split('.');
  const free = parts.findIndex((part) => /^[xX*]?$/.test(part));
  const given = free < 0 ? parts : parts.slice(0, free);
  return given.length <= 3 && given.every((part) => /^\d+$/.test(part)) ? given.map(Number) : null;
}

function complete([major = 0, minor = 0, patch = 0]: number[]): Version {
  return [major, minor, patch];
}

/**
 * The least version beyond all that agree with this one up to the place: 0 major, 1 minor, 2 patch; -1 everything
 * agrees.
 */
function next(version: Version, place: number): Version {
  if (place < 0) return endless;
  return complete(version.map((number, i) => (i < place ? number : i === place ? number + 1 : 0)));
}

/** ^ holds the first number that is not 0. */
function firstOf(version: Version): number {
  const first = version.findIndex((number) => number > 0);
  return first < 0 ? 2 : first;
}

function compare(one: Version, other: Version): number {
  const place = one.findIndex((number, i) => number !== other[i]);
  return place < 0 ? 0 : one[place]! - other[place]!;
}
