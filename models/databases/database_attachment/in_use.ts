// What attachments use can't be removed.
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import { named } from '../../../db/statement';

const USERS = {
  endpoint_id: named('select id from database_attachments where endpoint_id = any($1) order by id'),
  user_id: named('select id from database_attachments where user_id = any($1) order by id'),
};

/** The caller holds the database, so that no attachment comes meanwhile. @throws resource_in_use with dependents */
export async function requireUnattached(
  ctx: Context,
  column: keyof typeof USERS,
  ids: readonly string[],
): Promise<void> {
  const rows = await ctx.sql.query<{ id: string }>(USERS[column], [ids]);
  if (!rows.length) return;
  throw problem('resource_in_use', 'Applications are attached to it. Detach them first.', {
    dependents: rows.map(({ id }) => ({ type: 'database_attachment', id })),
  });
}
