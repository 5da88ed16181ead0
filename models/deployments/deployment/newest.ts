// The newest deployments of each application of a page.
import type { Context } from '../../../core/context';
import { groupBy } from '../../../core/group_by';
import { limits } from '../../../core/limits';
import { named } from '../../../db/statement';
import { columnsOf, tableOf } from '../../../db/table';
import { loaderOf } from '../../base/load';
import { Deployment } from '../deployment';
import { OWN } from './of_application';

/** The newest of an application, at most `limit` (1 to 100): one query for all applications of a page. */
export function newestDeployments(
  ctx: Context,
  application: { id: string; project_id: string },
  limit: number,
): Promise<Deployment[]> {
  const count = Math.min(Math.max(limit, 1), limits.pageSizeMax);
  const name = `application.newest_deployments:${application.project_id}:${count}`;
  const load = (ids: readonly string[]): Promise<Deployment[][]> => loadNewest(ctx, application.project_id, ids, count);
  return loaderOf(ctx, name, load).load(application.id);
}

async function loadNewest(
  ctx: Context,
  projectId: string,
  ids: readonly string[],
  count: number,
): Promise<Deployment[][]> {
  const text = `select own.* from unnest($2::text[]) as parents (id) cross join lateral
    (select ${columnsOf(tableOf(ctx, 'deployments'))} from deployments
      where application_id = parents.id and project_id = $1 and ${OWN} order by id desc limit $3) as own`;
  const rows = await ctx.sql.query<Deployment>(named(text, { makes: Deployment }), [projectId, ids, count]);
  const groups = groupBy(rows, ({ application_id }) => application_id);
  return ids.map((id) => groups.get(id) ?? []);
}
