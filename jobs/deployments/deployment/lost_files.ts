// Files of a deployment that were on another machine. A worker that takes over has directories of its own.
import { stat } from 'node:fs/promises';
import { storedImages } from '../../../models/deployments/release_image';
import { requireHost, settled, type JobContext, type Outcome } from '../../job';
import { artifactDirectory, type DeploymentRow } from './row';

export const LOST = 'The machine that had the files of this deployment is gone. It begins again on another one.';

/** Whether the files that its own steps made are on another machine. A rollback has those of another deployment. */
export function hasLostFiles(row: DeploymentRow, ctx: JobContext): boolean {
  return row.artifact_id === row.id && isElsewhere(row, ctx);
}

/** Columns that name this machine as the one with the files. */
export function filesHere(ctx: JobContext): Pick<DeploymentRow, 'files_on'> {
  return { files_on: requireHost(ctx).directoryId };
}

/** Also false where this machine had begun it before another one made the files that count. */
export async function hasFilesHere(row: DeploymentRow, ctx: JobContext): Promise<boolean> {
  if (isElsewhere(row, ctx)) return false;
  return (await stat(artifactDirectory(row, ctx)).catch(() => null)) !== null;
}

/** Whether the registry has the image of an earlier release, so that no files are needed. */
export async function hasPublishedImage(image: string | null, row: DeploymentRow, ctx: JobContext): Promise<boolean> {
  return image !== null && (await storedImages(ctx.sql, row.application_id)).includes(image);
}

/** Back to the queue with all of its time: a machine that was lost is not its fault. The commit stays the same. */
export function beginAgain(): Outcome {
  const columns = { plan: null, release_id: null, observed: null, steps: [], started_at: null, files_on: null };
  return settled({ status: 'queued', ...columns }, 0);
}

// null: a release before this column, when one machine had the files of all.
function isElsewhere({ files_on }: DeploymentRow, ctx: JobContext): boolean {
  return files_on !== null && files_on !== requireHost(ctx).directoryId;
}
