import type { GitPullRequest } from '../../../core/protocols/git_provider';

/** The ref of a pull request's head at the provider; Bitbucket has only the branch. */
export function refOf(provider: string, pull: Pick<GitPullRequest, 'number' | 'source_branch'>): string {
  if (provider === 'bitbucket') return pull.source_branch;
  return provider === 'gitlab' ? `refs/merge-requests/${pull.number}/head` : `refs/pull/${pull.number}/head`;
}
