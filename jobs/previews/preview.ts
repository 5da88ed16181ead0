// Previews: separate stacks beside their application. Their status follows their deployments; they are removed when
// they expire.
import { recordEvent } from '../../models/projects/activity';
import { Preview } from '../../models/previews/preview';
import { prepareCopies, removeCopies } from '../../models/databases/preview_copy';
import type { PreviewCopies } from '../../models/deployments/preview_databases';
import { pollPreview } from '../../models/previews/preview/poll';
import { releaseAllLeases } from '../../db/lease';
import { stackOfPreview, type PreviewStack, type StackKey } from '../../models/applications/stack';
import { expirePreview, latestOfPreview, removeStack } from '../../models/applications/stack_removal';
import { cacheDirectory, removeDirectory } from '../deployments/deployment/row';
import { OUTAGE_RECHECK_MS, outageReason } from '../applications/application/outage';
import { reconcileStack } from '../applications/application/reconcile_stack';
import { countRunning } from '../applications/application/stack_plan';
import {
  jittered,
  gone,
  progressing,
  requireHost,
  settled,
  type Job,
  type JobContext,
  type LoopRow,
  type Outcome,
} from '../job';

interface PreviewRow extends LoopRow {
  project_id: string;
  application_id: string;
  branch: string;
  status: Preview['status'];
  expires_at: string | null;
  copies: PreviewCopies | null;
}

const RECHECK_MS = 60_000;
const GOING_MS = 1_000;
const COPIES_MS = 2_000;
const WEB = 'web';

export const job: Job<PreviewRow> = {
  table: Preview.table,
  host: true,
  prepare: (sql) => releaseAllLeases(sql, Preview.table),
  states: Preview.states,
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : reconcilePreview(row, ctx)),
};

async function reconcilePreview(row: PreviewRow, ctx: JobContext): Promise<Outcome> {
  const leftMs = row.expires_at === null ? Infinity : Date.parse(row.expires_at) - Date.now();
  if (leftMs <= 0 && (await expire(row, ctx))) return settled({}, 0);
  if (row.copies?.state === 'waiting' && (await copiesAreWaitedFor(row, ctx)))
    return settled({}, Math.max(0, Math.min(COPIES_MS, leftMs)));
  const stack = await stackOfPreview(ctx.sql, row.id);
  if (stack) await reconcileStack(stackKeyOf(row), stack, ctx);
  const latest = await statusOfLatestDeployment(row, ctx);
  const { status } = latest;
  const outage = status === 'running' && stack ? outageOf(stack) : null;
  const reason = outage ?? latest.reason;
  const next = nextStatusTowards(row.status, status);
  if (next !== status) return progressing(0, { status: next, status_reason: null });
  if (FOLLOWING.has(status) && (await followBranch(row, ctx))) return settled({}, 0);
  const columns =
    status === row.status && reason === (row.status_reason ?? null) ? {} : { status, status_reason: reason };
  const recheckMs = outage === null ? RECHECK_MS : OUTAGE_RECHECK_MS;
  return settled(columns, Math.max(0, Math.min(jittered(recheckMs), pollMsOf(ctx), leftMs)));
}

/** A copy takes as long as a restore; what runs meanwhile runs on. */
async function copiesAreWaitedFor(row: PreviewRow, ctx: JobContext): Promise<boolean> {
  const { sql, config, secrets } = ctx;
  const stack = await stackOfPreview(sql, row.id);
  if (stack) await reconcileStack(stackKeyOf(row), stack, ctx);
  return (await prepareCopies({ sql, config, secrets, facts: requireHost(ctx).facts }, row)) === 'waiting';
}

/** Why visitors get no answer; null: they do. */
function outageOf({ wants, present, workloads }: PreviewStack): string | null {
  const web = wants.find(({ type, release_id }) => type === WEB && release_id !== null);
  if (!web) return null;
  const ours = present.filter(({ process_id, candidate }) => process_id === web.process_id && !candidate);
  return countRunning(ours) > 0 ? null : outageReason(WEB, present, workloads);
}

function expire(row: PreviewRow, ctx: JobContext): Promise<boolean> {
  return ctx.sql.transaction(async (session) => {
    if (!(await expirePreview(session, row.id))) return false;
    await recordEvent(session, Preview.table, row, 'expired');
    return true;
  });
}

/** Statuses in which a push to the branch redeploys the preview. */
const FOLLOWING = new Set<Preview['status']>(['running', 'failed']);

/** Whether a push was found and queued. An unreachable remote is retried at the next poll. */
async function followBranch(row: PreviewRow, ctx: JobContext): Promise<boolean> {
  const queued = await pollPreview(ctx, row.id, 0.8 * ctx.config.gitPollSeconds * 1000);
  if (queued) ctx.log.info('a push redeploys a preview');
  return queued;
}

/** A little less than the time between two polls, so that a push waits for no more than one. */
function pollMsOf({ config }: JobContext): number {
  return jittered(0.9 * config.gitPollSeconds * 1000);
}

const STATUS_OF_DEPLOYMENT: Record<string, Preview['status']> = {
  queued: 'queued',
  building: 'building',
  deploying: 'deploying',
  active: 'running',
  superseded: 'running',
  failed: 'failed',
  canceled: 'failed',
};

async function statusOfLatestDeployment(
  row: PreviewRow,
  ctx: JobContext,
): Promise<{ status: Preview['status']; reason: string | null }> {
  const latest = await latestOfPreview(ctx.sql, row.id);
  const status = (latest && STATUS_OF_DEPLOYMENT[latest.status]) ?? row.status;
  return {
    status,
    reason: latest && status === 'failed' ? (latest.status_reason ?? 'The deployment was canceled.') : null,
  };
}

/** A deployment may be faster than the looks at it: its preview passes through all its states nevertheless. */
function nextStatusTowards(from: Preview['status'], to: Preview['status']): Preview['status'] {
  const before = new Map<string, string>();
  const reached = [from as string];
  for (const state of reached) {
    for (const next of Preview.states.moves[state] ?? []) {
      if (next === from || before.has(next)) continue;
      before.set(next, state);
      reached.push(next);
    }
  }
  let step: string = to;
  for (let one = before.get(step); one !== undefined && one !== from; one = before.get(step)) step = one;
  return step as Preview['status'];
}

async function tearDown(row: PreviewRow, ctx: JobContext): Promise<Outcome> {
  if (await removeStack(ctx.sql, stackKeyOf(row))) return progressing(GOING_MS);
  const { application_id, id: preview_id, branch } = row;
  await removeCopies(ctx.sql, preview_id);
  if (branch.startsWith('refs/')) await removeDirectory(cacheDirectory({ application_id, preview_id, branch }, ctx));
  return gone;
}

function stackKeyOf({ id, project_id, application_id }: PreviewRow): StackKey {
  return { project_id, application_id, preview_id: id };
}
