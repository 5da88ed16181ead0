// The activity of a project as it happens, for readers who follow it (models/base/arrivals.ts).
import type { Context } from '../../core/context';
import { firstIdAt } from '../../core/ids';
import { limits } from '../../core/limits';
import type { Activity as ActivityEntry, QueryListProjectActivityArgs } from '../../schema/types';
import { Activity } from './activity';
import { arrivalsAfter, type Arrivals } from '../base/arrivals';

const COLUMNS = `id, project_id, action, outcome, actor, key_id,
  jsonb_build_object('type', resource_type, 'id', resource_id, 'name', resource_name) as resource, changed_fields,
  request_id, created_at, reverts, reverted_by, revert_obstacle, seq`;

/**
 * Entries of the selected project that came after a place and pass the filters; null = the newest `limit` ones first of
 * all.
 * @throws invalid_cursor for a place that is none
 */
export function activityAfter(
  ctx: Context,
  args: QueryListProjectActivityArgs,
  after: string | null,
): Promise<Arrivals<ActivityEntry>> {
  const { action, actor_id, resource_type, resource_id } = args;
  const since = args.since && firstIdAt(Activity.idPrefix, args.since);
  const until = args.until && firstIdAt(Activity.idPrefix, args.until);
  const given = Object.entries({ action, actor_id, resource_type, resource_id, since, until });
  return arrivalsAfter<ActivityEntry>(
    ctx,
    {
      table: 'activity',
      columns: COLUMNS,
      newest: args.limit ?? limits.pageSizeDefault,
      batch: limits.logPageSizeDefault,
      conditions: (values) => [
        `project_id = $${values.push(ctx.project?.id)}`,
        ...given
          .filter(([, value]) => value != null)
          .map(([name, value]) =>
            (Activity.filters[name as 'action'] as string).replace('?', `$${values.push(value)}`),
          ),
      ],
    },
    after,
  );
}
