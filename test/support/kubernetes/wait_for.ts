import { setTimeout as sleep } from 'node:timers/promises';

/** Asks until the answer is there. @throws Error with the last error of `ask` */
export async function waitFor<T>(
  what: string,
  ask: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  withinMs = 60_000,
): Promise<T> {
  let last: unknown;
  for (const end = Date.now() + withinMs; Date.now() < end; await sleep(100)) {
    try {
      const found = await ask();
      if (found !== null && found !== undefined && found !== false) return found;
    } catch (error) {
      last = error;
    }
  }
  throw new Error(`waited ${withinMs} ms in vain: ${what}`, { cause: last });
}
