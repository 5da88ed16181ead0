// Address and credentials of an image's registry.
import { parseImageReference } from '../../../core/protocols/image_reference';
import { presetsWith } from '../../../core/catalog/presets';
import { EngineAway } from '../../../core/driver';
import { ImageError, type ImageAccess } from '../../../drivers/image';
import { credentialsFor } from '../../../models/applications/application/image_credentials';
import type { Planning } from '../../../models/deployments/deployment_plan';
import { registryOfImage } from '../../../models/registries/registry/of_image';
import { type JobContext, requireHost } from '../../job';

/** Images in this installation's registry are open to applications of the same project, images of presets to all. */
export async function imageAccess(
  { project_id, preview_id }: { project_id: string; preview_id: string | null },
  reference: string,
  planning: Pick<Planning, 'variables'>,
  ctx: JobContext,
): Promise<ImageAccess> {
  const parsed = parseImageReference(reference);
  if (parsed.host !== ctx.config.registryHost) {
    const variables = await planning.variables(ctx.secrets, 'build', preview_id);
    return { credentials: credentialsFor(parsed.host, variables), local: null };
  }
  const { registry } = requireHost(ctx);
  if (!registry) throw new EngineAway('The container registry of this installation is not running.');
  const isOfPreset = presetsWith(ctx.config.presetsFile).some(({ image }) => image === reference);
  if (!isOfPreset && !(await registryOfImage(ctx.sql, project_id, parsed.repository)))
    throw new ImageError('missing', `This project has no registry with the image ${reference}.`);
  return { credentials: null, local: await registry.pullAccess(parsed.repository) };
}
