// The image that a build of a Dockerfile has left: it becomes the files of the deployment in the place of the source.
import path from 'node:path';
import { DriverError } from '../../drivers/driver';
import { BUILT_IMAGE } from '../../drivers/builder/dockerfile';
import { ImageError } from '../../drivers/image';
import { addProcessTypes } from '../../models/deployment_work';
import { findPlanning } from '../../models/deployment_plan';
import { progressing, type JobContext, type Outcome, requireHost } from '../job';
import { requireCommands } from './commands';
import { imagePlan, layersDirectory } from './image';
import {
  abortWhenCanceled,
  artifactDirectory,
  cacheDirectory,
  DeploymentFailure,
  removeDirectory,
  type DeploymentRow,
  type StoredPlan,
} from './row';

/** Once the unit of the build is gone: nobody writes in its cache any more. May be repeated after a crash. */
export async function takeBuiltImage(row: DeploymentRow, built: StoredPlan, ctx: JobContext): Promise<Outcome> {
  const planning = await findPlanning(ctx.sql, row.application_id);
  if (!planning) throw new DriverError('transient', 'The application was deleted.');
  const directory = artifactDirectory(row, ctx);
  const layout = path.join(cacheDirectory(row, ctx), BUILT_IMAGE);
  const request = { layout, layers: layersDirectory(row, ctx), directory, tell: () => Promise.resolve() };
  await removeDirectory(directory);
  try {
    const image = await abortWhenCanceled(row, ctx, (inner) => requireHost(ctx).images.load(request, inner));
    const plan = { ...imagePlan(image), kind: built.kind, summary: built.summary };
    await addProcessTypes(ctx.sql, row, Object.keys(plan.processes));
    requireCommands(plan, planning);
    return progressing(0, { plan });
  } catch (error) {
    if (error instanceof ImageError) throw new DeploymentFailure(error.message);
    throw error;
  }
}
