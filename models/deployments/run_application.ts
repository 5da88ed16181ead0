// Starting, stopping and restarting: the application's state machine, and which release its process types should run.
// The instances follow behind the answer.
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { isId } from '../../core/ids';
import type { RestartApplicationInput } from '../../schema/types';
import type { Application } from '../applications/application';
import { Process } from '../processes/process';
import { createRelease } from './release';
import { named } from '../../db/statement';

/** @throws invalid_state unless it is stopped, resource_busy */
export async function startApplication(ctx: Context, application: Application): Promise<Application> {
  application.requireStatus(['stopped']);
  await createCurrentRelease(ctx, application, null);
  await ctx.sql.query(SCALING, [application.id]);
  return application.move(ctx, 'starting');
}

/** Also the way out of a start or a restart that does not end. @throws invalid_state, resource_busy */
export async function stopApplication(ctx: Context, application: Application): Promise<Application> {
  application.requireStatus(['running', 'crashed', 'starting', 'restarting']);
  await ctx.sql.query(SCALING, [application.id]);
  return application.move(ctx, 'stopping');
}

/** @throws reference_not_found, invalid_state unless it is running or crashed, resource_busy */
export async function restartApplication(
  ctx: Context,
  application: Application,
  input: RestartApplicationInput,
): Promise<Application> {
  const processId = input.process_id ?? null;
  if (processId !== null) await requireProcess(ctx, application, processId);
  application.requireStatus(['running', 'crashed']);
  await createCurrentRelease(ctx, application, processId);
  return application.move(ctx, 'restarting');
}

const RELEASED =
  named(`update processes set release_id = $2, version = version + 1, updated_at = greatest(now(), updated_at)
  where application_id = $1 and ($3::text is null or id = $3)`);
// Processes without running or desired instances keep their status.
const SCALING =
  named(`update processes set status = 'scaling', version = version + 1, updated_at = greatest(now(), updated_at)
  where application_id = $1 and release_id is not null and status <> 'scaling'
    and (instances > 0 or running_instances > 0)`);

/**
 * The present deployment with the settings and variables of now. @param processId null = all process types @throws
 * invalid_state
 */
export async function createCurrentRelease(
  ctx: Pick<Context, 'sql' | 'secrets'>,
  application: Pick<Application, 'id' | 'current_deployment_id' | 'status'>,
  processId: string | null,
): Promise<void> {
  const { id, current_deployment_id } = application;
  if (!current_deployment_id)
    throw problem('invalid_state', 'The application has no active deployment. Deploy it first.', {
      resource_status: application.status,
    });
  const release = await createRelease(ctx.sql, ctx.secrets, {
    application_id: id,
    preview_id: null,
    deployment_id: current_deployment_id,
  });
  await ctx.sql.query(RELEASED, [id, release, processId]);
}

const IS_OURS = named('select 1 from processes where id = $1 and application_id = $2');

async function requireProcess(ctx: Context, application: Application, id: string): Promise<void> {
  const found = isId(Process.idPrefix, id) ? await ctx.sql.query(IS_OURS, [id, application.id]) : [];
  if (!found.length)
    throw problem('reference_not_found', 'process_id names no process type of this application.', {
      field: 'process_id',
    });
}
