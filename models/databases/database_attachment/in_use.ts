// What attachments use can't be removed, but for those of applications in the bin, which end with it.
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import { named } from '../../../db/statement';

// The variables too: the restore of the application says that it is not attached any more.
const endParked = (column: string): string => `with ended as (delete from database_attachments
    where ${column} = any($1) and deleted_at is not null returning id)
  delete from environment_variables where managed_by in (select id from ended)`;
const END_PARKED = { endpoint_id: named(endParked('endpoint_id')), user_id: named(endParked('user_id')) };
const USERS = {
  endpoint_id: named('select id from database_attachments where endpoint_id = any($1) order by id'),
  user_id: named('select id from database_attachments where user_id = any($1) order by id'),
};

/**
 * For what is being deleted: attachments of applications in the bin end with it. The caller holds the database, so that
 * no attachment comes meanwhile. @throws resource_in_use with dependents
 */
export async function requireUnattached(
  ctx: Context,
  column: keyof typeof USERS,
  ids: readonly string[],
): Promise<void> {
  // First of all: it waits for a restore that is under way, whose attachments are then in use.
  await ctx.sql.query(END_PARKED[column], [ids]);
  const rows = await ctx.sql.query<{ id: string }>(USERS[column], [ids]);
  if (!rows.length) return;
  throw problem('resource_in_use', 'Applications are attached to it. Detach them first.', {
    dependents: rows.map(({ id }) => ({ type: 'database_attachment', id })),
  });
}
