// Who uses the files of a volume that are to be replaced.
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import { named } from '../../../db/statement';

const APPLICATION = named('select status from applications where id = $1 and deleted_at is null for share');
const RUNS = named(`select id from runs where application_id = $1 and status in ('queued', 'starting', 'running')
  order by id limit 20`);
/** No instance of it runs. */
const STOPPED = new Set(['new', 'stopped']);

/** @throws resource_in_use where its application is not stopped, or runs commands */
export async function requireUnused(
  ctx: Context,
  { application_id }: { application_id: string | null },
): Promise<void> {
  if (application_id === null) return;
  const [application] = await ctx.sql.query<{ status: string }>(APPLICATION, [application_id]);
  const runs = await ctx.sql.query<{ id: string }>(RUNS, [application_id]);
  if (application && !STOPPED.has(application.status))
    throw problem('resource_in_use', 'The application of the volume is not stopped. Stop it, or detach the volume.', {
      dependents: [{ type: 'application', id: application_id }],
    });
  if (runs.length)
    throw problem(
      'resource_in_use',
      'The application of the volume runs commands. Cancel them, or wait for their end.',
      {
        dependents: runs.map(({ id }) => ({ type: 'run', id })),
      },
    );
}
