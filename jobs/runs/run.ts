// Runs: a command is started once, on the host or a cluster (run/runner.ts), observed until it has ended, and found
// again after a crash. run/steps.ts lists what happens.
import { DriverError } from '../../core/driver';
import { toSentence } from '../../core/sentence';
import { releaseAllLeases } from '../../db/lease';
import { Run } from '../../models/runs/run';
import { runsWithoutRow } from '../../models/runs/run/job_queries';
import { allAtOnce, type Leftovers } from '../declarations';
import { gone, progressing, settled, type Job, type JobContext, type Outcome } from '../job';
import { runWorkflow, type Workflow } from '../workflow';
import { endRun } from './run/end';
import { runnerOf } from './run/runner';
import { isFinished, type RunRow } from './run/row';
import { steps } from './run/steps';

const STOPPING_MS = 1_000;
const SOON_MS = 1_000;
const UNREACHABLE_MS = 3_000;

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
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : runWorkflow(workflow, row, ctx)),
};

const workflow: Workflow<RunRow> = {
  steps,
  finalReason: (error) =>
    error instanceof DriverError && error.reason !== 'transient' ? toSentence(error.message) : null,
  // What was left behind must not become a failure of the run.
  fail: (status_reason, row) =>
    isFinished(row) ? settled({}, UNREACHABLE_MS) : endRun(row, { status: 'failed', status_reason }),
};

async function tearDown(row: RunRow, ctx: JobContext): Promise<Outcome> {
  return (await (await runnerOf(row, ctx)).destroy(row, ctx)) ? gone : progressing(STOPPING_MS);
}
