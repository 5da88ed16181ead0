// A promotion: the files of a deployment of another application become those of this one, under its own users. What the
// other application deploys or deletes afterwards does not touch them.
import type { PulledImage } from '../../../core/protocols/image_settings';
import type { UserRange } from '../../../drivers/image';
import { addProcessTypes } from '../../../models/deployments/deployment_work';
import type { Planning } from '../../../models/deployments/deployment_plan';
import { findPromoted, type PromotedRow } from '../../../models/deployments/release_image';
import { rangeDirectory } from '../../applications/application/user_range';
import { progressing, requireHost, type Outcome } from '../../job';
import { StepFailure, type StepContext } from '../../workflow';
import { filesHere, hasFilesHere, hasPublishedImage } from './lost_files';
import { requireCommands, requirePlanning } from './plan';
import { imageRange } from './pull';
import { requireDiskRoom } from './disk_room';
import { artifactDirectory, removeDirectory, type DeploymentRow, type StoredPlan } from './row';

export async function copyPromoted(row: DeploymentRow, ctx: StepContext): Promise<Outcome> {
  const { application_name: name = '', number = 0 } = row.promoted_from ?? {};
  const origin = await findPromoted(ctx.sql, row.id);
  if (!origin) throw gone(name, number);
  const planning = await requirePlanning(row, ctx);
  if (row.attempts === 0) await ctx.appendLog(`-----> Taking over deployment ${number} of ${name}`);
  const plan = await takeFiles(row, origin, planning, ctx);
  // An application that is deleted takes its files away during the copy, which may miss some then.
  if (!plan || !(await findPromoted(ctx.sql, row.id))) throw gone(name, number);
  await addProcessTypes(ctx.sql, row, Object.keys(plan.processes));
  requireCommands(plan, planning);
  const own = planning.settings.run.release_command ?? plan.release_command;
  // That of an image runs in a copy.
  if (origin.release_command && !plan.image && origin.release_command !== own)
    await ctx.appendLog(
      `The release command of ${name} is another one, and what it has written is among the files: see that no ` +
        'configuration of its variables is, such as a cache.',
      'warning',
    );
  return progressing(0, { plan, ...filesHere(ctx) });
}

function gone(name: string, number: number): StepFailure {
  return new StepFailure(
    `The files of deployment ${number} of ${name} are no longer kept on this machine. Deploy ${name} again, and ` +
      'promote that.',
  );
}

/** A cluster needs no files where the release has an image. @returns null where there is neither */
async function takeFiles(
  row: DeploymentRow,
  origin: PromotedRow,
  planning: Planning,
  ctx: StepContext,
): Promise<StoredPlan | null> {
  const { artifact_id, files_on, application_id } = origin;
  const plan = origin.plan as StoredPlan;
  const other = { ...row, id: origin.id, application_id, artifact_id, files_on };
  await removeDirectory(artifactDirectory(row, ctx));
  if (await hasFilesHere(other, ctx)) {
    await requireDiskRoom(ctx);
    return copyFiles(row, origin, planning, ctx);
  }
  const isOnCluster = ctx.config.workloads === 'kubernetes';
  return isOnCluster && (await hasPublishedImage(origin.image, other, ctx)) ? plan : null;
}

async function copyFiles(
  row: DeploymentRow,
  { id, artifact_id, application_id, tenant, ...origin }: PromotedRow,
  planning: Planning,
  ctx: StepContext,
): Promise<StoredPlan> {
  const { runtime } = requireHost(ctx);
  const plan = origin.plan as StoredPlan;
  const owners = plan.image ? await ownersOf(row, plan.image, { application_id, tenant }, planning, ctx) : null;
  const from = artifactDirectory({ id, artifact_id }, ctx);
  await runtime.copyFiles({ id: `${row.id}.copy`, from, to: artifactDirectory(row, ctx), tenant, owners }, ctx);
  if (!owners || !plan.image) return plan;
  const settings = { ...plan.image.settings, first_user_id: owners.to.first };
  return { ...plan, image: { ...plan.image, settings } };
}

/** Files of an image with several users belong to those of its application. null: to one user, set by the runtime. */
async function ownersOf(
  row: DeploymentRow,
  { settings }: PulledImage,
  { application_id, tenant }: Pick<PromotedRow, 'application_id' | 'tenant'>,
  planning: Planning,
  ctx: StepContext,
): Promise<{ from: UserRange; to: UserRange } | null> {
  if (settings.first_user_id === undefined) return null;
  const from = await requireHost(ctx).runtime.userRange(rangeDirectory(application_id, ctx), tenant);
  const to = await imageRange(row, planning, ctx);
  if (from?.first === settings.first_user_id && to) return { from, to };
  throw new StepFailure('The files belong to user ids that this host no longer assigns. Deploy the source instead.');
}
