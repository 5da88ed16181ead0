// Who did something, read from the activity of a project: for kinds whose rows do not say it.
import type { Context } from '../../core/context';
import { quick } from '../../db/statement';
import { loaderOf } from '../base/load';
import type { Activity } from './activity';

type Actor = Activity['actor'];

const ACTORS = `select resource_id, actor from activity
  where project_id = $1 and resource_id = any($2) and action = $3 and outcome = 'succeeded' order by id`;

/** The actor of the last such action on a row, null where the activity has none. One query for all rows of a page. */
export function creatorOf(
  ctx: Context,
  { id, project_id }: { id: string; project_id: string },
  action: string,
): Promise<Actor | null> {
  return loaderOf<string, Actor | null>(ctx, `actor ${project_id} ${action}`, async (ids) => {
    const rows = await ctx.sql.query<{ resource_id: string; actor: Actor }>(quick(ACTORS), [project_id, ids, action]);
    const found = new Map(rows.map(({ resource_id, actor }) => [resource_id, actor]));
    return ids.map((one) => found.get(one) ?? null);
  }).load(id);
}
