// Runs: a command is started once, on the host or a cluster (run/engine.ts), observed until it has ended, and found
// again after a crash. The status is written after the last line of the log.
import { DriverError } from '../../core/driver';
import { toSentence } from '../../core/sentence';
import { releaseAllLeases } from '../../db/lease';
import { Run } from '../../models/runs/run';
import { isAbandoned } from '../../models/runs/run/writer';
import type { TaskState } from '../../drivers/workload/task';
import { runsWithoutRow } from '../../models/runs/run/job_queries';
import { allAtOnce, type Leftovers } from '../declarations';
import { gone, progressing, settled, type Job, type JobContext, type Outcome, type Values } from '../job';
import { engineOf, type RunEngine } from './run/engine';
import { pruneAfterRun } from './run/prune';
import { blameLineEnds, resultOf, type RunResult } from './run/result';
import { isFinished, type RunRow } from './run/row';

/** The end of a unit wakes its row; these intervals cover lost notifications, of a short command sooner. */
const RECHECK_MS = { first: 1_000, later: 10_000 };
const YOUNG_MS = 60_000;
const STOPPING_MS = 1_000;
/** What a run printed can be attached to for this time after its end. */
const REPLAY_MS = 60_000;
const SOON_MS = 1_000;
const ABANDONED_SECONDS = 60;
/** A cluster that has no room, or cannot pull the image, may have it soon. */
const START_WITHIN_MS = 300_000;
/** A large image may take so long to be pulled, which a cluster does not tell. */
const SILENT_START_WITHIN_MS = 600_000;
const UNREACHABLE_MS = 3_000;
const UNSTARTED = 'The cluster has not started the command within 10 minutes, and does not say why.';

type Waiting = Extract<TaskState, { state: 'waiting' }>;
type StartedState = Extract<TaskState, { started_at: string | null }>;

/** Of a cluster; units of this host are swept as such. */
const leftovers: Leftovers = {
  kind: 'run',
  list: ({ host }, ctx) => allAtOnce(host?.tasks ? host.tasks.runtime.list(ctx) : Promise.resolve([])),
  withoutRow: runsWithoutRow,
  remove: async (id, { tasks }, ctx) => void (await tasks?.runtime.destroy({ id }, ctx)),
};

export const job: Job<RunRow> = {
  table: Run.table,
  units: { prefixes: ['run'], column: 'id' },
  leftovers: [leftovers],
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
  const engine = await engineOf(row, ctx);
  const state = await inspect(engine, row, ctx);
  if (state === 'unknown') return settled({}, UNREACHABLE_MS);
  if (!state) return row.status === 'running' ? lost(row, engine) : start(row, engine, ctx);
  if (state.state === 'waiting') return waitForStart(row, state, engine, ctx);
  // The control plane was killed right after it had started the command.
  if (row.status !== 'running') await ctx.record(runningOf(row, state));
  if (state.state === 'running') {
    if (!row.cancel_requested_at && !(await cancelAbandoned(row, ctx))) return settled({}, recheckMs(row));
    await engine.stop(row, ctx);
    return settled({}, STOPPING_MS);
  }
  const result = resultOf(row, state, ctx);
  const { exit_code = null } = result;
  if (row.exit_code === null && exit_code !== null) await ctx.record({ exit_code });
  if (!(await engine.shipLastLines(row, ctx))) return progressing(0);
  return ended(row, await blameLineEnds(row, result, ctx), state.at);
}

/** A cluster that is away runs on what it has: nothing is given up because of it. */
async function inspect(engine: RunEngine, row: RunRow, ctx: JobContext): Promise<TaskState | null | 'unknown'> {
  try {
    return await engine.inspect(row, ctx);
  } catch (error) {
    if (!(error instanceof DriverError) || error.reason !== 'transient' || row.status !== 'running') throw error;
    ctx.log.warn({ err: error, run: row.id }, 'the state of a run could not be read; it is tried again');
    return 'unknown';
  }
}

