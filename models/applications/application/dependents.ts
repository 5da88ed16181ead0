// What goes with an application for good.
import type { Context, Sql } from '../../../core/context';
import { named } from '../../../db/statement';

const ATTACHMENTS = named('delete from database_attachments where application_id = $1');
const VARIABLES = named('delete from environment_variables where application_id = $1');
const PROCESSES = named('delete from processes where application_id = $1');
const LOCK_VOLUMES = named(
  'select 1 from volumes where application_id = $1 and project_id = $2 and deleted_at is null order by id for update',
);

/** Volumes, domains and previews were given up when the application was deleted; what the loop removes is its stack. */
export async function removeApplicationDependents(sql: Sql, applicationId: string): Promise<void> {
  for (const statement of [ATTACHMENTS, VARIABLES, PROCESSES]) await sql.query(statement, [applicationId]);
}

/** Locks the volumes that are attached to an application of the selected project. */
export async function lockVolumes(ctx: Context, applicationId: string): Promise<void> {
  await ctx.sql.query(LOCK_VOLUMES, [applicationId, ctx.project?.id]);
}
