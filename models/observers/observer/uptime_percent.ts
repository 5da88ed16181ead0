// uptime_percent_30d, from the roll-ups of days: thirty rows for each observer, whatever its interval.
import DataLoader from 'dataloader';
import type { Context } from '../../../core/context';
import { named } from '../../../db/statement';

const DAYS = 30;
const PERCENT = named(`select observer_id, sum(passes)::float8 * 100 / sum(checks) as percent from observer_days
  where observer_id = any($1) and day > (now() at time zone 'utc')::date - ${DAYS} group by observer_id`);

/**
 * Share of checks that passed in the last 30 days, to a thousandth, rounded down: 100 means all. Null before the first.
 */
export function uptimePercent(ctx: Context, observer: { id: string; type: string }): Promise<number | null> | null {
  if (observer.type !== 'uptime') return null;
  const known = ctx.loaders.get(uptimePercent) as DataLoader<string, number | null> | undefined;
  const loader = known ?? new DataLoader((ids) => load(ctx, ids), { maxBatchSize: 500 });
  ctx.loaders.set(uptimePercent, loader);
  return loader.load(observer.id);
}

async function load(ctx: Context, ids: readonly string[]): Promise<(number | null)[]> {
  const rows = await ctx.sql.query<{ observer_id: string; percent: number }>(PERCENT, [ids]);
  const found = new Map(rows.map(({ observer_id, percent }) => [observer_id, Math.floor(percent * 1000) / 1000]));
  return ids.map((id) => found.get(id) ?? null);
}
