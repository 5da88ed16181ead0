// Versions and ranges in the grammar of npm. Sources are written by strangers: a range that nobody can read is an
// answer of its own, and one of several alternatives that can be read counts.
// See https://docs.npmjs.com/cli/v11/configuring-npm/package-json#engines
import { coerce, rcompare, satisfies as isWithin, validRange } from 'semver';

const RANGE_LENGTH_MAX = 1000;

/**
 * Whether a version is within a range. Pre-releases count as the version that they lead to.
 * @returns null where the range or the version cannot be read, or the range has more than 1000 characters
 */
export function satisfies(version: string, range: string): boolean | null {
  const found = coerce(version);
  if (found === null || range.length > RANGE_LENGTH_MAX) return null;
  const answers = range.split('||').map((one) => (validRange(one) === null ? null : isWithin(found, one)));
  if (answers.includes(true)) return true;
  return answers.includes(null) ? null : false;
}

/** The highest of the versions, null of none. Pre-releases do not count. */
export function highest<T extends { version: string }>(versions: readonly T[]): T | null {
  const exact = versions.filter(({ version }) => isExact(version));
  return exact.sort((a, b) => rcompare(a.version, b.version))[0] ?? null;
}

/** 22.1.0, not 22, 22.x or 22.1.0-rc.1. */
export function isExact(version: string): boolean {
  return /^\d+\.\d+\.\d+$/.test(version);
}

/** 22 of 22.1.0; NaN of what is no version. */
export function majorOf(version: string): number {
  return coerce(version)?.major ?? NaN;
}
