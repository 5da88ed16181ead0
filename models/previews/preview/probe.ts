// Asking a remote for the commit of a preview, before the transaction.
import type { Context, SourceMiss, SourceResult } from '../../../core/context';
import { Problem } from '../../../core/errors';
import { GitProviderError, pullRequestRef } from '../../../core/protocols/git_provider';
import { named } from '../../../db/statement';
import { addressOf, withProvider } from '../../integrations/git_integration/client';
import type { CreatePreviewInput } from '../../../schema/types';
import { Application } from '../../applications/application';
import { isGit, resolveSource } from '../../applications/application/remote';
import type { Source } from '../../applications/application/source';
import { Preview } from '../preview';
import { isUnknown, sourceQuestionOf, refsOf, type ProbedHead } from './head';

/**
 * Probes the remote before a preview is created, at most 25 s. Null where no probe is needed; the mutation reports why.
 */
export async function probeNew(
  ctx: Context,
  applicationId: string,
  { branch, pull_request_number }: CreatePreviewInput,
): Promise<ProbedHead | null> {
  const source = await sourceOf(ctx, applicationId);
  if (!source) return null;
  if (pull_request_number != null && source.git_integration_id !== null)
    return probePullRequest(ctx, source, pull_request_number);
  const candidates = branch != null ? [branch] : refsOf(pull_request_number as number);
  const probed = await Promise.all(
    candidates.map(async (candidate) => ({
      source,
      branch: candidate,
      answer: await probeHead(ctx, source, candidate),
    })),
  );
  // Which of its refs the remote does not have says nothing, as long as it has one; that it gave no answer does.
  return (
    probed.find(({ answer }) => answer.found) ?? probed.find(({ answer }) => !isUnknown(answer)) ?? probed[0] ?? null
  );
}

/** With an integration the provider says whether it is open, where its head is, and whether it comes from a fork. */
async function probePullRequest(ctx: Context, source: Source, number: number): Promise<ProbedHead> {
  const [id, repositoryId] = [source.git_integration_id as string, source.repository_id as string];
  const miss = (failure: SourceMiss['failure'], message: string): ProbedHead => ({
    source,
    branch: '',
    answer: { found: false, failure, message },
  });
  try {
    const pull = await withProvider(ctx, id, async (client) =>
      client.pullRequest(await addressOf(client, repositoryId), number),
    );
    if (pull.state !== 'open') return miss('unknown_branch', `The pull request ${number} is ${pull.state}.`);
    const [integration] = await ctx.sql.query<{ provider: string }>(PROVIDER, [id]);
    const branch = pullRequestRef(integration?.provider ?? '', pull);
    const answer = { found: true as const, branch: null, sha: pull.commit_sha };
    return { source, branch, answer, from_fork: pull.from_fork };
  } catch (error) {
    if (error instanceof Problem) return miss('refused', error.detail);
    if (!(error instanceof GitProviderError)) throw error;
    const isUnknown = error.failure === 'not_found';
    return miss(isUnknown ? 'unknown_branch' : 'unreachable', error.message);
  }
}

const PROVIDER = named('select provider from git_integrations where id = $1');

/** The same for a preview that is there. */
export async function probePresent(ctx: Context, applicationId: string, id: string): Promise<ProbedHead | null> {
  const source = await sourceOf(ctx, applicationId);
  const preview = source && (await Preview.get(ctx, id, { application_id: applicationId }).catch(() => null));
  if (!source || !preview) return null;
  return { source, branch: preview.branch, answer: await probeHead(ctx, source, preview.branch) };
}

async function sourceOf(ctx: Context, applicationId: string): Promise<Source | null> {
  const application = await Application.get(ctx, applicationId).catch(() => null);
  return isGit(application?.source) ? (application?.source ?? null) : null;
}

function probeHead(ctx: Context, source: Source, branch: string): Promise<SourceResult> {
  return resolveSource(ctx, source, sourceQuestionOf(branch));
}
