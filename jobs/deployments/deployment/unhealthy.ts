// Messages in the log of a deployment about instances that do not become healthy.
import { lineEndHint } from '../../../drivers/builder/line_ends';
import { hasVersionInService } from '../../../models/deployments/deployment_work';
import { findLastOutput } from '../../../models/applications/log_line/last_output';
import { appendLogLines } from '../../../models/applications/log_line';
import { presentWorkloads, type PresentInstance } from '../../../models/applications/stack';
import { requireHost, type JobContext } from '../../job';
import { appendDeploymentLog, artifactDirectory, DeploymentFailure, type DeploymentRow, type Progress } from './row';

/** An instance that has ended this often is not going to stay. */
const EXITS_MAX = 2;
const LINES_MAX = 20;

/** @throws DeploymentFailure where one of the instances is not going to serve; its last output is in the log then */
export async function requireHealthy(
  row: DeploymentRow,
  candidates: PresentInstance[],
  ctx: JobContext,
): Promise<void> {
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
  throw new DeploymentFailure(
    `The new version does not stay up${consequence}. Process type ${lost.process_type}: ${reason}`,
  );
}

/**
 * A cluster says by its workloads what it does not start.
 * @throws DeploymentFailure
 */
export async function requireStartable(row: DeploymentRow, ctx: JobContext): Promise<void> {
  if (!requireHost(ctx).workloads) return;
  const workloads = await presentWorkloads(ctx.sql, row);
  const refused = workloads.find(({ release_id, obstacle }) => release_id === row.release_id && obstacle !== null);
  if (refused) throw new DeploymentFailure(`Process type ${refused.process_type}: ${refused.obstacle}`);
}

/** Logs once how to fix an instance that is not healthy yet: its health check may have a minute left. */
export async function warnOfWaiting(
  row: DeploymentRow,
  candidates: PresentInstance[],
  ctx: JobContext,
): Promise<Progress | null> {
  const waiting = candidates.find(({ status, status_reason }) => status === 'starting' && status_reason !== null);
  const reason = waiting?.status_reason ?? null;
  if (waiting === undefined || reason === null || row.observed?.warning === reason) return null;
  await appendDeploymentLog(row, ctx, 'deploy', `Process type ${waiting.process_type}: ${reason}`, 'warning');
  return { ...row.observed, warning: reason };
}

async function copyLastOutput(row: DeploymentRow, lost: PresentInstance, ctx: JobContext): Promise<string[]> {
  const { project_id, application_id, preview_id } = row;
  const lines = await findLastOutput(ctx.sql, preview_id ?? application_id, lost.id, LINES_MAX);
  if (lines.length === 0) return [];
  await appendDeploymentLog(row, ctx, 'deploy', `-----> Last output of the process type ${lost.process_type}`);
  const place = { project_id, application_id, preview_id, deployment_id: row.id, step: 'deploy' as const };
  await appendLogLines(
    ctx.sql,
    lines.map((line) => ({ ...place, ...line, source: 'app' as const, process_type: lost.process_type })),
  );
  return lines.map(({ message }) => message);
}
