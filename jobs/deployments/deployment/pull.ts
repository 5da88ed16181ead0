// An image as the source: it is pulled when the deployment begins, and the pulled digest is deployed even if the tag
// moves meanwhile.
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { commandLineOf, type PulledImage } from '../../../core/protocols/image_settings';
import { asDriverErrors } from '../../../core/driver';
import type { UserRange } from '../../../drivers/image';
import { addProcessTypes } from '../../../models/deployments/deployment_work';
import type { Planning } from '../../../models/deployments/deployment_plan';
import { keptLayers } from '../../../models/deployments/retention';
import { progressing, requireHost, type JobContext, type Outcome } from '../../job';
import { rangeDirectory } from '../../applications/application/user_range';
import type { StepContext } from '../../workflow';
import { imageAccess } from './image_access';
import { filesHere } from './lost_files';
import { requireCommands, requirePlanning } from './plan';
import { requireDiskRoom } from './disk_room';
import { artifactDirectory, cacheDirectory, removeDirectory, type DeploymentRow, type StoredPlan } from './row';

export async function pullSource(row: DeploymentRow, ctx: StepContext): Promise<Outcome> {
  await requireDiskRoom(ctx);
  const planning = await requirePlanning(row, ctx);
  const reference = row.image ?? row.source.image;
  if (reference === null) throw new Error(`the deployment ${row.id} has no image`);
  await removeDirectory(artifactDirectory(row, ctx));
  if (row.clear_cache && row.attempts === 0) await removeDirectory(layersDirectory(row, ctx));
  if (row.attempts === 0) await ctx.appendLog(`-----> Pulling ${reference}`);
  const image = await pullImage(row, reference, planning, ctx);
  const plan = imagePlan(image);
  await addProcessTypes(ctx.sql, row, Object.keys(plan.processes));
  requireCommands(plan, planning);
  await ctx.appendLog(`Digest: ${image.reference.slice(image.reference.indexOf('@') + 1)}`);
  return progressing(0, { image: image.reference, plan, ...filesHere(ctx) });
}

async function pullImage(
  row: DeploymentRow,
  reference: string,
  planning: Planning,
  ctx: StepContext,
): Promise<PulledImage> {
  const access = await imageAccess(row, reference, planning, ctx);
  const request = {
    ...{ reference, access, layers: layersDirectory(row, ctx), directory: artifactDirectory(row, ctx) },
    range: await imageRange(row, planning, ctx),
    tell: (line: string) => ctx.appendLog(line),
  };
  return requireHost(ctx).images.pull(request, ctx);
}

/** The user ids of the images of an application. */
export async function imageRange(
  { application_id }: Pick<DeploymentRow, 'application_id'>,
  { tenant }: Pick<Planning, 'tenant'>,
  ctx: JobContext,
): Promise<UserRange | null> {
  const directory = rangeDirectory(application_id, ctx);
  await asDriverErrors(() => mkdir(directory, { recursive: true, mode: 0o711 }));
  return requireHost(ctx).runtime.userRange(directory, tenant);
}

/** The run settings of an image (command, port, health check), as a build plan. */
export function imagePlan(image: PulledImage): StoredPlan {
  const command = commandLineOf(image.settings);
  return {
    kind: 'image',
    summary: 'Image',
    steps: [],
    processes: command === '' ? {} : { web: command },
    release_command: null,
    env: {},
    image,
  };
}

/** Not inside the build cache, which the tenant can write to. */
export function layersDirectory(
  row: Pick<DeploymentRow, 'application_id' | 'preview_id' | 'branch'>,
  ctx: JobContext,
): string {
  return `${cacheDirectory(row, ctx)}.layers`;
}

/** Removes unpacked layers that no deployment needs which is kept. */
export async function pruneImageLayers(row: DeploymentRow, ctx: JobContext): Promise<void> {
  if (!row.plan?.image) return;
  const kept = await keptLayers(ctx.sql, row.application_id, row.preview_id);
  await requireHost(ctx).images.pruneLayers(path.resolve(layersDirectory(row, ctx)), kept);
}
