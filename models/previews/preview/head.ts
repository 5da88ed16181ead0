// Which commit a preview shows: the head of its branch, or of the ref under which a remote has a pull request.
import type { SourceResult, SourceRef } from '../../../core/context';
import { problem } from '../../../core/errors';
import type { Source } from '../../applications/application/source';
import { sourceProblem } from '../../integrations/git_integration/client';

/** The source and ref of a probe, with the remote's response. */
export interface ProbedHead {
  source: Source;
  /** As the preview keeps it: a branch, or a full ref of a pull request. */
  branch: string;
  answer: SourceResult;
  /** Of a pull request, where the provider's API was used: the branch is in another repository. */
  from_fork?: boolean;
}

/**
 * The ref that a preview and its deployments resolve: a full ref for a pull request, else a branch. Branches whose
 * names begin with `refs/` cannot have previews.
 */
export function sourceQuestionOf(branch: string): SourceRef {
  return branch.startsWith('refs/') ? { ref: branch } : { branch };
}

/**
 * The commit that a probe has found.
 * @param found null where the application had no Git source
 * @throws source_not_configured, reference_not_found with `field`, provider_error
 */
export function requireHead(
  found: ProbedHead | null,
  pullRequest: number | null,
): { source: Source; branch: string; sha: string } {
  if (!found)
    throw problem(
      'source_not_configured',
      'The application has no Git repository as its source, and previews show branches of one. Set its source first.',
    );
  const { source, branch, answer } = found;
  if (answer.found) return { source, branch, sha: answer.sha };
  if (!isUnknown(answer)) throw sourceProblem(answer);
  if (pullRequest === null) throw problem('reference_not_found', answer.message, { field: 'branch' });
  throw problem(
    'reference_not_found',
    `The repository has no pull request ${pullRequest}: ${refsOf(pullRequest).join(' and ')} are not there.`,
    { field: 'pull_request_number' },
  );
}

/** Where hosts of repositories keep the head of a pull request, or of a merge request. */
export function refsOf(pullRequest: number): string[] {
  return [`refs/pull/${pullRequest}/head`, `refs/merge-requests/${pullRequest}/head`];
}

export function isUnknown(answer: SourceResult): boolean {
  return !answer.found && (answer.failure === 'unknown_branch' || answer.failure === 'empty');
}
