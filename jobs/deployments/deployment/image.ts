// The image that a build of a Dockerfile has left: it becomes the files of the deployment in the place of the source.
import path from 'node:path';
import { EngineAway } from '../../../core/driver';
import { BUILT_IMAGE } from '../../../drivers/builder/dockerfile/dockerfile_script';
import { manifestReferenceOf, parseImageReference } from '../../../core/protocols/image_reference';
import { registryOfImage } from '../../../models/registries/registry/of_image';
import { addProcessTypes } from '../../../models/deployments/deployment_work';
import { progressing, requireHost, type Outcome } from '../../job';
import { StepFailure, type StepContext } from '../../workflow';
import { requireCommands, requirePlanning } from './plan';
import { imagePlan, imageRange, layersDirectory } from './pull';
import { artifactDirectory, cacheDirectory, removeDirectory, requirePlan, type DeploymentRow } from './row';
import { removeTask } from './task';

export async function takeBuiltImage(row: DeploymentRow, ctx: StepContext): Promise<Outcome> {
  // Nothing writes to its cache any more.
  await removeTask(row, 'build', ctx);
  const planning = await requirePlanning(row, ctx);
  const directory = artifactDirectory(row, ctx);
  const layout = path.join(cacheDirectory(row, ctx), BUILT_IMAGE);
  const range = await imageRange(row, planning, ctx);
  const request = { layout, layers: layersDirectory(row, ctx), directory, range, tell: () => Promise.resolve() };
  await removeDirectory(directory);
  const image = await requireHost(ctx).images.load(request, ctx);
  const { kind, summary } = requirePlan(row);
  const plan = { ...imagePlan(image), kind, summary };
  await addProcessTypes(ctx.sql, row, Object.keys(plan.processes));
  requireCommands(plan, planning);
  await pushBuiltImage(row, layout, planning.settings.build.image ?? null, ctx);
  return progressing(0, { plan });
}

/** Runs before the release: the registry holds only images that ran or were about to. Previews may be by strangers. */
async function pushBuiltImage(
  row: DeploymentRow,
  layout: string,
  image: string | null,
  ctx: StepContext,
): Promise<void> {
  if (image === null || row.preview_id !== null) return;
  const { images, registry } = requireHost(ctx);
  const reference = parseImageReference(image);
  const { host, repository, digest } = reference;
  if (!registry) throw new EngineAway('The container registry of this installation is not running.');
  if (host !== ctx.config.registryHost || !(await registryOfImage(ctx.sql, row.project_id, repository)))
    throw new StepFailure(`build.image is ${image}, but this project has no registry of that name.`);
  if (digest !== null) throw new StepFailure('build.image names a digest. Name a tag, or none.');
  await ctx.appendLog(`-----> Pushing ${image}`);
  const access = await registry.pushAccess(repository);
  const request = { layout, repository, tag: manifestReferenceOf(reference), access };
  await images.push(request, ctx);
}
