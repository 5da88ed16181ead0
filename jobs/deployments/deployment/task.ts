// The commands of a deployment, which run as units: the build and the release command. Started once, looked at until
// they have ended, and found again after a crash.
import type { FailureReader } from '../../../drivers/builder/dockerfile/dockerfile_failure';
import { FILES_PER_MB, type LogChunk, type UnitSpec, type UnitState } from '../../../drivers/runtime';
import { hasVersionInService } from '../../../models/deployments/deployment_work';
import { type JobContext, requireHost } from '../../job';
import { shipLastLines } from '../../unit_log';
import {
  DeploymentFailure,
  formatDuration,
  requireTimeLeft,
  taskUnitId,
  abortWhenCanceled,
  type DeploymentRow,
} from './row';

export interface Task {
  step: 'build' | 'release';
  /** As a user calls it: `The build`. */
  name: string;
  spec(): Promise<Omit<UnitSpec, 'id' | 'kind'>>;
  /** Finds in what it printed why it failed. */
  failure?: FailureReader;
}

type Exited = Extract<UnitState, { state: 'exited' }>;

/** @throws DeploymentFailure where the command failed */
export async function runDeploymentTask(
  row: DeploymentRow,
  task: Task,
  ctx: JobContext,
): Promise<'running' | 'succeeded'> {
  const { runtime } = requireHost(ctx);
  const id = taskUnitId(row, task.step);
  const handle = await runtime.find(id);
  if (!handle) {
    const spec = await task.spec();
    await abortWhenCanceled(row, ctx, (inner) => runtime.start({ ...spec, id, kind: 'task' }, inner));
    return 'running';
  }
  const state = await runtime.inspect(handle);
  if (state.state !== 'exited') {
    requireTimeLeft(row, ctx);
    return 'running';
  }
  await shipLastLines(requireHost(ctx), id);
  if (state.code === 0 && state.killed === null) return 'succeeded';
  const printed = state.killed === null && task.failure ? await printedReason(id, task.failure, ctx) : null;
  throw new DeploymentFailure(
    printed ?? `${taskFailureReason(task, state, ctx)} ${await hintFor(row, task.step, ctx)}`,
  );
}

async function printedReason(id: string, failure: FailureReader, ctx: JobContext): Promise<string | null> {
  const { runtime } = requireHost(ctx);
  for (let position: string | null = null, more = true; more;) {
    const chunk: LogChunk = await runtime.readLog(id, position);
    chunk.lines.forEach(({ text }) => failure.add(text));
    ({ position, more } = chunk);
  }
  return failure.reason();
}

async function hintFor(row: DeploymentRow, step: Task['step'], ctx: JobContext): Promise<string> {
  if (step === 'build') return 'See the last lines of the deployment log.';
  const consequence = (await hasVersionInService(ctx.sql, row)) ? 'The previous version stays in service. ' : '';
  return `${consequence}See the deployment log.`;
}

/** Takes a unit away with all that it left. */
export async function removeTask(row: DeploymentRow, step: Task['step'], ctx: JobContext): Promise<void> {
  const { runtime } = requireHost(ctx);
  const id = taskUnitId(row, step);
  const handle = await runtime.find(id);
  if (handle) {
    await runtime.stop(handle, { grace_ms: 0 }, ctx);
    await shipLastLines(requireHost(ctx), id);
  }
  await runtime.destroy(id, ctx);
}

function taskFailureReason(task: Task, { code, signal, killed }: Exited, ctx: JobContext): string {
  const { buildTimeoutSeconds, buildMemoryMb, buildOutputMb, buildDiskMb } = ctx.config;
  if (killed === 'time')
    return `${task.name} was ended because the deployment took longer than ${formatDuration(buildTimeoutSeconds)}.`;
  if (killed === 'memory')
    return (
      `${task.name} was ended because it used more than ` +
      `${task.step === 'build' ? `${buildMemoryMb} MB of memory` : 'the memory of its size'}.`
    );
  if (killed === 'output') return `${task.name} was ended because it printed more than ${buildOutputMb} MB.`;
  if (killed === 'disk') {
    const grown = `files${task.step === 'build' ? ' and its cache' : ''} grew beyond ${buildDiskMb} MB`;
    const advice = task.step === 'build' ? ' Deploy with clear_cache to empty the cache.' : '';
    return `${task.name} was ended because its ${grown} or ${buildDiskMb * FILES_PER_MB} files.${advice}`;
  }
  return code === null
    ? `${task.name} was ended by ${signal ?? 'a signal'}.`
    : `${task.name} failed with exit code ${code}.`;
}
