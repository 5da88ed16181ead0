// A command that runs: until it has ended, or is ended.
import { INSTANCE_ENDED } from '../../../models/runs/run/entered';
import { isAbandoned } from '../../../models/runs/run/writer';
import { settled, type JobContext, type Outcome } from '../../job';
import { lostRun } from './end';
import { runnerOf, inspectRun } from './runner';
import { resultOf } from './result';
import type { RunRow } from './row';
import { waitForStart } from './start';
import { hasInstanceEnded, isEntering } from './within';

/** The end of a unit wakes its row; these intervals cover lost notifications, of a short command sooner. */
const RECHECK_MS = { first: 1_000, later: 10_000 };
const YOUNG_MS = 60_000;
const STOPPING_MS = 1_000;
const UNREACHABLE_MS = 3_000;
const ABANDONED_SECONDS = 60;

export async function waitForExit(row: RunRow, ctx: JobContext): Promise<Outcome | 'done'> {
  const runner = await runnerOf(row, ctx);
  const state = await inspectRun(runner, row, ctx);
  if (state === 'unknown') return settled({}, UNREACHABLE_MS);
  if (!state) return lostRun(row, runner);
  if (state.state === 'waiting') return waitForStart(row, state, runner, ctx);
  if (state.state === 'running') {
    const isToEnd = row.cancel_requested_at || (await cancelAbandoned(row, ctx)) || (await endWithInstance(row, ctx));
    if (!isToEnd) return settled({}, recheckMs(row));
    await runner.stop(row, ctx);
    return settled({}, STOPPING_MS);
  }
  const { exit_code = null } = resultOf(row, state, ctx);
  if (exit_code !== null) await ctx.record({ exit_code });
  return 'done';
}

/** Without namespaces, the end of the instance leaves the command. */
async function endWithInstance(row: RunRow, ctx: JobContext): Promise<boolean> {
  if (!isEntering(row) || !(await hasInstanceEnded(row, ctx))) return false;
  await ctx.record({ cancel_requested_at: new Date().toISOString(), status_reason: INSTANCE_ENDED });
  return true;
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
