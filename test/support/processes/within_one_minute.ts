import { setTimeout as sleep } from 'node:timers/promises';

/** Budgets begin anew with each minute, which would spoil a count: waits where the rest of this one is too short. */
export async function withinOneMinute(neededMs: number): Promise<void> {
  const left = 60_000 - (Date.now() % 60_000);
  if (left < neededMs) await sleep(left + 100);
}
