// How the repository of a source is reached: by its address alone, through an integration, or as a shared repository.
import type { SourceMiss, SourceRef, SourceResult } from '../../../core/context';
import { Problem } from '../../../core/errors';
import { GitProviderError } from '../../../core/protocols/git_provider';
import type { GitRemote } from '../../../core/protocols/git_remote';
import { named } from '../../../db/statement';
import { accessOf, type GitContext } from '../../integrations/git_integration/client';
import { credentialOf, remoteOfShared, type SharedRemote } from '../../integrations/shared_repository/remote';
import type { Probes } from '../../../core/context';
import type { Source } from './source';

const REPOSITORY = named(`select clone_url from git_repositories
  where git_integration_id = $1 and repository_id = $2 and deleted_at is null`);
const SHARED = named(`select id, url, access, git_integration_id, sealed_key, host_key from shared_repositories
  where id = $1`);

/** Fields of a source that say where it is. */
export type RepositorySource = Pick<
  Source,
  'type' | 'repository_url' | 'git_integration_id' | 'repository_id' | 'shared_repository_id'
>;

/** Whether the source is a Git repository. */
export function isGit(source: RepositorySource | null | undefined): boolean {
  return source?.type === 'git';
}

/** The remote, with the credential that it needs; or why there is none. */
export async function remoteOf(
  ctx: GitContext,
  source: RepositorySource,
): Promise<{ remote: GitRemote } | { miss: SourceMiss }> {
  try {
    const remote = await findRemote(ctx, source);
    return remote ? { remote } : { miss: missOf('no_repository', 'The repository of the application was deleted.') };
  } catch (error) {
    if (error instanceof Problem) return { miss: missOf('refused', error.detail) };
    if (!(error instanceof GitProviderError)) throw error;
    const isGone = error.failure === 'unauthorized' || error.failure === 'forbidden';
    return { miss: missOf(isGone ? 'refused' : 'unreachable', error.message) };
  }
}

/** What the repository has for a ref. Never throws for a failure of the repository or of its provider. */
export async function resolveSource(
  ctx: GitContext & { probes: Pick<Probes, 'source'> },
  source: RepositorySource,
  wanted: SourceRef,
): Promise<SourceResult> {
  const found = await remoteOf(ctx, source);
  return 'miss' in found ? found.miss : ctx.probes.source.resolveCommit(found.remote, wanted);
}

async function findRemote(ctx: GitContext, source: RepositorySource): Promise<GitRemote | null> {
  const { repository_url, git_integration_id, repository_id, shared_repository_id } = source;
  if (repository_url !== null) return { address: repository_url };
  if (shared_repository_id !== null) {
    const [row] = await ctx.sql.query<SharedRemote>(SHARED, [shared_repository_id]);
    return row ? remoteOfShared(ctx, row) : null;
  }
  if (git_integration_id === null) return null;
  const [row] = await ctx.sql.query<{ clone_url: string }>(REPOSITORY, [git_integration_id, repository_id]);
  if (!row) return null;
  const { access } = await accessOf(ctx, git_integration_id);
  return { address: row.clone_url, credential: credentialOf(access) };
}

function missOf(failure: SourceMiss['failure'], message: string): SourceMiss {
  return { found: false, failure, message };
}
