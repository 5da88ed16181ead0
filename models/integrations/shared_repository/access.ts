// Access to a shared repository, and which kinds of access fit its address.
import type { Context } from '../../../core/context';
import { validationFailed, problem } from '../../../core/errors';
import { validateGitAddress } from '../git_address';
import { GitIntegration } from '../git_integration';
import { requireActive } from '../git_integration/client';

export type Access = 'deploy_key' | 'git_integration' | 'public';

const WEB: Readonly<Record<GitIntegration['provider'], string>> = {
  github: 'https://github.com',
  gitlab: 'https://gitlab.com',
  bitbucket: 'https://bitbucket.org',
  gitea: 'https://gitea.com',
};

export function isSsh(url: string): boolean {
  return !/^(https?|file):\/\//i.test(url);
}

/** @throws validation_failed */
export function requireAddress(ctx: Context, url: string): void {
  const detail = validateGitAddress(url, ctx.config);
  if (detail !== null) throw validationFailed([{ field: 'url', code: 'invalid_format', detail }]);
}

/**
 * The access that fits the address, and the integration that it needs.
 * @throws validation_failed, reference_not_found, invalid_state
 */
export async function requireAccess(ctx: Context, url: string, access: Access, integrationId: string | null) {
  const mistake = (field: string, code: 'required' | 'depends_on', detail: string): Error =>
    validationFailed([{ field, code, detail }]);
  if (isSsh(url) && access !== 'deploy_key') throw mistake('access', 'depends_on', 'must be deploy_key for ssh');
  if (!isSsh(url) && access === 'deploy_key') throw mistake('access', 'depends_on', 'is for addresses with ssh');
  if (access !== 'git_integration' && integrationId !== null)
    throw mistake('git_integration_id', 'depends_on', 'is for the access git_integration');
  if (access !== 'git_integration') return;
  if (integrationId === null)
    throw mistake('git_integration_id', 'required', 'is required for the access git_integration');
  const integration = await GitIntegration.referenced(ctx, integrationId, 'git_integration_id');
  requireActive(integration);
  requireSameHost(integration, url);
}

/** The token goes to the host of the address, so this must be the provider's. */
function requireSameHost({ provider, base_url }: GitIntegration, url: string): void {
  const home = new URL(base_url ?? WEB[provider]);
  const given = new URL(url);
  if (given.protocol === home.protocol && given.host === home.host) return;
  throw problem(
    'reference_not_found',
    `git_integration_id names an integration with ${home.host}, not ${given.host}.`,
    {
      field: 'git_integration_id',
    },
  );
}
