// What a deleted application takes along, and the volumes that it gives back.
import type { Context } from '../../../core/context';
import { changeRows, NEW_VERSION, tearDownRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';

const DETACHED = `application_id = null, mount_path = null,
  status = case when status = 'in_use' then 'available' else status end`;
const OF_APPLICATION = 'application_id = $1 and deleted_at is null';
const ATTACHMENTS = named('delete from database_attachments where application_id = $1');
const VARIABLES = named('delete from environment_variables where application_id = $1');
const PROCESSES = named('delete from processes where application_id = $1');
const LOCK_VOLUMES = named(
  'select 1 from volumes where application_id = $1 and project_id = $2 and deleted_at is null order by id for update',
);

/**
 * Removes variables, attachments and process types at once; domains and previews are torn down by the loop. Volumes are
 * detached and keep their data.
 */
export async function removeApplicationDependents(ctx: Context, applicationId: string): Promise<void> {
  const own = { where: OF_APPLICATION, values: [applicationId] };
  // An attached volume can't be deleted, so none in tear-down is missed; the condition lets the index serve.
  await changeRows(ctx.sql, { ...own, table: 'volumes', set: `${DETACHED}, ${NEW_VERSION}` });
  // The loop tears domains down, and until then their host names stay taken; previews with their deployments.
  await tearDownRows(ctx.sql, { ...own, table: 'domains' });
  await tearDownRows(ctx.sql, { ...own, table: 'previews' });
  for (const statement of [ATTACHMENTS, VARIABLES, PROCESSES]) await ctx.sql.query(statement, [applicationId]);
}

/** Locks the volumes that are attached to an application of the selected project. */
export async function lockVolumes(ctx: Context, applicationId: string): Promise<void> {
  await ctx.sql.query(LOCK_VOLUMES, [applicationId, ctx.project?.id]);
}
