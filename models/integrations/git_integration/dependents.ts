// What uses an integration, or a shared repository.
import type { Context } from '../../../core/context';
import { named } from '../../../db/statement';

interface Dependent {
  type: string;
  id: string;
  name: string;
}

const OF_INTEGRATION = named(`select 'application' as type, id, name from applications
    where source ->> 'git_integration_id' = $1 and deleted_at is null
  union all
  select 'shared_repository', id, name from shared_repositories where git_integration_id = $1
  order by 1, 2 limit 20`);

/** The caller holds the integration, so that nothing refers to it meanwhile. */
export function dependentsOf(ctx: Context, id: string): Promise<Dependent[]> {
  return ctx.sql.query<Dependent>(OF_INTEGRATION, [id]);
}

const OF_SHARED = named(`select 'application' as type, id, case when project_id = $3 then name else '' end as name
  from applications where source ->> 'shared_repository_id' = $1 and deleted_at is null
    and ($2::text is null or project_id = $2)
  order by id limit 20`);

/** Applications that use a shared repository. Names in projects other than the selected one are hidden. */
export function usersOfShared(ctx: Context, id: string, projectId: string | null): Promise<Dependent[]> {
  return ctx.sql.query<Dependent>(OF_SHARED, [id, projectId, ctx.project?.id]);
}
