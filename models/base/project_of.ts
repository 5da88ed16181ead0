// The project of a resource, for calls that name none.
import type { Context } from '../../core/context';
import { isId } from '../../core/ids';
import { named } from '../../db/statement';
import { sessionOf } from '../../db/table';
import { allKinds } from './kinds';

/** Null for an id of no resource, or of one that belongs to no project. */
export async function projectOfResource(ctx: Context, id: string): Promise<string | null> {
  const kind = allKinds().find(({ idPrefix }) => isId(idPrefix, id));
  const columns = kind && sessionOf(ctx).tables.get(kind.table)?.columns;
  if (!kind || !columns?.includes('project_id')) return null;
  const alive = columns.includes('deleted_at') ? ' and deleted_at is null' : '';
  const text = `select project_id from ${kind.table} where id = $1${alive}`;
  const [row] = await ctx.sql.query<{ project_id: string | null }>(named(text), [id]);
  return row?.project_id ?? null;
}
