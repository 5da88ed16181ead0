// Reports a preview at its pull request: a commit status, and one comment that is updated.
import {
  GitProviderError,
  STATUS_PREFIX,
  type GitProviderClient,
  type GitStatus,
} from '../../../core/protocols/git_provider';
import {
  previewUrl,
  type PullRequestContext,
  type PullRequestPreview,
  type PullRequestRow,
} from '../../../models/previews/pull_request';
import type { JobContext } from '../../job';

interface Report {
  sha: string;
  status: GitStatus;
  comment: string;
}

/** @returns columns with the reported values; values reported before are not sent again. @throws GitProviderError */
export async function reportPreview(
  row: PullRequestRow,
  place: PullRequestContext,
  preview: PullRequestPreview | null,
  remark: string | null,
  client: GitProviderClient,
  ctx: JobContext,
): Promise<object> {
  const report = await reportOf(row, place, preview, remark, ctx);
  if (!report) return {};
  const of = { id: place.repository_id, full_name: place.full_name };
  const { sha, status, comment } = report;
  const reported = `${sha} ${status.state} ${status.description} ${status.url ?? ''}`;
  if (reported !== row.reported) await client.setStatus(of, sha, status);
  if (comment === row.comment) return { reported };
  return { reported, comment, comment_id: await writeComment(row, of, comment, client) };
}

async function writeComment(
  row: PullRequestRow,
  of: { id: string; full_name: string },
  text: string,
  client: GitProviderClient,
): Promise<string> {
  try {
    return await client.writeComment(of, row.number, row.comment_id, text);
  } catch (error) {
    // A user has deleted the comment.
    if (row.comment_id === null || !(error instanceof GitProviderError) || error.failure !== 'not_found') throw error;
    return client.writeComment(of, row.number, null, text);
  }
}

const STATES: Record<PullRequestPreview['status'], GitStatus['state']> = {
  queued: 'pending',
  building: 'pending',
  deploying: 'pending',
  running: 'success',
  failed: 'failure',
};
const STATUS_TEXTS: Record<PullRequestPreview['status'], string> = {
  queued: 'The preview waits to be built.',
  building: 'The preview is being built.',
  deploying: 'The preview is being started.',
  running: 'The preview is running.',
  failed: 'The preview failed.',
};

async function reportOf(
  row: PullRequestRow,
  { application: { name } }: PullRequestContext,
  preview: PullRequestPreview | null,
  remark: string | null,
  ctx: JobContext,
): Promise<Report | null> {
  const context = `${STATUS_PREFIX}${name}/preview`;
  const title = `**Preview of ${name}**`;
  if (!preview) {
    // A preview that never existed is not reported, unless there is a remark about it.
    if (row.commit_sha === null || (remark === null && row.comment === null)) return null;
    const text = remark ?? 'The preview was removed.';
    const state = remark === null ? 'success' : 'pending';
    return {
      sha: row.commit_sha,
      status: { state, description: text, url: null, context },
      comment: `${title}\n\n${text}`,
    };
  }
  const sha = preview.commit_sha ?? row.commit_sha;
  if (sha === null) return null;
  const url = await previewUrl(ctx.sql, ctx.config, preview);
  const reason = preview.status === 'failed' ? (preview.status_reason ?? '') : '';
  const description = reason || STATUS_TEXTS[preview.status];
  const lines = [title, '', `${STATUS_TEXTS[preview.status]} Commit ${sha.slice(0, 10)}.`];
  if (preview.status === 'running') lines.push('', url);
  if (reason) lines.push('', '```', reason.replaceAll('```', "'''"), '```');
  return {
    sha,
    status: { state: STATES[preview.status], description, url: preview.status === 'running' ? url : null, context },
    comment: lines.join('\n'),
  };
}
