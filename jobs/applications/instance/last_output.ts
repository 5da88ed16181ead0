// The last output of an instance, which explains why it exited, or why it does not become healthy.
import { FAILURE_LINES_MAX, failureExcerpt, valuesHider } from '../../../core/log/failure_excerpt';
import { findLastOutput } from '../../../models/applications/log_line/last_output';
import type { Launch } from '../../../models/applications/instance_work';
import { variablesOfRelease } from '../../../models/deployments/release';
import type { JobContext } from '../../job';
import type { InstanceRow } from './row';

/** Last output since the last start; '' if there is none. Values of variables are redacted. */
export async function lastOutputOf(row: InstanceRow, launch: Launch, ctx: JobContext): Promise<string> {
  const { id, application_id, preview_id, started_at } = row;
  const since = started_at ?? undefined;
  const lines = await findLastOutput(ctx.sql, preview_id ?? application_id, id, FAILURE_LINES_MAX, since);
  const variables = variablesOfRelease(ctx.secrets, { id: launch.release_id, variables: launch.variables });
  return failureExcerpt(
    lines.map(({ message }) => message),
    valuesHider(variables),
  );
}
