// Auto-deploy: the head of the watched branch is looked at again and again, and deployed when it is new. It runs where
// the mirrors of the repositories are, for the paths that a push changes.
import {
  deployedCommit,
  deployHead,
  findWatchedApplication,
  noteReason,
  watchedSourceOf,
  type AutoDeployRow,
  type WatchedApplication,
} from '../../models/deployments/auto_deploy';
import { concerns } from '../../models/deployments/auto_deploy/paths';
import { DriverError } from '../../core/driver';
import { pauseMsAfter } from '../../core/process/backoff';
import { ImageError } from '../../drivers/image';
import { SourceError, type Head } from '../../drivers/source';
import { checksGate } from './auto_deploy_gate';
import { checkTag, type Found } from './auto_deploy_tag';
import { requireRemote } from '../source_remote';
import type { Source } from '../../models/applications/application/source';
import { jittered, settled, type Job, type JobContext, type Outcome, requireHost } from '../job';

const NO_SOURCE = 'The source of the application is neither a Git repository nor an image.';
const BACKOFF_MAX_MS = 600_000;
/** A step may have to fetch the repository to find the changed paths of a push; a silent one is given up earlier. */
const STEP_MS = 60 * 60_000;

// No `states`: a repository that is away may come back.
export const job: Job<AutoDeployRow> = {
  table: 'auto_deploys',
  project: '(select a.project_id from applications a where a.id = auto_deploys.id)',
  host: true,
  stepMs: STEP_MS,
  reconcile,
};

async function reconcile(row: AutoDeployRow, ctx: JobContext): Promise<Outcome> {
  const application = row.enabled ? await findWatchedApplication(ctx.sql, row.id) : null;
  if (!application) return settled();
  const pollMs = ctx.config.gitPollSeconds * 1000;
  const last_checked_at = new Date().toISOString();
  const { source } = application;
  if (source?.type !== 'git' && source?.type !== 'image')
    return settled({ status_reason: NO_SOURCE, failures: 1 }, jittered(pollMs));
  try {
    const check = source.type === 'image' ? checkTag : checkHead;
    const { nextMs = pollMs, ...columns } = await check(row, application, source, ctx);
    // The reason recorded for the newest head is kept until there is a newer one.
    const cleared = (row.failures > 0 || row.awaited_sha !== null) && { status_reason: null };
    return settled({ ...cleared, ...columns, last_checked_at, failures: 0 }, jittered(nextMs));
  } catch (error) {
    if (!(error instanceof SourceError || error instanceof ImageError)) throw error;
    if (ctx.signal.aborted) throw new DriverError('transient', error.message);
    const pauseMs = Math.max(pollMs, pauseMsAfter(row.failures + 1, { firstMs: 2 * pollMs, maxMs: BACKOFF_MAX_MS }));
    return settled({ last_checked_at, failures: row.failures + 1, status_reason: error.message }, jittered(pauseMs));
  }
}

/**
 * Columns to remember. The head is compared with the one that was seen last; at the first look, and where another
 * branch or repository is watched by now, with the commit that the application runs. Of one that has never been
 * deployed a head is only remembered then: the first push deploys it.
 */
async function checkHead(
  row: AutoDeployRow,
  application: WatchedApplication,
  of: Source,
  ctx: JobContext,
): Promise<Found> {
  const { source } = requireHost(ctx);
  const branch = row.branch ?? of.branch;
  const remote = await requireRemote(ctx, of);
  const head = await source.resolveHead(remote, { branch }, ctx);
  const watched = watchedSourceOf(of, branch);
  const isKnown = row.last_seen_sha !== null && row.watched === watched;
  const before = isKnown ? row.last_seen_sha : await deployedCommit(ctx.sql, row.id);
  const seen = { last_seen_sha: head.sha, watched };
  const passed = { ...seen, awaited_sha: null, awaited_since: null };
  if (before === null || before === head.sha) return passed;
  const commit = await source.fetch(row.id, remote, { branch: head.branch, commit: head.sha }, ctx);
  if (commit.skip) return recordRefusal(row, skipReason(head.sha), passed, ctx);
  if (!(await touchesWatchedPaths(row, before, head, ctx))) return { ...passed, status_reason: null };
  const gate = await checksGate(row, of, head.sha, ctx);
  if (gate.open) {
    await deployHead(ctx.sql, row, application, head, watched);
    return { status_reason: null };
  }
  if (!gate.wait) return recordRefusal(row, gate.reason, passed, ctx);
  const { since: awaited_since, reason: status_reason, nextMs } = gate;
  return { awaited_sha: head.sha, awaited_since, status_reason, nextMs };
}

async function recordRefusal(row: AutoDeployRow, reason: string, passed: object, ctx: JobContext): Promise<Found> {
  await noteReason(ctx.sql, row, reason);
  return { ...passed, status_reason: reason };
}

function skipReason(sha: string): string {
  return `Commit ${sha.slice(0, 10)} was not deployed: its message says so.`;
}

/** Whether the push changes a watched path. True if the changed paths can't be determined, as after a force push. */
async function touchesWatchedPaths(row: AutoDeployRow, from: string, head: Head, ctx: JobContext): Promise<boolean> {
  if (!row.paths.length) return true;
  const { source } = requireHost(ctx);
  const changed = await source.changedPaths(row.id, from, head.sha, ctx);
  return changed === null || concerns(row.paths, changed);
}
