// When observers are checked: one row for each region that checks them.
import { createHash } from 'node:crypto';
import type { Context } from '../../../core/context';
import { named } from '../../../db/statement';
import type { StoredUptime } from './fields';
import { regionsOf } from './regions';

/** The table whose name wakes those who check. */
export const CHECKS = 'observer_checks';

const REMOVE = named('delete from observer_checks where observer_id = $1 and region <> all($2)');
const AFRESH = named(`insert into observer_checks as c (observer_id, region, check_at, result_at)
  select $1, region, now(), now() from unnest($2::text[]) as region on conflict (observer_id, region)
  do update set check_at = now(), fence = c.fence + 1, probe_id = null, failures = 0, passes = 0,
    result_at = now()`);
const NOW = named('update observer_checks set check_at = now() where observer_id = $1');

/**
 * Makes an observer due in all its regions. `afresh`: its target has changed, so earlier results, and checks in
 * progress, do not count.
 */
export async function scheduleChecks(
  ctx: Context,
  { id, uptime }: { id: string; uptime: StoredUptime | null },
  how: 'afresh' | 'as_they_are',
): Promise<void> {
  if (how === 'afresh') {
    const regions = regionsOf(uptime, ctx.config);
    await ctx.sql.query(REMOVE, [id, regions]);
    await ctx.sql.query(AFRESH, [id, regions]);
  } else await ctx.sql.query(NOW, [id]);
  ctx.sql.due(CHECKS);
}

/** A paused observer is not checked. */
export async function unscheduleChecks(ctx: Context, id: string): Promise<void> {
  await ctx.sql.query(REMOVE, [id, []]);
}

/**
 * When the next check is due after one that began at `startedMs`. Each observer has its own beat, taken from its id, so
 * that ten thousand of them made due at once spread again over the interval.
 */
export function nextObserverCheckMs(observerId: string, region: string, intervalMs: number, startedMs: number): number {
  const phase = createHash('sha1').update(`${observerId} ${region}`).digest().readUInt32BE(0) % intervalMs;
  const next = Math.floor((startedMs - phase) / intervalMs + 1) * intervalMs + phase;
  return next - startedMs < intervalMs / 2 ? next + intervalMs : next;
}
