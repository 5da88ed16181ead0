// The instances of the new version: they are added beside those in service, and must become healthy.
import { EngineAway } from '../../../core/driver';
import { lineEndHint } from '../../../drivers/builder/line_ends';
import { hasVersionInService } from '../../../models/deployments/deployment_work';
import { findLastOutput } from '../../../models/applications/log_line/last_output';
import { appendLogLines } from '../../../models/applications/log_line';
import {
  addInstances,
  desiredOfRelease,
  presentInstances,
  presentWorkloads,
  type DesiredProcess,
  type PresentInstance,
} from '../../../models/applications/stack';
import { ensureWorkload } from '../../../models/applications/workload';
import { WEB } from '../../applications/instance/row';
import { awayMessage } from '../../failure_policy';
import { progressing, requireHost, type JobContext, type Outcome } from '../../job';
import { StepFailure, type StepContext } from '../../workflow';
import { artifactDirectory, requireReleaseId, type DeploymentRow, type Progress } from './row';

/** Changes of instances wake the deployment; this interval covers lost notifications. */
const RECHECK_MS = 1_000;
/** An instance that has ended this often is not going to stay. */
const EXITS_MAX = 2;
const LINES_MAX = 20;

export async function startInstances(row: DeploymentRow, ctx: StepContext): Promise<Outcome | 'done'> {
  const desired = await desiredOfRelease(ctx.sql, requireReleaseId(row), row.preview_id);
  const candidates = (await presentInstances(ctx.sql, row)).filter(
    ({ release_id, status }) => release_id === row.release_id && status !== 'stopping',
  );
  if (await addMissingInstances(row, desired, candidates, ctx)) return progressing(RECHECK_MS);
  await requireStartable(row, ctx);
  await requireHealthy(row, candidates, ctx);
  if (!isIncomplete(desired, candidates)) return 'done';
  const observed = await warnOfWaiting(row, candidates, ctx);
  return progressing(RECHECK_MS, observed === null ? {} : { observed });
}

/** In a cluster, rows of instances come after their pods. */
function isIncomplete(desired: readonly DesiredProcess[], candidates: readonly PresentInstance[]): boolean {
  const running = candidates.filter(({ status }) => status === 'running').length;
  return running < candidates.length || running < desired.reduce((sum, { instances }) => sum + instances, 0);
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

/** @throws StepFailure where one of the instances is not going to serve; its last output is in the log then */
async function requireHealthy(row: DeploymentRow, candidates: PresentInstance[], ctx: StepContext): Promise<void> {
  const lost = candidates.find(
    ({ status, exits, observed }) => status === 'crashed' || exits >= EXITS_MAX || observed?.fault !== undefined,
  );
  if (!lost) return;
  const output = await copyLastOutput(row, lost, ctx);
  const said = lost.status_reason ?? 'The instance ends each time that it is started.';
  // Of a pod the reason says how it ended, and not what it printed.
  const places = [row.plan?.root_directory ?? '.'];
  const texts = [row.plan?.processes[lost.process_type] ?? '', ...output];
  const isFromPod = requireHost(ctx).workloads !== null;
  const reason = isFromPod ? `${said}${await lineEndHint(artifactDirectory(row, ctx), places, texts)}` : said;
  const consequence = (await hasVersionInService(ctx.sql, row)) ? ', so the previous version stays in service' : '';
  throw new StepFailure(`The new version does not stay up${consequence}. Process type ${lost.process_type}: ${reason}`);
}

/**
 * A cluster says by its workloads what it does not start.
 * @throws StepFailure
 */
async function requireStartable(row: DeploymentRow, ctx: StepContext): Promise<void> {
  if (!requireHost(ctx).workloads) return;
  const workloads = await presentWorkloads(ctx.sql, row);
  const refused = workloads.find(({ release_id, obstacle }) => release_id === row.release_id && obstacle !== null);
  const away = awayMessage(refused?.obstacle ?? '');
  if (away !== null) throw new EngineAway(away);
  if (refused) throw new StepFailure(`Process type ${refused.process_type}: ${refused.obstacle}`);
}

/** Logs once how to fix an instance that is not healthy yet: its health check may have a minute left. */
async function warnOfWaiting(
  row: DeploymentRow,
  candidates: PresentInstance[],
  ctx: StepContext,
): Promise<Progress | null> {
  const waiting = candidates.find(({ status, status_reason }) => status === 'starting' && status_reason !== null);
  const reason = waiting?.status_reason ?? null;
  if (waiting === undefined || reason === null || row.observed?.warning === reason) return null;
  await ctx.appendLog(`Process type ${waiting.process_type}: ${reason}`, 'warning');
  return { ...row.observed, warning: reason };
}

async function copyLastOutput(row: DeploymentRow, lost: PresentInstance, ctx: StepContext): Promise<string[]> {
  const { project_id, application_id, preview_id } = row;
  const lines = await findLastOutput(ctx.sql, preview_id ?? application_id, lost.id, LINES_MAX);
  if (lines.length === 0) return [];
  await ctx.appendLog(`-----> Last output of the process type ${lost.process_type}`);
  const place = { project_id, application_id, preview_id, deployment_id: row.id, step: 'deploy' as const };
  await appendLogLines(
    ctx.sql,
    lines.map((line) => ({ ...place, ...line, source: 'app' as const, process_type: lost.process_type })),
  );
  return lines.map(({ message }) => message);
}
