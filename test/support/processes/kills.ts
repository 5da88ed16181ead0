/** CONFORMANCE_KILLS=all kills at every single continuation of a step, which takes hours. */
export const killsAll = process.env.CONFORMANCE_KILLS === 'all';

/** More kills and more made-up input, of a new seed, than in every run: test/support/runner/selection.ts. */
export const isHeavyRun = !['every', 'user', 'bare', 'bare_user'].includes(process.env.TEST_TIER ?? 'every');
