import type { GitPullRequest } from '../../../core/protocols/git_provider';

/** Where the provider keeps the head of a pull request: a ref of its own, or, at Bitbucket, only the branch. */
export function refOf(provider: string, pull: Pick<GitPullRequest, 'number' | 'source_branch'>): string {
  if (provider === 'bitbucket') return pull.source_branch;
  return provider === 'gitlab' ? `refs/merge-requests/${pull.number}/head` : `refs/pull/${pull.number}/head`;
}
