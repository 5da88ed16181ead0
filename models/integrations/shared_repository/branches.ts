// The branches of a shared repository, as its remote has them now.
import type { Context } from '../../../core/context';
import type { GitBranch } from '../../../core/protocols/git_provider';
import type { Page } from '../../base/page';
import { providerProblem, sourceProblem } from '../git_integration/client';
import { contains, walk } from '../git_integration/walk';
import { SharedRepository } from '../shared_repository';
import { remoteOfShared } from './remote';

interface Args {
  limit?: number | null;
  cursor?: string | null;
  search?: string | null;
}

/** @throws not_found, invalid_state, provider_error, invalid_cursor */
export async function listSharedBranches(ctx: Context, id: string, args: Args): Promise<Page<GitBranch>> {
  const repository = await SharedRepository.visible(ctx, id);
  const search = args.search ?? null;
  const fits = contains(search);
  return walk(ctx, {
    args,
    filters: { shared_repository: id, search },
    read: async () => ({ rows: await read(ctx, repository), next: null }),
    matches: ({ name }) => fits(name),
  });
}

async function read(ctx: Context, repository: SharedRepository): Promise<GitBranch[]> {
  const remote = await remoteOfShared(ctx, repository).catch((error: unknown) => {
    throw providerProblem(error);
  });
  const answer = await ctx.probes.source.listBranches(remote);
  if (answer.found) return answer.branches.map(({ name, sha }) => ({ name, commit_sha: sha, protected: null }));
  throw sourceProblem(answer);
}