function runningOf({ cancel_requested_at, status_reason }: RunRow, { started_at }: StartedState): Values {
  return {
    status: 'running',
    ...(started_at !== null && { started_at }),
    // Of what it waited for.
    ...(cancel_requested_at === null && status_reason && { status_reason: null }),
  };
}

/** Of a cluster: for room, or for the image. */
async function waitForStart(row: RunRow, state: Waiting, engine: RunEngine, ctx: JobContext): Promise<Outcome> {
  const waitedMs = Date.now() - Date.parse(row.started_at ?? new Date().toISOString());
  const { reason, is_final } = state;
  const withinMs = reason === null ? SILENT_START_WITHIN_MS : START_WITHIN_MS;
  if (!row.cancel_requested_at && !is_final && waitedMs <= withinMs) {
    if (row.status !== 'starting') await ctx.record({ status: 'starting' });
    return settled(reason === row.status_reason ? {} : { status_reason: reason }, RECHECK_MS.first);
  }
  await engine.destroy(row, ctx);
  if (row.cancel_requested_at) return ended(row, canceled(row));
  return ended(row, { status: 'failed', status_reason: reason ?? UNSTARTED });
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

async function start(row: RunRow, engine: RunEngine, ctx: JobContext): Promise<Outcome> {
  if (row.cancel_requested_at) return ended(row, canceled(row));
  try {
    // Of the last attempt: a cluster that was away has not had the time to start it.
    await ctx.record({ status: 'starting', started_at: new Date().toISOString() });
    await engine.start(row, ctx);
  } catch (error) {
    if (!(error instanceof DriverError) || error.reason === 'transient') throw error;
    return ended(row, { status: 'failed', status_reason: toSentence(error.message) });
  }
  return progressing(0);
}

function canceled({ status_reason }: RunRow): RunResult {
  return { status: 'canceled', status_reason: status_reason ?? null };
}

/** There is no trace of a command that ran, for instance after the disk of the host was replaced. */
function lost(row: RunRow, { lost: status_reason }: RunEngine): Outcome {
  return ended(row, { status: row.cancel_requested_at ? 'canceled' : 'failed', status_reason });
}

function ended(row: RunRow, result: RunResult, at = new Date().toISOString()): Outcome {
  const end = { exit_code: null, signal: null, exceeded_limit: null, ...result };
  return settled({ ...end, finished_at: at, variables: null }, SOON_MS);
}

/** Removes what a finished run left, once nobody attaches to it any more. */
async function cleanUp(row: RunRow, ctx: JobContext): Promise<Outcome> {
  const finished_at = row.finished_at ?? new Date().toISOString();
  const columns = { finished_at, variables: null };
  try {
    const engine = await engineOf(row, ctx);
    const left = Date.parse(finished_at) + REPLAY_MS - Date.now();
    if (left > 0 && isReplayed(row) && (await engine.inspect(row, ctx))?.state === 'exited')
      return settled(columns, Math.min(left, REPLAY_MS));
    if (!(await engine.destroy(row, ctx))) return settled(columns, STOPPING_MS);
  } catch (error) {
    // A failure of this must not become that of the run.
    if (!(error instanceof DriverError)) throw error;
    ctx.log.warn({ err: error, run: row.id }, 'what a run left could not be removed; it is tried again');
    return settled(columns, UNREACHABLE_MS);
  }
  await pruneAfterRun(row, ctx);
  return settled(columns);
}

/** Nothing of a canceled deployment stays. */
function isReplayed({ trigger_type, status }: RunRow): boolean {
  return trigger_type !== 'release' || status !== 'canceled';
}

async function tearDown(row: RunRow, ctx: JobContext): Promise<Outcome> {
  return (await (await engineOf(row, ctx)).destroy(row, ctx)) ? gone : progressing(STOPPING_MS);
}
