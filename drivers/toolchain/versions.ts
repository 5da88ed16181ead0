// Versions and ranges in the grammar of npm. Ranges come from untrusted sources: an unreadable range is a distinct
// result, and one readable alternative of several is sufficient. See
// https://docs.npmjs.com/cli/v11/configuring-npm/package-json#engines
import { createRequire } from 'node:module';
import type * as OfSemver from 'semver';
import { memoize } from '../../core/memoize';

/** 50 modules, 80 ms, which a start need not wait for. */
const semver = memoize(() => createRequire(__filename)('semver') as typeof OfSemver);

const RANGE_LENGTH_MAX = 1000;

/**
 * Whether a version is within a range. Pre-releases count as their final version.
 * @returns null where the range or the version cannot be parsed, or the range has more than 1000 characters
 */
export function satisfies(version: string, range: string): boolean | null {
  const { coerce, satisfies: isWithin, validRange } = semver();
  const found = coerce(version);
  if (found === null || range.length > RANGE_LENGTH_MAX) return null;
  const answers = range.split('||').map((one) => (validRange(one) === null ? null : isWithin(found, one)));
  if (answers.includes(true)) return true;
  return answers.includes(null) ? null : false;
}

/** The highest version; null for an empty list. Pre-releases are ignored. */
export function highest<T extends { version: string }>(versions: readonly T[]): T | null {
  const exact = versions.filter(({ version }) => isExact(version));
  return exact.sort((a, b) => semver().rcompare(a.version, b.version))[0] ?? null;
}

/** 22.1.0, not 22, 22.x or 22.1.0-rc.1. */
export function isExact(version: string): boolean {
  return /^\d+\.\d+\.\d+$/.test(version);
}

/** The major version: 22 of 22.1.0; NaN for an invalid version. */
export function majorOf(version: string): number {
  return semver().coerce(version)?.major ?? NaN;
}
