// Repositories, branches and pull requests of an integration, read live from the provider.
import type { Context } from '../../../core/context';
import type {
  GitBranch,
  GitPullRequest,
  GitPullRequestState,
  GitRepository,
} from '../../../core/protocols/git_provider';
import type { Page } from '../../base/page';
import { GitIntegration } from '../git_integration';
import { addressOf, providerProblem, withProvider } from './client';
import { contains, walk } from './walk';

interface Args {
  limit?: number | null;
  cursor?: string | null;
}

/** @throws not_found, invalid_state, provider_error, invalid_cursor */
export function listRepositories(
  ctx: Context,
  id: string,
  args: Args & { search?: string | null },
): Promise<Page<GitRepository>> {
  const search = args.search ?? null;
  const fits = contains(search);
  return callProvider(ctx, id, (client) =>
    walk(ctx, {
      args,
      filters: { integration: id, search },
      read: (at) => client.repositories(at, search),
      matches: ({ full_name }) => fits(full_name),
    }),
  );
}

/** @throws not_found, invalid_state, provider_error */
export function readRepository(ctx: Context, id: string, repositoryId: string): Promise<GitRepository> {
  return callProvider(ctx, id, (client) => client.repository(repositoryId));
}

/** @throws not_found, invalid_state, provider_error, invalid_cursor */
export function listBranches(
  ctx: Context,
  id: string,
  repositoryId: string,
  args: Args & { search?: string | null },
): Promise<Page<GitBranch>> {
  const search = args.search ?? null;
  const fits = contains(search);
  return callProvider(ctx, id, async (client) => {
    const of = await addressOf(client, repositoryId);
    return walk(ctx, {
      args,
      filters: { integration: id, repository: repositoryId, search },
      read: (at) => client.branches(of, at, search),
      matches: ({ name }) => fits(name),
    });
  });
}

/** @throws not_found, invalid_state, provider_error, invalid_cursor */
export function listPullRequests(
  ctx: Context,
  id: string,
  repositoryId: string,
  args: Args & { state?: GitPullRequestState | null },
): Promise<Page<GitPullRequest>> {
  const state = args.state ?? 'open';
  return callProvider(ctx, id, async (client) => {
    const of = await addressOf(client, repositoryId);
    return walk(ctx, {
      args,
      filters: { integration: id, repository: repositoryId, pull_requests: state },
      read: (at) => client.pullRequests(of, state, at),
      matches: () => true,
    });
  });
}

async function callProvider<T>(ctx: Context, id: string, work: Parameters<typeof withProvider<T>>[2]): Promise<T> {
  const integration = await GitIntegration.get(ctx, id);
  try {
    return await withProvider(ctx, integration.id, work);
  } catch (error) {
    throw providerProblem(error);
  }
}
