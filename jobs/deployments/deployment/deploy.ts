// deploying: a release is made, its command runs, its instances come up beside the old ones, and requests are switched.
import { stat } from 'node:fs/promises';
import type { Sql } from '../../../core/context';
import { DriverError } from '../../../core/driver';
import {
  activate,
  hasVersionInService,
  saveRelease,
  wakeStackAndQueue,
} from '../../../models/deployments/deployment_work';
import { createRelease } from '../../../models/deployments/release';
import {
  addInstances,
  presentInstances,
  desiredOfRelease,
  type PresentInstance,
  type DesiredProcess,
} from '../../../models/applications/stack';
import { ensureWorkload } from '../../../models/applications/workload';
import { LeaseLost, progressing, requireHost, settled, type JobContext, type Outcome } from '../../job';
import { publishRoutesBeforeCommit, publishRoutes } from '../../applications/application/reconcile_stack';
import { hasVolumeOfMachine } from '../../applications/instance/mounts';
import { WEB } from '../../applications/instance/row';
import { DeploymentFailure, artifactDirectory, appendDeploymentLog, requireTimeLeft, type DeploymentRow } from './row';
import { pullSource } from './image';
import { runReleaseCommand } from './release_command';
import { publishRelease, wantsImage } from './release_image';
import { requireHealthy, requireStartable, warnOfWaiting } from './unhealthy';

/** Changes of instances wake the deployment; this interval covers lost notifications. */
const RECHECK_MS = 1_000;

export async function deployRelease(row: DeploymentRow, ctx: JobContext): Promise<Outcome> {
  const isReleasing = row.observed?.releasing && !row.observed.released;
  // If a running command takes too long, its task reports the time-out with more detail.
  if (!isReleasing) requireTimeLeft(row, ctx);
  if (row.plan === null && row.source.type === 'image') return pullSource(row, ctx);
  if (row.release_id === null) return progressing(0, { release_id: await makeRelease(row, ctx) });
  if (!row.observed?.released && wantsImage(row, ctx)) return publishRelease(row, row.release_id, ctx);
  if (!row.observed?.released) return runReleaseCommand(row, row.release_id, ctx);
  const desired = await desiredOfRelease(ctx.sql, row.release_id, row.preview_id);
  const candidates = (await presentInstances(ctx.sql, row)).filter(
    ({ release_id, status }) => release_id === row.release_id && status !== 'stopping',
  );
  if (await addMissingInstances(row, desired, candidates, ctx)) return progressing(RECHECK_MS);
  await requireStartable(row, ctx);
  await requireHealthy(row, candidates, ctx);
  if (isIncomplete(desired, candidates)) {
    const observed = await warnOfWaiting(row, candidates, ctx);
    return progressing(RECHECK_MS, observed === null ? {} : { observed });
  }
  return activateRelease(row, row.release_id, ctx);
}

/** In a cluster, rows of instances come after their pods. */
function isIncomplete(desired: readonly DesiredProcess[], candidates: readonly PresentInstance[]): boolean {
  const running = candidates.filter(({ status }) => status === 'running').length;
  return running < candidates.length || running < desired.reduce((sum, { instances }) => sum + instances, 0);
}

async function makeRelease(row: DeploymentRow, ctx: JobContext): Promise<string> {
  if (!(await stat(artifactDirectory(row, ctx)).catch(() => null)))
    throw new DeploymentFailure('The build of this version is no longer kept. Deploy its commit again.');
  const { application_id, preview_id } = row;
  return ctx.sql.transaction(async (session) => {
    const id = await createRelease(session, ctx.secrets, { application_id, preview_id, deployment_id: row.id });
    const onCluster = await runsOnCluster(row, { ...ctx, sql: session });
    if (!(await saveRelease(session, row, { id, onCluster }))) throw new LeaseLost();
    return id;
  });
}

/** Beside a cluster, what has volumes on this machine goes on here. */
async function runsOnCluster(row: DeploymentRow, ctx: JobContext): Promise<boolean> {
  if (ctx.config.workloads !== 'kubernetes') return false;
  if (!(await hasVolumeOfMachine(ctx.sql, row))) return true;
  const text =
    'The application stays on the machine of the platform, where its volume is. It moves to the cluster with the ' +
    'first deployment after the volume has been detached.';
  await appendDeploymentLog(row, ctx, 'deploy', text, 'warning');
  return false;
}

async function addMissingInstances(
  row: DeploymentRow,
  wants: DesiredProcess[],
  candidates: PresentInstance[],
  ctx: JobContext,
): Promise<boolean> {
  if (row.on_cluster && requireHost(ctx).workloads) return ensureWorkloads(row, wants, ctx);
  let added = 0;
  for (const want of wants) {
    const present = candidates.filter(({ process_id }) => process_id === want.process_id);
    const missing = ((await isPioneer(row, want, present, ctx)) ? 1 : want.instances) - present.length;
    if (missing > 0) await addInstances(ctx.sql, row, want, missing);
    added += Math.max(0, missing);
  }
  return added > 0;
}

async function ensureWorkloads(row: DeploymentRow, wants: DesiredProcess[], ctx: JobContext): Promise<boolean> {
  let changed = false;
  for (const want of wants)
    if (want.instances > 0) changed = (await ensureWorkload(ctx.sql, row, want, want.instances)) || changed;
  return changed;
}

/**
 * In the first version of an application a single instance starts first: if its program ignores PORT, that instance
 * reveals the port (docs/decisions/0175); until the port is known, two instances would conflict.
 */
async function isPioneer(
  row: DeploymentRow,
  { type, instances }: DesiredProcess,
  present: PresentInstance[],
  ctx: JobContext,
): Promise<boolean> {
  if (type !== WEB || instances < 2 || !requireHost(ctx).runtime.exposesPorts) return false;
  return !present.some(({ status }) => status === 'running') && !(await hasVersionInService(ctx.sql, row));
}

async function activateRelease(row: DeploymentRow, releaseId: string, ctx: JobContext): Promise<Outcome> {
  let ended = (): void => undefined;
  const publish = async (sql: Sql): Promise<void> => {
    ended = await publishRoutesBeforeCommit(row.application_id, ctx, sql);
  };
  const switched = await activate(ctx.sql, row, releaseId, publish).finally(() => ended());
  if (!switched) throw new DriverError('transient', 'The deployment was changed while it was activated.');
  await publishRoutes(row.application_id, ctx);
  await appendDeploymentLog(row, ctx, 'deploy', `Deployment ${row.number} is active.`);
  await wakeStackAndQueue(ctx.sql, row);
  ctx.log.info({ application: row.application_id }, 'deployed');
  // One more step, to prune old releases and artifacts.
  return settled({ observed: null }, 0);
}
