// Which commit a preview shows: the head of its branch, or of the ref under which a remote has a pull request.
import type { Context, SourceAnswer, SourceQuestion } from '../../core/context';
import { problem } from '../../core/errors';
import type { CreatePreviewInput } from '../../schema/types';
import { Application } from '../application';
import type { Source } from '../application/source';
import { Preview } from '../preview';

/** The source as it was when the remote was asked, which ref it was asked for, and what it said. */
export interface Found {
  source: Source;
  /** As the preview keeps it: a branch, or a full ref of a pull request. */
  branch: string;
  answer: SourceAnswer;
}

/**
 * What to ask a remote for a preview, and for its deployments: what they keep as their branch is a full ref for a pull
 * request. No preview is made of a branch whose name begins like one.
 */
export function questionOf(branch: string): SourceQuestion {
  return branch.startsWith('refs/') ? { ref: branch } : { branch };
}

/** Asks the remote before a preview is made, at most 5 s. Null where there is nothing to ask; the mutation says why. */
export async function probeNew(
  ctx: Context,
  applicationId: string,
  { branch, pull_request_number }: CreatePreviewInput,
): Promise<Found | null> {
  const source = await sourceOf(ctx, applicationId);
  if (!source) return null;
  const candidates = branch != null ? [branch] : refsOf(pull_request_number as number);
  const asked = await Promise.all(
    candidates.map(async (candidate) => ({ source, branch: candidate, answer: await look(ctx, source, candidate) })),
  );
  // Which of its refs the remote does not have says nothing, as long as it has one; that it gave no answer does.
  return asked.find(({ answer }) => answer.found) ?? asked.find(({ answer }) => !isUnknown(answer)) ?? asked[0] ?? null;
}

/** The same for a preview that is there. */
export async function probePresent(ctx: Context, applicationId: string, id: string): Promise<Found | null> {
  const source = await sourceOf(ctx, applicationId);
  const preview = source && (await Preview.get(ctx, id, { application_id: applicationId }).catch(() => null));
  if (!source || !preview) return null;
  return { source, branch: preview.branch, answer: await look(ctx, source, preview.branch) };
}

/**
 * The commit that a probe has found.
 * @param found null where the application had no Git source
 * @throws source_not_configured, reference_not_found with `field`, provider_error
 */
export function headOf(
  found: Found | null,
  pullRequest: number | null,
): { source: Source; branch: string; sha: string } {
  if (!found)
    throw problem(
      'source_not_configured',
      'The application has no Git repository as its source, and previews show branches of one. Set its source first.',
    );
  const { source, branch, answer } = found;
  if (answer.found) return { source, branch, sha: answer.sha };
  if (!isUnknown(answer)) throw problem('provider_error', answer.message);
  if (pullRequest === null) throw problem('reference_not_found', answer.message, { field: 'branch' });
  throw problem(
    'reference_not_found',
    `The repository has no pull request ${pullRequest}: ${refsOf(pullRequest).join(' and ')} are not there.`,
    { field: 'pull_request_number' },
  );
}

/** Where hosts of repositories keep the head of a pull request, or of a merge request. */
function refsOf(pullRequest: number): string[] {
  return [`refs/pull/${pullRequest}/head`, `refs/merge-requests/${pullRequest}/head`];
}

async function sourceOf(ctx: Context, applicationId: string): Promise<Source | null> {
  const application = await Application.get(ctx, applicationId).catch(() => null);
  return application?.source?.repository_url ? application.source : null;
}

function look(ctx: Context, { repository_url }: Source, branch: string): Promise<SourceAnswer> {
  return ctx.probes.source.look({ address: repository_url as string }, questionOf(branch));
}

function isUnknown(answer: SourceAnswer): boolean {
  return !answer.found && (answer.failure === 'unknown_branch' || answer.failure === 'empty');
}
