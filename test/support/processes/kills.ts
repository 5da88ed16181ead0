import path from 'node:path';

/** CONFORMANCE_KILLS=all kills at every single continuation of a step, which takes hours. */
export const killsAll = process.env.CONFORMANCE_KILLS === 'all';

const ROOT = path.join(__dirname, '../../..');
const SUITE = ['every', 'user', 'bare'];

/**
 * Whether the file that runs takes more kills and more made-up input, of a new seed, than in every run:
 * test/support/runner/selection.ts. In CI those of its quarter do (test/support/runner/tier_filter.js).
 */
export function isHeavyRun(): boolean {
  const tier = process.env.TEST_TIER ?? 'every';
  if (tier !== 'ci') return !SUITE.includes(tier);
  const heavy = JSON.parse(process.env.TEST_HEAVY ?? '[]') as string[];
  return heavy.includes(path.relative(ROOT, expect.getState().testPath ?? ''));
}
