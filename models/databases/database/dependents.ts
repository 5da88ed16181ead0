// What a deleted database takes along. The loop tears it down behind the answer; the users go with the row.
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import { limits } from '../../../core/limits';
import { tearDownRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';

const ATTACHMENTS = named('select id from database_attachments where database_id = $1 order by id');
const SPANS = named(`update usage_spans set ended_at = now() where ended_at is null
  and resource_id in (select id from database_replicas where database_id = $1 and deleted_at is null)`);
const CHILDREN = ['database_endpoints', 'database_replicas', 'database_backups'];
// The last one that is whole is kept for a while, in case that the deletion was a mistake.
const LAST = named(`update database_backups set expires_at = now() + $2 * interval '1 day'
  where id = (select id from database_backups where database_id = $1 and status = 'completed' and deleted_at is null
    order by id desc limit 1) returning id`);

/** @throws resource_in_use where applications are attached */
export async function requireDetached(ctx: Context, databaseId: string): Promise<void> {
  const rows = await ctx.sql.query<{ id: string }>(ATTACHMENTS, [databaseId]);
  if (!rows.length) return;
  throw problem('resource_in_use', 'The database is attached to applications.', {
    dependents: rows.map(({ id }) => ({ type: 'database_attachment', id })),
  });
}

/** Tears down endpoints, replicas and backups, except for the last backup, which is kept for its days of grace. */
export async function removeDatabaseDependents(ctx: Context, databaseId: string): Promise<void> {
  await ctx.sql.query(SPANS, [databaseId]);
  const [last] = await ctx.sql.query<{ id: string }>(LAST, [databaseId, limits.databaseGraceDays]);
  const values = [databaseId, last?.id ?? ''];
  for (const table of CHILDREN) await tearDownRows(ctx.sql, { table, where: 'database_id = $1 and id <> $2', values });
}
