// What stands by an application and goes, or becomes free, with it.
import type { Context } from '../../core/context';
import { named } from '../../db/statement';

// The loop tears domains down; until then their host names stay taken (decision 4).
const DOMAINS =
  named(`update domains set deleted_at = now(), version = version + 1, updated_at = greatest(now(), updated_at),
  generation = generation + 1, next_at = now(), attempts = 0, deadline_at = null where application_id = $1 and deleted_at is null`);
// An attached volume can't be deleted, so none in tear-down is missed; saying so lets the index serve.
const VOLUMES =
  named(`update volumes set application_id = null, mount_path = null, status = case when status = 'in_use' then 'available' else status end,
  version = version + 1, updated_at = greatest(now(), updated_at), generation = generation + 1, next_at = now(), attempts = 0, deadline_at = null
  where application_id = $1 and deleted_at is null`);
// Torn down by the loop too, with their deployments and instances.
const PREVIEWS =
  named(`update previews set deleted_at = now(), version = version + 1, updated_at = greatest(now(), updated_at),
  generation = generation + 1, next_at = now(), attempts = 0, deadline_at = null where application_id = $1 and deleted_at is null`);
const ATTACHMENTS = named('delete from database_attachments where application_id = $1');
const VARIABLES = named('delete from environment_variables where application_id = $1');
const PROCESSES = named('delete from processes where application_id = $1');
const HOLD_VOLUMES = named(
  'select 1 from volumes where application_id = $1 and project_id = $2 and deleted_at is null order by id for update',
);
const WAKE = named(`select pg_notify('due', 'domains'), pg_notify('due', 'volumes'), pg_notify('due', 'previews')`);

/** Variables, attachments and process types go at once, domains and previews behind the answer; volumes stay with their data. */
export async function releaseDependents(ctx: Context, applicationId: string): Promise<void> {
  for (const statement of [VOLUMES, DOMAINS, PREVIEWS, ATTACHMENTS, VARIABLES, PROCESSES])
    await ctx.sql.query(statement, [applicationId]);
  await ctx.sql.query(WAKE, []);
}

/** Locks the volumes that are attached to an application of the selected project. */
export async function lockVolumes(ctx: Context, applicationId: string): Promise<void> {
  await ctx.sql.query(HOLD_VOLUMES, [applicationId, ctx.project?.id]);
}
