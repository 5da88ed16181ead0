// The ways to run units that this host has.
import { spawnSync } from 'node:child_process';
import type { Variant } from './runtime';

const hasBubblewrap = spawnSync('bwrap', ['--version']).status === 0;
// How units are kept apart and how they are limited does not depend on each other; runtime_limits.test.ts has all four
// pairs.
const variants: [string, Variant][] = [
  ['bubblewrap', { sandbox: 'bubblewrap' }],
  ['no sandbox, no control groups', { sandbox: 'none', limits: 'poll' }],
];
// Under CI nothing is left out: there a missing bubblewrap fails.
export const runtimeVariants = variants.filter(
  ([, { sandbox }]) => sandbox === 'none' || hasBubblewrap || process.env.CI,
);
