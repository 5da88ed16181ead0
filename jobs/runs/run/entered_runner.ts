// Runs within an instance of a cluster: their life is the connection of their client, in the process that serves it
// (server/runs/entered.ts). What that says of them is read here.
import type { TaskState } from '../../../drivers/workload/task';
import type { EnteredState } from '../../../models/runs/run/entered';
import { isAbandoned } from '../../../models/runs/run/writer';
import type { JobContext } from '../../job';
import type { Runner } from './runner';
import type { RunRow } from './row';

/** Without a client. */
const BEGINS_WITHIN_MS = 60_000;
/** After the right of the client has ended, whose process did not renew it. */
const LOST_SECONDS = 20;
const UNATTACHED = 'No client has attached to it within a minute: a command in an instance begins with its client.';
const LOST = 'The process that served its client has ended, and the command with it.';

export const enteredRunner: Runner = {
  lost: LOST,
  inspect: stateOf,
  start: () => Promise.resolve(),
  // The process that serves the client asks whether it is to end.
  stop: () => Promise.resolve(),
  shipLastLines: () => Promise.resolve(true),
  destroy: () => Promise.resolve(true),
};

async function stateOf(row: RunRow, ctx: JobContext): Promise<TaskState | null> {
  const { entered } = (row.observed ?? {}) as { entered?: EnteredState };
  if (!entered) return row.status === 'queued' ? null : waitingOf(row);
  const { started_at, end } = entered;
  if (end) return { state: 'exited', ...end, signal: null, started_at };
  if (!(await isAbandoned(ctx.sql, row.id, LOST_SECONDS))) return { state: 'running', started_at };
  const at = new Date().toISOString();
  return { state: 'exited', code: null, signal: null, killed: null, reason: LOST, started_at, at };
}

function waitingOf({ started_at }: RunRow): TaskState {
  const isLate = Date.now() - Date.parse(started_at ?? new Date().toISOString()) > BEGINS_WITHIN_MS;
  return { state: 'waiting', reason: isLate ? UNATTACHED : null, is_final: isLate };
}
