// The release of a deployment, and where its instances run.
import { saveRelease } from '../../../models/deployments/deployment_work';
import { createRelease } from '../../../models/deployments/release';
import { findPromoted, findReleaseToPublish } from '../../../models/deployments/release_image';
import { LeaseLost, progressing, type JobContext, type Outcome } from '../../job';
import { hasVolumeOfMachine } from '../../applications/instance/mounts';
import { StepFailure, type StepContext } from '../../workflow';
import { hasFilesHere, hasPublishedImage } from './lost_files';
import { appendDeploymentLog, type DeploymentRow } from './row';

export async function makeRelease(row: DeploymentRow, ctx: StepContext): Promise<Outcome> {
  const hasFiles = await hasFilesHere(row, ctx);
  const { application_id, preview_id } = row;
  const release_id = await ctx.sql.transaction(async (session) => {
    const id = await createRelease(session, ctx.secrets, { application_id, preview_id, deployment_id: row.id });
    const inner = { ...ctx, sql: session };
    const onCluster = await runsOnCluster(row, inner);
    if (!hasFiles && !(onCluster && (await hasImage(row, id, inner))))
      throw new StepFailure('The build of this version is no longer kept. Deploy its commit again.');
    if (!(await saveRelease(session, row, { id, onCluster }))) throw new LeaseLost();
    return id;
  });
  return progressing(0, { release_id });
}

/** Of an earlier release whose programs start alike: on a cluster the files are not needed then. */
async function hasImage(row: DeploymentRow, releaseId: string, ctx: JobContext): Promise<boolean> {
  if (row.promoted_from && (await findPromoted(ctx.sql, row.id))?.image) return true;
  const release = await findReleaseToPublish(ctx.sql, releaseId);
  return hasPublishedImage(release?.image ?? null, row, ctx);
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
