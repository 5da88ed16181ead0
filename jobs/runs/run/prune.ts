// A run may have been the last one that needed the files of an older deployment.
import path from 'node:path';
import { pruneReleases } from '../../../models/deployments/release';
import { unusedArtifacts } from '../../../models/deployments/retention';
import { artifactOfDeployment } from '../../../models/runs/run/job_queries';
import { pruneReleaseImages } from '../../deployments/deployment/release_image';
import { removeDirectory } from '../../deployments/deployment/row';
import { type JobContext, requireHost } from '../../job';
import type { RunRow } from './row';

/** Removes the files and forgets the release of a finished run, unless others use them. */
export async function pruneAfterRun(row: RunRow, ctx: JobContext): Promise<void> {
  const artifact = (await artifactOfDeployment(ctx.sql, row.deployment_id)) ?? row.deployment_id;
  for (const id of await unusedArtifacts(ctx.sql, [artifact]))
    await removeDirectory(path.join(requireHost(ctx).directories.releases, id));
  if (requireHost(ctx).tasks) await pruneReleaseImages(row.application_id, ctx);
  await pruneReleases(ctx.sql, row.application_id);
}
