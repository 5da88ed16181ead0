// The image that a build of a Dockerfile has left: it becomes the files of the deployment in the place of the source.
import path from 'node:path';
import { DriverError } from '../../../core/driver';
import { BUILT_IMAGE } from '../../../drivers/builder/dockerfile/dockerfile_script';
import { ImageError } from '../../../drivers/image';
import { manifestReferenceOf, parseImageReference } from '../../../core/protocols/image_reference';
import { registryOfImage } from '../../../models/registries/registry/of_image';
import { addProcessTypes } from '../../../models/deployments/deployment_work';
import { findPlanning } from '../../../models/deployments/deployment_plan';
import { progressing, type JobContext, type Outcome, requireHost } from '../../job';
import { requireCommands } from './commands';
import { imagePlan, imageRange, layersDirectory } from './image';
import {
  abortWhenCanceled,
  appendDeploymentLog,
  artifactDirectory,
  cacheDirectory,
  DeploymentFailure,
  removeDirectory,
  type DeploymentRow,
  type StoredPlan,
} from './row';

/** Runs after the build unit is removed, so nothing writes to its cache any more. Can be repeated after a crash. */
export async function takeBuiltImage(row: DeploymentRow, built: StoredPlan, ctx: JobContext): Promise<Outcome> {
  const planning = await findPlanning(ctx.sql, row.application_id);
  if (!planning) throw new DriverError('transient', 'The application was deleted.');
  const directory = artifactDirectory(row, ctx);
  const layout = path.join(cacheDirectory(row, ctx), BUILT_IMAGE);
  const range = await imageRange(row, planning, ctx);
  const request = { layout, layers: layersDirectory(row, ctx), directory, range, tell: () => Promise.resolve() };
  await removeDirectory(directory);
  try {
    const image = await abortWhenCanceled(row, ctx, (inner) => requireHost(ctx).images.load(request, inner));
    const plan = { ...imagePlan(image), kind: built.kind, summary: built.summary };
    await addProcessTypes(ctx.sql, row, Object.keys(plan.processes));
    requireCommands(plan, planning);
    await pushBuiltImage(row, layout, planning.settings.build.image ?? null, ctx);
    return progressing(0, { plan });
  } catch (error) {
    if (error instanceof ImageError) throw new DeploymentFailure(error.message);
    throw error;
  }
}

/** Runs before the release: the registry holds only images that ran or were about to. Previews may be by strangers. */
async function pushBuiltImage(
  row: DeploymentRow,
  layout: string,
  image: string | null,
  ctx: JobContext,
): Promise<void> {
  if (image === null || row.preview_id !== null) return;
  const { images, registry } = requireHost(ctx);
  const reference = parseImageReference(image);
  const { host, repository, digest } = reference;
  if (!registry) throw new DriverError('transient', 'The container registry of this installation is not running.');
  if (host !== ctx.config.registryHost || !(await registryOfImage(ctx.sql, row.project_id, repository)))
    throw new DeploymentFailure(`build.image is ${image}, but this project has no registry of that name.`);
  if (digest !== null) throw new DeploymentFailure('build.image names a digest. Name a tag, or none.');
  await appendDeploymentLog(row, ctx, 'build', `-----> Pushing ${image}`);
  const access = await registry.pushAccess(repository);
  const request = { layout, repository, tag: manifestReferenceOf(reference), access };
  await abortWhenCanceled(row, ctx, (inner) => images.push(request, inner));
}
