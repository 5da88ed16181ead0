import { setTimeout as sleep } from 'node:timers/promises';

type Answer<T> = T | null | undefined | false;

/**
 * Asks until there is an answer: neither null nor false.
 * @throws Error with what was waited for, when the time is over; what `ask` throws, at once
 */
export async function waitFor<T>(
  what: string,
  ask: () => Promise<Answer<T>> | Answer<T>,
  withinMs = 90_000,
): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    const found = await ask();
    if (found !== null && found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`waited ${withinMs} ms in vain: ${what}`);
    await sleep(100);
  }
}

/** Checks until the check passes. @throws what the last check threw, when the time is over */
export async function retryCheck(check: () => Promise<void>, withinMs = 15_000): Promise<void> {
  const end = performance.now() + withinMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > end) throw error;
      await sleep(100);
    }
  }
}
