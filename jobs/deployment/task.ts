// The commands of a deployment, which run as units: the build and the release command. Started once, looked at until
// they have ended, and found again after a crash.
import type { UnitSpec, UnitState } from '../../drivers/runtime';
import type { JobContext } from '../job';
import { shipLastLines } from '../unit_log';
import { DeploymentFailure, duration, hostOf, timeLeft, unitOf, whileWanted, type DeploymentRow } from './row';

export interface Task {
  step: 'build' | 'release';
  /** As a user calls it: `The build`. */
  name: string;
  spec(): Promise<Omit<UnitSpec, 'id' | 'kind'>>;
}

type Exited = Extract<UnitState, { state: 'exited' }>;

/** @throws DeploymentFailure where the command failed */
export async function runTask(row: DeploymentRow, task: Task, ctx: JobContext): Promise<'running' | 'succeeded'> {
  const { runtime } = hostOf(ctx);
  const id = unitOf(row, task.step);
  const handle = await runtime.find(id);
  if (!handle) {
    const spec = await task.spec();
    await whileWanted(row, ctx, (inner) => runtime.start({ ...spec, id, kind: 'task' }, inner));
    return 'running';
  }
  const state = await runtime.inspect(handle);
  if (state.state !== 'exited') {
    timeLeft(row, ctx);
    return 'running';
  }
  await shipLastLines(hostOf(ctx), id);
  if (state.code === 0 && state.killed === null) return 'succeeded';
  throw new DeploymentFailure(`${reasonOf(task, state, ctx)} ${HINTS[task.step]}`);
}

const HINTS = {
  build: 'The last lines of the log of the deployment say more.',
  release: 'The version before goes on. The log of the deployment says more.',
};

/** Takes a unit away with all that it left. */
export async function endTask(row: DeploymentRow, step: Task['step'], ctx: JobContext): Promise<void> {
  const { runtime } = hostOf(ctx);
  const id = unitOf(row, step);
  const handle = await runtime.find(id);
  if (handle) {
    await runtime.stop(handle, { grace_ms: 0 }, ctx);
    await shipLastLines(hostOf(ctx), id);
  }
  await runtime.destroy(id, ctx);
}

function reasonOf(task: Task, { code, signal, killed }: Exited, ctx: JobContext): string {
  const { buildTimeoutSeconds, buildMemoryMb, buildOutputMb, buildDiskMb } = ctx.config;
  if (killed === 'time')
    return `${task.name} was ended because the deployment took longer than ${duration(buildTimeoutSeconds)}.`;
  if (killed === 'memory')
    return `${task.name} was ended because it used more than ${task.step === 'build' ? `${buildMemoryMb} MB of memory` : 'the memory of its size'}.`;
  if (killed === 'output') return `${task.name} was ended because it printed more than ${buildOutputMb} MB.`;
  if (killed === 'disk')
    return `${task.name} was ended because its files${task.step === 'build' ? ' and its cache' : ''} grew beyond ${buildDiskMb} MB.${task.step === 'build' ? ' Deploy with clear_cache to empty the cache.' : ''}`;
  return code === null
    ? `${task.name} was ended by ${signal ?? 'a signal'}.`
    : `${task.name} failed with exit code ${code}.`;
}
