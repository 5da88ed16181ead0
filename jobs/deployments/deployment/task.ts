// The commands of a deployment, which run as units: the build and the release command. Started once, looked at until
// they have ended, and found again after a crash.
import path from 'node:path';
import { describeEnd, endSentence, valuesHider, type Hide } from '../../../core/log/failure_excerpt';
import type { FailureReader } from '../../../drivers/builder/command_failure';
import { lineEndHint } from '../../../drivers/builder/line_ends';
import { FILES_PER_MB, type Killed, type LogChunk, type UnitSpec, type UnitState } from '../../../drivers/runtime';
import { hasVersionInService } from '../../../models/deployments/deployment_work';
import { type JobContext, requireHost } from '../../job';
import { shipLastLines } from '../../unit_log';
import { StepFailure } from '../../workflow';
import { artifactDirectory, formatDuration, taskUnitId, timeLeftMs, type DeploymentRow } from './row';

export interface Task {
  step: 'build' | 'release';
  spec(): Promise<Omit<UnitSpec, 'id' | 'kind'>>;
  /** Variables of the task; their values are redacted from its output. */
  variables(): Promise<Record<string, string>>;
  /** Finds the failed step and its cause in the output of the task. */
  failure(hide: Hide): FailureReader;
}

export type Ended = Pick<Extract<UnitState, { state: 'exited' }>, 'code' | 'signal' | 'killed'>;

/** @throws StepFailure where the command failed */
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
    await runtime.start({ ...spec, id, kind: 'task' }, ctx);
    return 'running';
  }
  const state = await runtime.inspect(handle);
  if (state.state !== 'exited' && timeLeftMs(row, ctx) > 0) return 'running';
  await shipLastLines(requireHost(ctx), id);
  const end: Ended = state.state === 'exited' ? state : { code: null, signal: null, killed: 'time' };
  if (end.code === 0 && end.killed === null) return 'succeeded';
  const failure = await readFailure(row, task, id, ctx);
  const printed = end.killed === null ? failure.reason() : null;
  const reason = await withLineEndHint(row, printed ?? describeTaskFailure(task.step, end, failure, ctx), ctx);
  throw new StepFailure(task.step === 'release' ? await withConsequence(row, reason, ctx) : reason);
}

/** With what is wrong with a script that the reason of a failure names. */
export async function withLineEndHint(row: DeploymentRow, reason: string, ctx: JobContext): Promise<string> {
  const place = row.plan?.root_directory ?? '.';
  return `${reason}${await lineEndHint(artifactDirectory(row, ctx), [place], [reason])}`;
}

async function readFailure(row: DeploymentRow, task: Task, id: string, ctx: JobContext): Promise<FailureReader> {
  const { runtime } = requireHost(ctx);
  const failure = task.failure(taskHider(row, await task.variables(), ctx));
  for (let position: string | null = null, more = true; more;) {
    const chunk: LogChunk = await runtime.readLog(id, position);
    chunk.lines.forEach(({ text }) => failure.add(text));
    ({ position, more } = chunk);
  }
  return failure;
}

/** Hides what a reason must not show: values of variables, and paths of the host. */
export function taskHider(row: DeploymentRow, variables: Record<string, string>, ctx: JobContext): Hide {
  const hideValues = valuesHider(variables);
  const directory = `${path.resolve(artifactDirectory(row, ctx))}/`;
  return (text) => hideValues(text.replaceAll(directory, ''));
}

/** Why a version is not put into service, and what serves instead. */
export async function withConsequence(row: DeploymentRow, reason: string, ctx: JobContext): Promise<string> {
  return (await hasVersionInService(ctx.sql, row)) ? `${reason} The previous version stays in service.` : reason;
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

/** How a command ended, and what it printed that says why. */
export function describeTaskFailure(step: Task['step'], end: Ended, failure: FailureReader, ctx: JobContext): string {
  const [subject, output] = [failure.subject(), failure.excerpt()];
  if (end.killed !== null) return `${subject} was ended because ${taskLimitReason(step, end.killed, output, ctx)}`;
  const cause = output === '' ? ' and printed nothing that says why.' : `: ${endSentence(output)}`;
  return `${subject} ${describeEnd(end)}${cause}`;
}

/** Continues the sentence: `… was ended because`. */
export function taskLimitReason(step: Task['step'], killed: Killed, output: string, ctx: JobContext): string {
  const { buildTimeoutSeconds, buildMemoryMb, buildOutputMb, buildDiskMb } = ctx.config;
  if (killed === 'time') {
    const last = output === '' ? '' : ` Its last output: ${endSentence(output)}`;
    return `the deployment took longer than ${formatDuration(buildTimeoutSeconds)}.${last}`;
  }
  if (killed === 'memory')
    return step === 'build'
      ? `it used more than ${buildMemoryMb} MB of memory. Make it use less, or raise BUILD_MEMORY_MB.`
      : 'it used more than the memory of its size. Choose a larger size, or reduce the memory that it uses.';
  if (killed === 'output') return `it printed more than ${buildOutputMb} MB. Make it print less.`;
  const grown = `its files${step === 'build' ? ' and its cache' : ''} grew beyond ${buildDiskMb} MB`;
  const advice = step === 'build' ? ' Deploy with clear_cache to empty the cache.' : '';
  return `${grown} or ${buildDiskMb * FILES_PER_MB} files.${advice}`;
}
