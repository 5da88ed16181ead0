// Endpoints that lead to one replica alone go with it.
import type { Context } from '../../../core/context';
import { requireUnattached } from '../database_attachment/in_use';
import { tearDownRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';

const OF_REPLICA = named(
  'select id from database_endpoints where replica_id = $1 and deleted_at is null order by id for update',
);

/** The caller holds the database. @throws resource_in_use where an attachment uses one of them */
export async function removeEndpointsOf(ctx: Context, replica: { id: string }): Promise<void> {
  const rows = await ctx.sql.query<{ id: string }>(OF_REPLICA, [replica.id]);
  if (!rows.length) return;
  const ids = rows.map(({ id }) => id);
  await requireUnattached(ctx, 'endpoint_id', ids);
  await tearDownRows(ctx.sql, { table: 'database_endpoints', where: 'id = any($1)', values: [ids] });
}
