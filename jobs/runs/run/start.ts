// A command is started once, and found where it was started before.
import type { TaskState } from '../../../drivers/workload/task';
import { progressing, settled, type JobContext, type Outcome, type Values } from '../../job';
import { canceledResult, endRun } from './end';
import { runnerOf, type Runner } from './runner';
import type { RunRow } from './row';

const RECHECK_MS = 1_000;
/** A cluster that has no room, or cannot pull the image, may have it soon. */
const START_WITHIN_MS = 300_000;
/** A large image may take so long to be pulled, which a cluster does not tell. */
const SILENT_START_WITHIN_MS = 600_000;
const UNSTARTED = 'The cluster has not started the command within 10 minutes, and does not say why.';

type Waiting = Extract<TaskState, { state: 'waiting' }>;
type StartedState = Extract<TaskState, { started_at: string | null }>;

export async function startRunCommand(row: RunRow, ctx: JobContext): Promise<Outcome | 'done'> {
  const runner = await runnerOf(row, ctx);
  const state = await runner.inspect(row, ctx);
  if (state?.state === 'waiting') return waitForStart(row, state, runner, ctx);
  if (state) {
    await ctx.record(runningOf(row, state));
    return 'done';
  }
  if (row.cancel_requested_at) return endRun(row, canceledResult(row));
  // Of the last attempt: a cluster that was away has not had the time to start it.
  await ctx.record({ status: 'starting', started_at: new Date().toISOString() });
  await runner.start(row, ctx);
  return progressing(0);
}

/** Of a cluster: for room, or for the image. */
export async function waitForStart(row: RunRow, state: Waiting, runner: Runner, ctx: JobContext): Promise<Outcome> {
  const waitedMs = Date.now() - Date.parse(row.started_at ?? new Date().toISOString());
  const { reason, is_final } = state;
  const withinMs = reason === null ? SILENT_START_WITHIN_MS : START_WITHIN_MS;
  if (!row.cancel_requested_at && !is_final && waitedMs <= withinMs) {
    if (row.status !== 'starting') await ctx.record({ status: 'starting' });
    return settled(reason === row.status_reason ? {} : { status_reason: reason }, RECHECK_MS);
  }
  await runner.destroy(row, ctx);
  if (row.cancel_requested_at) return endRun(row, canceledResult(row));
  return endRun(row, { status: 'failed', status_reason: reason ?? UNSTARTED });
}

function runningOf({ cancel_requested_at, status_reason }: RunRow, { started_at }: StartedState): Values {
  return {
    status: 'running',
    ...(started_at !== null && { started_at }),
    // Of what it waited for.
    ...(cancel_requested_at === null && status_reason && { status_reason: null }),
  };
}
