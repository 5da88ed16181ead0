// Changes that the job of a database brings to its server behind the request.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from '../../../core/context';

const POLL_MS = 50;
const ALIVE = [
  ...['provisioning', 'available', 'updating', 'upgrading', 'restoring', 'restarting', 'stopping', 'stopped'],
  'starting',
];

/** Of a database that failed nothing is left but to delete it. @throws invalid_state */
export function requireAlive(database: { requireStatus(allowed: readonly string[]): void }): void {
  database.requireStatus(ALIVE);
}

/** Waits while the change is pending, for `operationWaitSeconds` at most. */
export async function untilApplied(ctx: Context, isPending: () => Promise<boolean>): Promise<void> {
  const until = performance.now() + ctx.config.operationWaitSeconds * 1000;
  while (performance.now() < until && !ctx.signal.aborted) {
    if (!(await isPending())) return;
    await sleep(POLL_MS, undefined, { signal: ctx.signal }).catch(() => {});
  }
}
