// Relations from applications to the rows of other kinds: one query for all applications of a page.
import type { Context } from '../../../core/context';
import { limits } from '../../../core/limits';
import { loaderOf } from '../../base/load';
import type { Resource, ResourceClass } from '../../base/resource';
import { columnsOf, tableOf } from '../../../db/table';
import { named } from '../../../db/statement';

interface Parent {
  id: string;
  project_id: string;
}

/** The oldest rows of a kind that belong to an application, at most `limit` (1 to 100). */
export function childrenOf<R extends Resource>(
  kind: ResourceClass<R>,
  ctx: Context,
  application: Parent,
  limit: number,
): Promise<R[]> {
  const count = Math.min(Math.max(limit, 1), limits.pageSizeMax);
  const name = `application.${kind.kind}:${application.project_id}:${count}`;
  const load = (ids: readonly string[]): Promise<R[][]> => loadChildren(kind, ctx, application.project_id, ids, count);
  return loaderOf(ctx, name, load).load(application.id);
}

async function loadChildren<R extends Resource>(
  kind: ResourceClass<R>,
  ctx: Context,
  projectId: string,
  ids: readonly string[],
  count: number,
): Promise<R[][]> {
  const info = tableOf(ctx, kind.table);
  const alive = info.columns.includes('deleted_at') ? 'and deleted_at is null' : '';
  const text = `select children.* from unnest($2::text[]) as parents (id) cross join lateral
    (select ${columnsOf(info)} from ${kind.table} where application_id = parents.id and project_id = $1 ${alive}
      order by id limit $3) as children`;
  const rows = await ctx.sql.query<R & { application_id: string }>(named(text, { makes: kind }), [
    projectId,
    ids,
    count,
  ]);
  const groups = new Map<string, R[]>(ids.map((id) => [id, []]));
  for (const row of rows) groups.get(row.application_id)?.push(row);
  return ids.map((id) => groups.get(id) ?? []);
}
