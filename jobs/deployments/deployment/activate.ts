// The switch to the new version: requests are led to it, and the one before may go.
import type { Sql } from '../../../core/context';
import { DriverError } from '../../../core/driver';
import { activate, wakeStackAndQueue } from '../../../models/deployments/deployment_work';
import { settled, type Outcome } from '../../job';
import { publishRoutes, publishRoutesBeforeCommit } from '../../applications/application/reconcile_stack';
import type { StepContext } from '../../workflow';
import { requireReleaseId, type DeploymentRow } from './row';

export async function activateRelease(row: DeploymentRow, ctx: StepContext): Promise<Outcome> {
  let ended = (): void => undefined;
  const publish = async (sql: Sql): Promise<void> => {
    ended = await publishRoutesBeforeCommit(row.application_id, ctx, sql);
  };
  const switched = await activate(ctx.sql, row, requireReleaseId(row), publish).finally(() => ended());
  if (!switched) throw new DriverError('transient', 'The deployment was changed while it was activated.');
  await publishRoutes(row.application_id, ctx);
  await ctx.appendLog(`Deployment ${row.number} is active.`);
  await wakeStackAndQueue(ctx.sql, row);
  ctx.log.info({ application: row.application_id }, 'deployed');
  // One more step, to prune old releases and artifacts.
  return settled({ observed: null }, 0);
}
