// The end of a run: its output is stored, and how it ended.
import { progressing, settled, type JobContext, type Outcome } from '../../job';
import { runnerOf, inspectRun, type Runner } from './runner';
import { blameLineEnds, resultOf, type RunResult } from './result';
import type { RunRow } from './row';
import { blameInstance } from './within';

const SOON_MS = 1_000;
const UNREACHABLE_MS = 3_000;

export async function storeOutput(row: RunRow, ctx: JobContext): Promise<Outcome> {
  const runner = await runnerOf(row, ctx);
  const state = await inspectRun(runner, row, ctx);
  if (state === 'unknown') return settled({}, UNREACHABLE_MS);
  if (state?.state !== 'exited') return lostRun(row, runner);
  if (!(await runner.shipLastLines(row, ctx))) return progressing(0);
  const result = await blameLineEnds(row, resultOf(row, state, ctx), ctx);
  return endRun(row, await blameInstance(row, result, ctx), state.at);
}

/** There is no trace of a command that ran, for instance after the disk of the host was replaced. */
export function lostRun(row: RunRow, { lost: status_reason }: Runner): Outcome {
  return endRun(row, { status: row.cancel_requested_at ? 'canceled' : 'failed', status_reason });
}

export function canceledResult({ status_reason }: RunRow): RunResult {
  return { status: 'canceled', status_reason: status_reason ?? null };
}

export function endRun(row: RunRow, result: RunResult, at = new Date().toISOString()): Outcome {
  const end = { exit_code: null, signal: null, exceeded_limit: null, ...result };
  return settled({ ...end, finished_at: at, variables: null }, SOON_MS);
}
