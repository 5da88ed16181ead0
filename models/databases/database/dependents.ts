// What a deleted database takes along. The loop tears it down behind the answer; the users go with the row.
import type { Context, Sql } from '../../../core/context';
import { problem } from '../../../core/errors';
import { limits } from '../../../core/limits';
import { tearDownRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';

const ATTACHMENTS = named(
  'select id from database_attachments where database_id = $1 and deleted_at is null order by id',
);
// Of applications that are in the bin.
const VARIABLES = named(`delete from environment_variables
  where managed_by in (select id from database_attachments where database_id = $1)`);
const ATTACHED = named('delete from database_attachments where database_id = $1');
// By their own time, and manual ones by that of the schedule; the last that is whole for some days at least, in case
// that the deletion was a mistake.
const BACKUPS = named(`update database_backups b set expires_at = greatest(
    coalesce(b.expires_at, now() + make_interval(days => (d.backup_schedule ->> 'retention_days')::int)),
    case when b.id = (select id from database_backups where database_id = $1 and status = 'completed'
      and deleted_at is null order by id desc limit 1) then now() + make_interval(days => $2) end)
  from databases d where b.database_id = $1 and d.id = $1 and b.status = 'completed' and b.deleted_at is null`);

/** @throws resource_in_use where applications are attached */
export async function requireDetached(ctx: Context, databaseId: string): Promise<void> {
  const rows = await ctx.sql.query<{ id: string }>(ATTACHMENTS, [databaseId]);
  if (!rows.length) return;
  throw problem('resource_in_use', 'The database is attached to applications.', {
    dependents: rows.map(({ id }) => ({ type: 'database_attachment', id })),
  });
}

/** Backups that are whole outlive their database: each can be restored into a new one until it expires. */
export async function removeDatabaseDependents(sql: Sql, databaseId: string): Promise<void> {
  await sql.query(VARIABLES, [databaseId]);
  await sql.query(ATTACHED, [databaseId]);
  await sql.query(BACKUPS, [databaseId, limits.databaseGraceDays]);
  const where = `database_id = $1 and status <> 'completed'`;
  await tearDownRows(sql, { table: 'database_backups', where, values: [databaseId] });
  await tearDownRows(sql, { table: 'database_imports', where: 'database_id = $1', values: [databaseId] });
}
