// Runs: a command is started once as a unit, observed until it has ended, and found again after a crash. The status is
// written after the last line of the log.
import { DriverError } from '../../core/driver';
import { toSentence } from '../../core/sentence';
import { releaseAllLeases } from '../../db/lease';
import { Run } from '../../models/runs/run';
import { isAbandoned } from '../../models/runs/run/writer';
import { shipLastLines } from '../unit_log';
import { gone, progressing, settled, type Job, type JobContext, type Outcome, requireHost } from '../job';
import { pruneAfterRun } from './run/prune';
import { resultOf, type RunResult } from './run/result';
import { isFinished, type RunRow } from './run/row';
import { beginStop } from './run/stopping';
import { unitSpecOf } from './run/unit';

/** The end of a unit wakes its row; these intervals cover lost notifications, of a short command sooner. */
const RECHECK_MS = { first: 1_000, later: 10_000 };
const YOUNG_MS = 60_000;
const STOPPING_MS = 1_000;
/** What a run printed can be attached to for this time after its end. */
const REPLAY_MS = 60_000;
const SOON_MS = 1_000;
const ABANDONED_SECONDS = 60;

export const job: Job<RunRow> = {
  table: Run.table,
  units: { prefixes: ['run'], column: 'id' },
  host: true,
  // Its moves within a step are no events: a run is created, and it ends.
  movedElsewhere: true,
  // Its deployment tells what became of a release command.
  isQuiet: ({ trigger_type }) => trigger_type === 'release',
  prepare: (sql) => releaseAllLeases(sql, Run.table),
  states: Run.states,
  watchFailedMs: SOON_MS,
  reconcile(row, ctx) {
    if (row.deleted_at) return tearDown(row, ctx);
    return isFinished(row) ? cleanUp(row, ctx) : advance(row, ctx);
  },
};

async function advance(row: RunRow, ctx: JobContext): Promise<Outcome> {
  const { runtime } = requireHost(ctx);
  const handle = await runtime.find(row.id);
  if (!handle) return row.status === 'running' ? lost(row) : start(row, ctx);
  // The control plane was killed right after it had started the unit.
  if (row.status !== 'running') await ctx.record({ status: 'running' });
  const state = await runtime.inspect(handle);
  if (state.state === 'gone') return lost(row);
  if (state.state === 'running') {
    if (!row.cancel_requested_at && !(await cancelAbandoned(row, ctx))) return settled({}, recheckMs(row));
    await beginStop(row, handle, ctx);
    return settled({}, STOPPING_MS);
  }
  // Programs that it left behind.
  await runtime.stop(handle, { grace_ms: 0 }, ctx);
  if (!(await shipLastLines(requireHost(ctx), row.id))) return progressing(0);
  return ended(row, resultOf(row, state, ctx), state.at);
}

function recheckMs({ started_at }: RunRow): number {
  const ageMs = started_at === null ? 0 : Date.now() - Date.parse(started_at);
  return ageMs < YOUNG_MS ? RECHECK_MS.first : RECHECK_MS.later;
}

/** Nobody sees the end of a terminal whose client is away. */
async function cancelAbandoned(row: RunRow, ctx: JobContext): Promise<boolean> {
  if (!row.tty || !(await isAbandoned(ctx.sql, row.id, ABANDONED_SECONDS))) return false;
  const seconds = ABANDONED_SECONDS;
  await ctx.record({
    cancel_requested_at: new Date().toISOString(),
    status_reason: `Canceled: no client has been attached to its terminal for ${seconds} seconds.`,
  });
  return true;
}

async function start(row: RunRow, ctx: JobContext): Promise<Outcome> {
  if (row.cancel_requested_at) return ended(row, { status: 'canceled', status_reason: row.status_reason ?? null });
  try {
    const spec = await unitSpecOf(row, ctx);
    await ctx.record({ status: 'starting', started_at: row.started_at ?? new Date().toISOString() });
    await requireHost(ctx).runtime.start(spec, ctx);
  } catch (error) {
    if (!(error instanceof DriverError) || error.reason === 'transient') throw error;
    return ended(row, { status: 'failed', status_reason: toSentence(error.message) });
  }
  await ctx.record({ status: 'running' });
  return settled({}, RECHECK_MS.first);
}

/** There is no trace of a unit that ran, for instance after the disk of the host was replaced. */
function lost(row: RunRow): Outcome {
  const status_reason = 'The processes of the run were lost when the host was restarted.';
  return ended(row, { status: row.cancel_requested_at ? 'canceled' : 'failed', status_reason });
}

function ended(row: RunRow, result: RunResult, at = new Date().toISOString()): Outcome {
  const end = { exit_code: null, signal: null, exceeded_limit: null, ...result };
  return settled({ ...end, finished_at: at, variables: null }, SOON_MS);
}

/** Removes what a finished run left on the host, once nobody attaches to it any more. */
async function cleanUp(row: RunRow, ctx: JobContext): Promise<Outcome> {
  const { runtime } = requireHost(ctx);
  const finished_at = row.finished_at ?? new Date().toISOString();
  const handle = await runtime.find(row.id);
  if (handle && isReplayed(row) && (await runtime.inspect(handle)).state === 'exited') {
    const left = Date.parse(finished_at) + REPLAY_MS - Date.now();
    if (left > 0) return settled({ finished_at, variables: null }, Math.min(left, REPLAY_MS));
  }
  await removeUnit(row, ctx);
  await pruneAfterRun(row, ctx);
  return settled({ finished_at, variables: null });
}

/** Nothing of a canceled deployment stays. */
function isReplayed({ trigger_type, status }: RunRow): boolean {
  return trigger_type !== 'release' || status !== 'canceled';
}

async function tearDown(row: RunRow, ctx: JobContext): Promise<Outcome> {
  await removeUnit(row, ctx);
  return gone;
}

async function removeUnit(row: RunRow, ctx: JobContext): Promise<void> {
  const { runtime } = requireHost(ctx);
  const handle = await runtime.find(row.id);
  if (handle) await runtime.stop(handle, { grace_ms: 0 }, ctx);
  await runtime.destroy(row.id, ctx);
}
