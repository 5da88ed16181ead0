// Chance that repeats itself, for tests that make up hostile input.
import { randomInt } from 'node:crypto';
import { isHeavyRun } from '../processes/kills';

export type Random = () => number;

/** FUZZ_SEED, or `usual`, or a new one in the heavy tier, which is printed: a failure can be seen again. */
export function fuzzSeed(usual: number): number {
  const seed = Number(process.env.FUZZ_SEED ?? (isHeavyRun() ? randomInt(2 ** 31) : usual));
  if (seed !== usual) process.stdout.write(`FUZZ_SEED=${seed} repeats the inputs of ${expect.getState().testPath}\n`);
  return seed;
}

/** The same numbers from 0 to 1 for the same seed (mulberry32). */
export function randomFrom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function pick<T>(random: Random, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)] as T;
}
