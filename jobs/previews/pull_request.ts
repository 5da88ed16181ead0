// Pull requests and their previews: follows the state at the provider (opened, pushed, closed, merged) and reports the
// preview there. A pull request from a fork gets no automatic preview: a member of the project has to create it.
import { Problem } from '../../core/errors';
import { pauseMsAfter } from '../../core/process/backoff';
import {
  GitProviderError,
  type GitAccess,
  type GitProviderClient,
  type GitPullRequest,
} from '../../core/protocols/git_provider';
import { withProviderClient } from '../../models/integrations/git_integration/client';
import {
  addPreview,
  findPullRequestContext,
  findPreview,
  redeployPreview,
  removePreview,
  type PullRequestContext,
  type PullRequestRow,
} from '../../models/previews/pull_request';
import { jittered, requireHost, settled, type Job, type JobContext, type Outcome } from '../job';
import { reportPreview } from './pull_request/report';

const BACKOFF = { firstMs: 10_000, maxMs: 10 * 60_000 };

const FORK =
  'The pull request comes from a fork. A member of the project can create its preview, which gets no variables.';

export const job: Job<PullRequestRow> = { table: 'pull_requests', host: true, quiet: true, reconcile };

async function reconcile(row: PullRequestRow, ctx: JobContext): Promise<Outcome> {
  const place = await findPullRequestContext(ctx.sql, row);
  if (!place) return settled({ read_events: row.events });
  try {
    const { gitProviders } = requireHost(ctx);
    const open = (access: GitAccess): GitProviderClient => gitProviders.client(access, ctx.signal);
    const work = (client: GitProviderClient): Promise<object> => followPull(row, place, client, ctx);
    const columns = await withProviderClient(ctx, place.git_integration_id, open, work);
    return settled({ ...columns, read_events: row.events, failures: 0 });
  } catch (error) {
    if (!(error instanceof GitProviderError || error instanceof Problem)) throw error;
    const failures = row.failures + 1;
    const untilLimit =
      error instanceof GitProviderError && error.retry_at ? Date.parse(error.retry_at) - Date.now() : 0;
    const pauseMs = Math.max(untilLimit, pauseMsAfter(failures, BACKOFF));
    ctx.log.info({ application_id: row.application_id, number: row.number, reason: error.message }, 'pull request');
    return settled({ failures }, jittered(pauseMs));
  }
}

/** @returns the columns to store */
async function followPull(
  row: PullRequestRow,
  place: PullRequestContext,
  client: GitProviderClient,
  ctx: JobContext,
): Promise<object> {
  const isStale = row.events > row.read_events;
  const pull = isStale ? await readPull(row, place, client) : null;
  const seen = pull
    ? { state: pull.state, commit_sha: pull.commit_sha || row.commit_sha, from_fork: pull.from_fork }
    : {};
  const remark = pull ? await follow(row, place, pull, ctx) : null;
  const preview = await findPreview(ctx.sql, row);
  const reported = await reportPreview({ ...row, ...seen }, place, preview, remark, client, ctx);
  return { ...seen, ...reported };
}

/** One that the provider does not know any more is closed. @throws GitProviderError */
async function readPull(
  row: PullRequestRow,
  { repository_id: id, full_name }: PullRequestContext,
  client: GitProviderClient,
): Promise<GitPullRequest> {
  try {
    return await client.pullRequest({ id, full_name }, row.number);
  } catch (error) {
    if (!(error instanceof GitProviderError) || error.failure !== 'not_found') throw error;
    const none = { title: '', source_branch: '', target_branch: '', author: '', url: '', updated_at: '' };
    return { ...none, number: row.number, state: 'closed', commit_sha: row.commit_sha ?? '', from_fork: row.from_fork };
  }
}

/** Makes, redeploys or removes the preview. Answers a remark for the people of the pull request. */
async function follow(
  row: PullRequestRow,
  place: PullRequestContext,
  pull: GitPullRequest,
  ctx: JobContext,
): Promise<string | null> {
  const preview = await findPreview(ctx.sql, row);
  if (pull.state !== 'open') {
    if (preview) await removePreview(ctx.sql, row, preview);
    return null;
  }
  if (preview) {
    const isNew = pull.commit_sha !== preview.commit_sha;
    // Later pushes to a fork are not deployed: a stranger could push code that no member has reviewed.
    if (isNew && !pull.from_fork) await redeployPreview(ctx.sql, place, preview, pull);
    return null;
  }
  if (!place.auto_create) return null;
  if (pull.from_fork) return FORK;
  return addPreview(ctx.sql, ctx.config, place, pull);
}
