// The release of a deployment, and where its instances run.
import { stat } from 'node:fs/promises';
import { saveRelease } from '../../../models/deployments/deployment_work';
import { createRelease } from '../../../models/deployments/release';
import { LeaseLost, progressing, type JobContext, type Outcome } from '../../job';
import { hasVolumeOfMachine } from '../../applications/instance/mounts';
import { StepFailure, type StepContext } from '../../workflow';
import { appendDeploymentLog, artifactDirectory, type DeploymentRow } from './row';

export async function makeRelease(row: DeploymentRow, ctx: StepContext): Promise<Outcome> {
  if (!(await stat(artifactDirectory(row, ctx)).catch(() => null)))
    throw new StepFailure('The build of this version is no longer kept. Deploy its commit again.');
  const { application_id, preview_id } = row;
  const release_id = await ctx.sql.transaction(async (session) => {
    const id = await createRelease(session, ctx.secrets, { application_id, preview_id, deployment_id: row.id });
    const onCluster = await runsOnCluster(row, { ...ctx, sql: session });
    if (!(await saveRelease(session, row, { id, onCluster }))) throw new LeaseLost();
    return id;
  });
  return progressing(0, { release_id });
}

/** Beside a cluster, what has volumes on this machine goes on here. */
async function runsOnCluster(row: DeploymentRow, ctx: JobContext): Promise<boolean> {
  if (ctx.config.workloads !== 'kubernetes') return false;
  if (!(await hasVolumeOfMachine(ctx.sql, row))) return true;
  const text =
    'The application stays on the machine of the platform, where its volume is. It moves to the cluster with the ' +
    'first deployment after the volume has been detached.';
  await appendDeploymentLog(row, ctx, 'deploy', text, 'warning');
  return false;
}
