// Deployments: a version of the source is built, released, and put into service beside the one before, which serves
// until the new one is healthy. deployment/steps.ts lists what happens; after a crash, the row and the units of the
// runtime show the progress.
import { BuildError } from '../../drivers/builder';
import { ImageError } from '../../drivers/image';
import { ReleaseImageError } from '../../drivers/release_image/failure';
import { SourceError } from '../../drivers/source';
import { beginDeployment, isCanceled, wakeStackAndQueue } from '../../models/deployments/deployment_work';
import { copiesOfPreview } from '../../models/deployments/preview_databases';
import { Deployment } from '../../models/deployments/deployment';
import { releaseAllLeases } from '../../db/lease';
import { artifactLeftovers } from '../applications/application/leftovers';
import { cleanUpFailed, pruneOlderVersions, tearDownDeployment } from './deployment/cleanup';
import { beginAgain, hasLostFiles, LOST } from './deployment/lost_files';
import { imageLeftovers } from './deployment/publish';
import {
  appendDeploymentLog,
  beginWait,
  endWait,
  formatDuration,
  recordStep,
  timeLeftMs,
  type DeploymentRow,
} from './deployment/row';
import { steps, type DeploymentStep } from './deployment/steps';
import { removeTask } from './deployment/task';
import { failed, progressing, settled, type Job, type JobContext, type Outcome } from '../job';
import { runWorkflow, type StepContext, type Workflow } from '../workflow';

const MINUTE_MS = 60_000;
/** Queued deployments are woken when others end; this interval covers lost notifications. */
const WAIT_MS = 15_000;
const CLEAR_AWAY_MS = 1_000;

const phases: Record<DeploymentRow['status'], (row: DeploymentRow, ctx: JobContext) => Promise<Outcome>> = {
  queued: begin,
  building: advance,
  deploying: advance,
  active: pruneOlderVersions,
  superseded: pruneOlderVersions,
  failed: cleanUpFailed,
  canceled: cleanUpFailed,
};

export const job: Job<DeploymentRow> = {
  table: Deployment.table,
  // `.build` and `.release`.
  units: { prefixes: ['dep'], column: 'id' },
  leftovers: [artifactLeftovers, imageLeftovers],
  host: true,
  prepare: (sql) => releaseAllLeases(sql, Deployment.table),
  states: Deployment.states,
  // A large repository is fetched in one step, within the time of the deployment; a silent one is given up earlier.
  stepMs: 6 * 60 * MINUTE_MS,
  deadlineMs: 30 * MINUTE_MS,
  watchFailedMs: CLEAR_AWAY_MS,
  reconcile: (row, ctx) => (row.deleted_at ? tearDownDeployment(row, ctx) : phases[row.status](row, ctx)),
};

async function begin(row: DeploymentRow, ctx: JobContext): Promise<Outcome> {
  const copies = await copiesOfPreview(ctx.sql, row.preview_id);
  if (copies?.state === 'waiting') return settled({}, WAIT_MS);
  if (copies?.state === 'failed') return failedWith(copies.reason ?? 'A database of the preview could not be made.');
  const isBuilt = row.trigger === 'rollback' || Boolean(row.promoted_from);
  const to = isBuilt || row.source.type === 'image' ? 'deploying' : 'building';
  const turn = await beginDeployment(ctx.sql, row, to, ctx.config.buildConcurrency);
  if (turn !== 'begun') return settled({}, WAIT_MS);
  for (const { level, text } of copies?.notes ?? [])
    await appendDeploymentLog(row, ctx, to === 'building' ? 'build' : 'deploy', text, level);
  return progressing(0);
}

function advance(row: DeploymentRow, ctx: JobContext): Promise<Outcome> {
  return runWorkflow(workflow, row, ctx);
}

const workflow: Workflow<DeploymentRow, DeploymentStep> = {
  steps,
  time: {
    leftMs: timeLeftMs,
    overReason: ({ config }) =>
      `The deployment did not finish within ${formatDuration(config.buildTimeoutSeconds)}, so it was stopped.`,
  },
  wait: { begin: beginWait, end: endWait },
  retryAdvice: 'Deploy again later.',
  isCanceled: ({ id }, { sql }) => isCanceled(sql, id),
  enter: enterStep,
  appendLog: (row, { status }, message, level, ctx) =>
    appendDeploymentLog(row, ctx, status === 'building' ? 'build' : 'deploy', message, level),
  finalReason: (error) => (FINAL_ERRORS.some((type) => error instanceof type) ? (error as Error).message : null),
  fail: failedWith,
};

function failedWith(reason: string): Outcome {
  return failed(reason, { finished_at: new Date().toISOString() }, 0);
}

/** Errors whose message says all of it. */
const FINAL_ERRORS = [BuildError, SourceError, ImageError, ReleaseImageError];

async function enterStep(
  { name, status, needsFiles }: DeploymentStep,
  row: DeploymentRow,
  ctx: StepContext,
): Promise<Outcome | null> {
  if (needsFiles && hasLostFiles(row, ctx)) {
    await ctx.appendLog(LOST, 'warning');
    return beginAgain();
  }
  if (status !== row.status) return leaveBuild(row, ctx);
  await recordStep(row, name, ctx);
  return null;
}

/** Others may build in its place. */
async function leaveBuild(row: DeploymentRow, ctx: JobContext): Promise<Outcome> {
  await removeTask(row, 'build', ctx);
  await wakeStackAndQueue(ctx.sql, row);
  return progressing(0, { status: 'deploying' });
}
