// Cleanup after a deployment, successful or failed: removes everything that is no longer needed.
import path from 'node:path';
import { instancesOfDeployment, wakeStackAndQueue } from '../../../models/deployments/deployment_work';
import { pruneReleases } from '../../../models/deployments/release';
import { keepDeployments, unusedArtifacts } from '../../../models/deployments/retention';
import { retireInstances } from '../../../models/applications/stack';
import { retireWorkloadsOfDeployment } from '../../../models/applications/workload';
import { gone, progressing, settled, type JobContext, type Outcome, requireHost } from '../../job';
import { artifactDirectory, removeDirectory, type DeploymentRow } from './row';
import { pruneImageLayers } from './pull';
import { stopReleaseCommand } from './command';
import { pruneReleaseImages } from './publish';
import { removeTask } from './task';

const STILL_STOPPING_MS = 1_000;

/** active, superseded: older versions let go of their files. */
export async function pruneOlderVersions(row: DeploymentRow, ctx: JobContext): Promise<Outcome> {
  // The control plane may have been killed while it removed the tasks.
  await removeTask(row, 'build', ctx);
  await removeTask(row, 'release', ctx);
  if (row.status === 'superseded') return settled();
  for (const id of await keepDeployments(ctx.sql, row))
    await removeDirectory(path.join(requireHost(ctx).directories.releases, id));
  await pruneImageLayers(row, ctx);
  await pruneReleaseImages(row.application_id, ctx);
  await pruneReleases(ctx.sql, row.application_id);
  return settled();
}

/** Stops the commands and instances of a failed or canceled deployment, and removes its files. */
export async function cleanUpFailed(row: DeploymentRow, ctx: JobContext): Promise<Outcome> {
  await removeTask(row, 'build', ctx);
  const isReleasing = await stopReleaseCommand(row, ctx);
  if ((await retireInstancesOfDeployment(row, ctx)) || isReleasing) return progressing(STILL_STOPPING_MS);
  await removeFiles(row, ctx);
  await pruneReleaseImages(row.application_id, ctx);
  await wakeStackAndQueue(ctx.sql, row);
  return settled({ finished_at: row.finished_at ?? new Date().toISOString(), observed: null });
}

/** Removes the deployment of a deleted application or preview. */
export async function tearDownDeployment(row: DeploymentRow, ctx: JobContext): Promise<Outcome> {
  await removeTask(row, 'build', ctx);
  const isReleasing = await stopReleaseCommand(row, ctx);
  if ((await retireInstancesOfDeployment(row, ctx)) || isReleasing) return progressing(STILL_STOPPING_MS);
  if (row.artifact_id === row.id) await removeDirectory(artifactDirectory(row, ctx));
  await pruneReleaseImages(row.application_id, ctx);
  await wakeStackAndQueue(ctx.sql, row);
  return gone;
}

async function retireInstancesOfDeployment(row: DeploymentRow, ctx: JobContext): Promise<boolean> {
  const left = await instancesOfDeployment(ctx.sql, row.id);
  await retireInstances(
    ctx.sql,
    left.map(({ id }) => id),
  );
  const isLeft = await retireWorkloadsOfDeployment(ctx.sql, row.id);
  return left.length > 0 || isLeft;
}

// The files of a rollback belong to another deployment.
async function removeFiles(row: DeploymentRow, ctx: JobContext): Promise<void> {
  if (row.artifact_id !== row.id) return;
  for (const id of await unusedArtifacts(ctx.sql, [row.id]))
    await removeDirectory(artifactDirectory({ id, artifact_id: id }, ctx));
}
