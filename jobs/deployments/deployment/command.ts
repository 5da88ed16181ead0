// The release command of a deployment: a run that the deployment creates once, waits for, and cancels with itself.
import { FAILURE_LINES_MAX } from '../../../core/log/failure_excerpt';
import { readCommandFailure } from '../../../drivers/builder/command_failure';
import { loadReleaseCommand, type ReleaseCommand } from '../../../models/deployments/release_command';
import {
  cancelReleaseRun,
  findReleaseRun,
  lastReleaseOutput,
  queueReleaseRun,
  type ReleaseRun,
} from '../../../models/runs/run/release_run';
import { progressing, requireHost, type JobContext, type Outcome } from '../../job';
import { StepFailure, type StepContext } from '../../workflow';
import { appendDeploymentLog, requireReleaseId, taskUnitId, timeLeftMs, type DeploymentRow } from './row';
import {
  describeTaskFailure,
  removeTask,
  runDeploymentTask,
  taskHider,
  withConsequence,
  withLineEndHint,
  type Ended,
} from './task';

/** The end of a run wakes its deployment; this interval covers lost notifications. */
const RECHECK_MS = 1_000;
/** The run ends itself when the time of its deployment is over: so much later it is not going to. */
const OVERDUE_MS = 30_000;
const UNFINISHED: ReadonlySet<string> = new Set(['queued', 'starting', 'running']);

export async function runReleaseCommand(row: DeploymentRow, ctx: StepContext): Promise<Outcome> {
  const releaseId = requireReleaseId(row);
  const found = await loadReleaseCommand(ctx.sql, ctx.secrets, releaseId, row.plan?.release_command ?? null);
  if (!found) return released(row, ctx);
  if (await hasUnitOfDeployment(row, ctx)) return waitForUnit(row, found, ctx);
  const run = await findReleaseRun(ctx.sql, row.id);
  if (!run) return queue(row, releaseId, found, ctx);
  if (UNFINISHED.has(run.status) && timeLeftMs(row, ctx) > -OVERDUE_MS) return progressing(RECHECK_MS);
  if (run.status === 'succeeded') return released(row, ctx);
  throw new StepFailure(await withConsequence(row, await failureReason(row, run, found, ctx), ctx));
}

/** Cancels the release command of a deployment that ended or is deleted. Whether it has to end yet. */
export async function stopReleaseCommand(row: DeploymentRow, ctx: JobContext): Promise<boolean> {
  await removeTask(row, 'release', ctx);
  const end = row.deleted_at ? 'was deleted' : row.status === 'canceled' ? 'was canceled' : 'failed';
  return cancelReleaseRun(ctx.sql, row.id, `Canceled because its deployment ${end}.`);
}

async function queue(
  row: DeploymentRow,
  release_id: string,
  { command, process_type }: ReleaseCommand,
  ctx: StepContext,
): Promise<Outcome> {
  const timeout_seconds = Math.ceil(ctx.requireTimeLeft() / 1000);
  const deployment = { id: row.id, fence: row.fence, release_id };
  await ctx.sql.transaction(async (sql) => {
    if (await queueReleaseRun(sql, { deployment, command, process_type, timeout_seconds }))
      await appendDeploymentLog(row, { ...ctx, sql }, 'release', '-----> Running the release command');
  });
  return progressing(RECHECK_MS);
}

async function released(row: DeploymentRow, ctx: StepContext): Promise<Outcome> {
  const observed = { ...row.observed, released: true };
  await ctx.record({ observed });
  await ctx.appendLog('-----> Starting the new version');
  return progressing(0, { observed });
}

async function failureReason(
  row: DeploymentRow,
  run: ReleaseRun,
  { command, variables }: ReleaseCommand,
  ctx: JobContext,
): Promise<string> {
  const failure = readCommandFailure('The release command', command, taskHider(row, variables, ctx));
  if (run.status === 'canceled') return `${failure.subject()} was ${uncapitalize(run.status_reason ?? 'Canceled.')}`;
  const end = endOf(run);
  if (end === null) return `The host cannot run the release command. ${run.status_reason ?? ''}`.trimEnd();
  (await lastReleaseOutput(ctx.sql, row.id, FAILURE_LINES_MAX)).forEach((line) => failure.add(line));
  return withLineEndHint(row, describeTaskFailure('release', end, failure, ctx), ctx);
}

/** null where it was not started, or nobody knows. */
function endOf({ status, exit_code, signal, exceeded_limit: killed }: ReleaseRun): Ended | null {
  if (UNFINISHED.has(status)) return { code: null, signal: null, killed: 'time' };
  if (exit_code === null && signal === null && killed === null) return null;
  return { code: signal === null ? exit_code : null, signal, killed };
}

function uncapitalize(text: string): string {
  return `${text.charAt(0).toLowerCase()}${text.slice(1)}`;
}

/** Before release commands were runs, their units had the id of the deployment: one that was started goes on. */
async function hasUnitOfDeployment(row: DeploymentRow, ctx: JobContext): Promise<boolean> {
  return (await requireHost(ctx).runtime.find(taskUnitId(row, 'release'))) !== null;
}

async function waitForUnit(
  row: DeploymentRow,
  { command, variables }: ReleaseCommand,
  ctx: StepContext,
): Promise<Outcome> {
  const end = await runDeploymentTask(
    row,
    {
      step: 'release',
      variables: async () => variables,
      failure: (hide) => readCommandFailure('The release command', command, hide),
      spec: () => Promise.reject(new Error('the unit was started before')),
    },
    ctx,
  );
  if (end === 'running') return progressing(RECHECK_MS);
  const outcome = await released(row, ctx);
  await removeTask(row, 'release', ctx);
  return outcome;
}
