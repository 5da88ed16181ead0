// Endpoints that lead to one replica alone go with it.
import type { Context } from '../../core/context';
import { requireUnattached } from '../database_attachment/in_use';
import { named } from '../../db/statement';

const OF_REPLICA = named(
  'select id from database_endpoints where replica_id = $1 and deleted_at is null order by id for update',
);
const REMOVE =
  named(`update database_endpoints set deleted_at = now(), version = version + 1, updated_at = greatest(now(), updated_at),
  generation = generation + 1, next_at = now(), attempts = 0, deadline_at = null where id = any($1)`);
const WAKE = named(`select pg_notify('due', 'database_endpoints')`);

/** The caller holds the database. @throws resource_in_use where an attachment uses one of them */
export async function removeEndpointsOf(ctx: Context, replica: { id: string }): Promise<void> {
  const rows = await ctx.sql.query<{ id: string }>(OF_REPLICA, [replica.id]);
  if (!rows.length) return;
  const ids = rows.map(({ id }) => id);
  await requireUnattached(ctx, 'endpoint_id', ids);
  await ctx.sql.query(REMOVE, [ids]);
  await ctx.sql.query(WAKE, []);
}
