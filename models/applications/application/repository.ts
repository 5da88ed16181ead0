// The repository of an integration or a shared one, as a source names it.
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import { GitProviderError, type GitRepository } from '../../../core/protocols/git_provider';
import { mintId } from '../../../core/ids';
import { sessionOf } from '../../../db/table';
import { named } from '../../../db/statement';
import { GitIntegration } from '../../integrations/git_integration';
import { providerProblem, requireActive, withProvider } from '../../integrations/git_integration/client';
import { newHook } from '../../integrations/git_integration/hook';
import { SharedRepository } from '../../integrations/shared_repository';
import type { Source } from './source';

type Named = Partial<Pick<Source, 'git_integration_id' | 'repository_id'>>;

/**
 * Looks up the repository that a request body names, before the transaction. Null where the body names none, or the
 * provider has no such repository. @throws provider_error, invalid_state
 */
export async function probeRepository(
  ctx: Context,
  source: Named | null | undefined,
  current?: Source | null,
): Promise<GitRepository | null> {
  const id = source?.git_integration_id ?? current?.git_integration_id;
  const repositoryId = source?.repository_id;
  if (id == null || repositoryId == null) return null;
  const integration = await GitIntegration.get(ctx, id).catch(() => null);
  if (!integration) return null;
  try {
    return await withProvider(ctx, id, (client) => client.repository(repositoryId));
  } catch (error) {
    if (error instanceof GitProviderError && error.failure === 'not_found') return null;
    throw providerProblem(error);
  }
}

// A hook that is there stays: its address is known at the provider.
const ENSURE = named(`insert into git_repositories (id, project_id, git_integration_id, repository_id, full_name,
    clone_url, default_branch, sealed_hook, hook_hash)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
  on conflict (git_integration_id, repository_id) where deleted_at is null
  do update set full_name = $5, clone_url = $6, default_branch = $7, next_at = now()`);

/** The references of a source that is new or was changed. @throws reference_not_found, invalid_state */
export async function requireRepository(ctx: Context, source: Source): Promise<void> {
  if (source.shared_repository_id !== null) return requireShared(ctx, source.shared_repository_id);
  const { git_integration_id, repository_id } = source;
  if (git_integration_id === null) return;
  const integration = await GitIntegration.referenced(ctx, git_integration_id, 'source.git_integration_id');
  requireActive(integration);
  const found = ctx.probed as GitRepository | null;
  if (found?.id !== repository_id)
    throw problem('reference_not_found', 'The integration sees no repository with this id.', {
      field: 'source.repository_id',
    });
  const id = mintId('grp');
  const { sealed_hook, hook_hash } = newHook(ctx.secrets, id);
  const { full_name, clone_url, default_branch } = found;
  const values = [id, integration.project_id, integration.id, repository_id, full_name, clone_url, default_branch];
  await ctx.sql.query(ENSURE, [...values, sealed_hook, hook_hash]);
  sessionOf(ctx).due('git_repositories');
}

/** How a repository of an integration is known. */
export interface FollowedRepository {
  git_integration_id: string;
  repository_id: string;
  full_name: string;
  clone_url: string;
  default_branch: string;
}

const INTEGRATION = named('select 1 from git_integrations where id = $1 and project_id = $2 for share');

/** Follows a repository again that an application of the bin was built from. @returns notes */
export async function followRepository(
  ctx: Context,
  { project_id }: { project_id: string },
  repository: FollowedRepository | null,
): Promise<string[]> {
  if (!repository) return [];
  const { git_integration_id: integration, repository_id, full_name, clone_url, default_branch } = repository;
  if (!(await ctx.sql.query(INTEGRATION, [integration, project_id])).length)
    return [`The Git integration of the repository \`${full_name}\` is gone. Choose another source to deploy again.`];
  const id = mintId('grp');
  const { sealed_hook, hook_hash } = newHook(ctx.secrets, id);
  const values = [id, project_id, integration, repository_id, full_name, clone_url, default_branch];
  await ctx.sql.query(ENSURE, [...values, sealed_hook, hook_hash]);
  ctx.sql.due('git_repositories');
  return [];
}

const LOCK_SHARED = named('select 1 from shared_repositories where id = $1 for share');

async function requireShared(ctx: Context, id: string): Promise<void> {
  const found = await SharedRepository.visible(ctx, id).catch(() => null);
  const held = found ? await ctx.sql.query(LOCK_SHARED, [id]) : [];
  if (held.length) return;
  throw problem('reference_not_found', 'source.shared_repository_id names nothing that this project can use.', {
    field: 'source.shared_repository_id',
  });
}
