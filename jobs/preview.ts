// Previews: stacks of their own beside their application. Their status follows their deployments; they end by
// themselves when their time has come.
import { recordEvent } from '../models/activity';
import { Preview } from '../models/preview';
import { freeLeases } from '../db/lease';
import { stackOfPreview, type StackPlace } from '../models/stack';
import { expirePreview, latestOfPreview, removeStack } from '../models/stack_removal';
import { bringUp } from './application/stack';
import { around, gone, progressing, settled, type Job, type JobContext, type LoopRow, type Outcome } from './job';

interface PreviewRow extends LoopRow {
  project_id: string;
  application_id: string;
  status: Preview['status'];
  expires_at: string | null;
}

const INSURANCE_MS = 60_000;
const GOING_MS = 1_000;

export const job: Job<PreviewRow> = {
  table: Preview.table,
  host: true,
  prepare: (sql) => freeLeases(sql, Preview.table),
  states: Preview.states,
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : keepUp(row, ctx)),
};

async function keepUp(row: PreviewRow, ctx: JobContext): Promise<Outcome> {
  const leftMs = row.expires_at === null ? Infinity : Date.parse(row.expires_at) - Date.now();
  if (leftMs <= 0 && (await expire(row, ctx))) return settled({}, 0);
  const stack = await stackOfPreview(ctx.sql, row.id);
  if (stack) await bringUp(placeOf(row), stack.wants, stack.present, ctx);
  const { status, reason } = await shown(row, ctx);
  const next = stepTowards(row.status, status);
  if (next !== status) return progressing(0, { status: next, status_reason: null });
  const columns =
    status === row.status && reason === (row.status_reason ?? null) ? {} : { status, status_reason: reason };
  return settled(columns, Math.max(0, Math.min(around(INSURANCE_MS), leftMs)));
}

function expire(row: PreviewRow, ctx: JobContext): Promise<boolean> {
  return ctx.sql.transaction(async (session) => {
    if (!(await expirePreview(session, row.id))) return false;
    await recordEvent(session, Preview.table, row, 'expired');
    return true;
  });
}

const SHOWN: Record<string, Preview['status']> = {
  queued: 'queued',
  building: 'building',
  deploying: 'deploying',
  active: 'running',
  superseded: 'running',
  failed: 'failed',
  canceled: 'failed',
};

async function shown(row: PreviewRow, ctx: JobContext): Promise<{ status: Preview['status']; reason: string | null }> {
  const latest = await latestOfPreview(ctx.sql, row.id);
  const status = (latest && SHOWN[latest.status]) ?? row.status;
  return {
    status,
    reason: latest && status === 'failed' ? (latest.status_reason ?? 'The deployment was canceled.') : null,
  };
}

/** A deployment may be faster than the looks at it: its preview passes through all its states nevertheless. */
function stepTowards(from: Preview['status'], to: Preview['status']): Preview['status'] {
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
  return (await removeStack(ctx.sql, placeOf(row))) ? progressing(GOING_MS) : gone;
}

function placeOf({ id, project_id, application_id }: PreviewRow): StackPlace {
  return { project_id, application_id, preview_id: id };
}
