// Registry credentials with which a Dockerfile build pulls its base images.
import { BASE_IMAGE_AUTH, DISK_MB, INSECURE_REGISTRY } from '../../../drivers/builder/dockerfile/dockerfile_script';
import { authDocument } from '../../../models/applications/application/image_credentials';
import { isFromFork } from '../../../models/deployments/from_fork';
import { registryNames } from '../../../models/registries/registry/of_image';
import { requireHost, type JobContext } from '../../job';
import type { DeploymentRow } from './row';

/**
 * Credentials for the registries of the project and from the variable DOCKER_AUTH_CONFIG. Code from a fork, which
 * strangers wrote, gets none.
 */
export async function dockerfileVariables(
  row: DeploymentRow,
  variables: Readonly<Record<string, string>>,
  ctx: JobContext,
): Promise<Record<string, string>> {
  const { registry } = requireHost(ctx);
  const { registryHost: host, buildDiskMb } = ctx.config;
  const isForeign = await isFromFork(ctx.sql, row.preview_id);
  const names = registry && !isForeign ? await registryNames(ctx.sql, row.project_id) : [];
  const own = registry && names.length ? { host, ...registry.loginFor(names) } : null;
  return {
    [BASE_IMAGE_AUTH]: authDocument(variables, own),
    [DISK_MB]: String(buildDiskMb),
    ...(registry?.isPlain && { [INSECURE_REGISTRY]: host }),
  };
}
