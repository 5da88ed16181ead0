// Databases in the bin: the servers stop; data, users, passwords, ports and backups stay.
import type { Context } from '../../../core/context';
import { isId } from '../../../core/ids';
import { changeRows, NEW_VERSION, tearDownRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';
import type { Bin } from '../../base/bin';
import { kindNamed } from '../../base/kinds';
import { meter } from '../../base/metering';
import { hydrate } from '../../base/resource';
import { bringBackObservers, removeObserversOf } from '../../observers/observer/bin';
import { requireMemoryOfAll } from '../../reference/capacity';
import type { ManagedDatabase } from '../database';
import type { DatabaseReplica } from '../database_replica';
import { removeDatabaseDependents } from './dependents';

const ALONG = ['database_endpoints', 'database_replicas'];
const IDS = named(`select id from database_endpoints where database_id = $1 and deleted_at is null
  union all select id from database_replicas where database_id = $1 and deleted_at is null`);
const REPLICAS = named('select * from database_replicas where id = any($1) order by id');

export const databaseBin: Bin<ManagedDatabase> = {
  nameFormat: 'slug',
  isOnDisk: () => true,
  purge: ({ sql }, { id }) => removeDatabaseDependents(sql, id),
  async restore(ctx, database, _, along) {
    if (database.status === 'available') await database.update(ctx, { status: 'starting', status_reason: null });
    const back = `deleted_at = null, ${NEW_VERSION}`;
    const rows = { where: 'id = any($1) and deleted_at is not null', values: [along] };
    await changeRows(ctx.sql, { ...rows, table: 'database_replicas', set: back });
    await requireMemoryOfAll(ctx);
    // Those of a stopped database stay as they were: nothing would make them active again.
    const active = `, status = case status when 'active' then 'updating' else status end`;
    await changeRows(ctx.sql, {
      ...{ ...rows, table: 'database_endpoints' },
      set: `${back}${database.running ? active : ''}`,
    });
    await chargeReplicas(ctx, along);
    await bringBackObservers(ctx, database, along);
    return [];
  },
};

/**
 * Takes endpoints, replicas and observers of a database that is being deleted out of all reads, and their jobs stop
 * them. A replica that is being promoted is another database already. @returns their ids
 */
export async function removeAlongWith(ctx: Context, database: ManagedDatabase): Promise<string[]> {
  const values = [database.id];
  const promoted = `database_id = $1 and status = 'promoting'`;
  await tearDownRows(ctx.sql, { table: 'database_replicas', where: promoted, values });
  const found = await ctx.sql.query<{ id: string }>(IDS, [database.id]);
  const replicas = found.map(({ id }) => id).filter((id) => isId('rep', id));
  for (const row of await ctx.sql.query<DatabaseReplica>(REPLICAS, [replicas]))
    meter(ctx, hydrate(kindNamed('database_replica'), row), null);
  for (const table of ALONG) await tearDownRows(ctx.sql, { table, where: 'database_id = $1', values });
  return [...found.map(({ id }) => id), ...(await removeObserversOf(ctx, database))];
}

async function chargeReplicas(ctx: Context, along: readonly string[]): Promise<void> {
  for (const row of await ctx.sql.query<DatabaseReplica>(REPLICAS, [along]))
    meter(ctx, hydrate(kindNamed('database_replica'), row), row as unknown as Record<string, unknown>);
}
