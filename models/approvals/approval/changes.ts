// What a transaction changes and removes, by kind: how a person sees what a call would do before it is made.
import type { Context } from '../../../core/context';
import type { Consequences } from '../../../core/destroying_call';
import { named } from '../../../db/statement';
import { allKinds } from '../../base/kinds';

// The server adds what earlier transactions of the connection have not reported yet, so only differences count.
const COUNTS = named(`select relname as table, (n_tup_upd + n_tup_del)::int as count from pg_stat_xact_user_tables
  where n_tup_upd + n_tup_del > 0`);

/** @returns a function that answers how many rows of each kind were changed or removed since */
export async function watchChanges(ctx: Context): Promise<() => Promise<Consequences['affects']>> {
  const before = await countsOf(ctx);
  return async () => {
    const after = await countsOf(ctx);
    return allKinds().flatMap(({ kind, table, storedIn }) => {
      const name = storedIn ?? table;
      const count = (after.get(name) ?? 0) - (before.get(name) ?? 0);
      return count > 0 ? [{ type: kind, count }] : [];
    });
  };
}

async function countsOf(ctx: Context): Promise<Map<string, number>> {
  const rows = await ctx.sql.query<{ table: string; count: number }>(COUNTS, []);
  return new Map(rows.map(({ table, count }) => [table, count]));
}
