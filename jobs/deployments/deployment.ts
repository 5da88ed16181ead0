// Deployments: a version of the source is built, released, and put into service beside the one before, which serves
// until the new one is healthy. Each step is short, or stops early when the deployment is canceled; after a crash, the
// row and the units of the runtime show the progress.
import { toSentence } from '../../core/sentence';
import { BuildError } from '../../drivers/builder';
import { DriverError } from '../../core/driver';
import { SourceError } from '../../drivers/source';
import { beginDeployment } from '../../models/deployments/deployment_work';
import { Deployment } from '../../models/deployments/deployment';
import { releaseAllLeases } from '../../db/lease';
import { artifactLeftovers } from '../applications/application/leftovers';
import { buildDeployment } from './deployment/build';
import { deployRelease } from './deployment/deploy';
import { cleanUpFailed, pruneOlderVersions, tearDownDeployment } from './deployment/cleanup';
import { imageLeftovers } from './deployment/release_image';
import { DeploymentFailure, appendDeploymentLog, type DeploymentRow } from './deployment/row';
import { failed, progressing, settled, type Job, type JobContext, type Outcome } from '../job';

const MINUTE_MS = 60_000;
/** Queued deployments are woken when others end; this interval covers lost notifications. */
const WAIT_MS = 15_000;
const CLEAR_AWAY_MS = 1_000;

const phases: Record<DeploymentRow['status'], (row: DeploymentRow, ctx: JobContext) => Promise<Outcome>> = {
  queued: begin,
  building: (row, ctx) => failOnError(row, ctx, buildDeployment),
  deploying: (row, ctx) => failOnError(row, ctx, deployRelease),
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
  const to = row.trigger === 'rollback' || row.source.type === 'image' ? 'deploying' : 'building';
  const turn = await beginDeployment(ctx.sql, row, to, ctx.config.buildConcurrency);
  return turn === 'begun' ? progressing(0) : settled({}, WAIT_MS);
}

async function failOnError(
  row: DeploymentRow,
  ctx: JobContext,
  phase: (row: DeploymentRow, ctx: JobContext) => Promise<Outcome>,
): Promise<Outcome> {
  try {
    return await phase(row, ctx);
  } catch (error) {
    const reason = failureReason(error);
    if (reason === null || ctx.signal.aborted) throw error;
    await appendDeploymentLog(row, ctx, row.status === 'building' ? 'build' : 'deploy', reason, 'error');
    return failed(reason, { finished_at: new Date().toISOString() }, 0);
  }
}

/** Why the deployment can't go on, for users; null for retryable errors and for bugs of the platform. */
function failureReason(error: unknown): string | null {
  if (error instanceof DeploymentFailure || error instanceof BuildError || error instanceof SourceError)
    return error.message;
  if (!(error instanceof DriverError) || !FINAL.has(error.reason)) return null;
  return `The host cannot run the deployment. ${toSentence(error.message)}`;
}

const FINAL: ReadonlySet<string> = new Set(['invalid', 'unsupported', 'conflict', 'capacity']);
