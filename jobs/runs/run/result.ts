// What the end of a unit means for its run.
import os from 'node:os';
import { describeEnd } from '../../../core/log/failure_excerpt';
import { lineEndHint } from '../../../drivers/builder/line_ends';
import { FILES_PER_MB, type Killed } from '../../../drivers/runtime';
import type { TaskState } from '../../../drivers/workload/task';
import { sizeOf } from '../../../models/deployments/release';
import { findRunLaunch } from '../../../models/runs/run/job_queries';
import type { RunStatus } from '../../../schema/types';
import { artifactDirectory, formatDuration } from '../../deployments/deployment/row';
import { taskLimitReason } from '../../deployments/deployment/task';
import type { JobContext } from '../../job';
import type { RunRow } from './row';

export interface RunResult {
  status: RunStatus;
  status_reason: string | null;
  /** As shells count it: 128 plus the number of the signal that ended it. */
  exit_code?: number | null;
  signal?: string | null;
  exceeded_limit?: Killed | null;
}

type Exited = Extract<TaskState, { state: 'exited' }>;

export function resultOf(row: RunRow, { code, signal, killed, reason }: Exited, ctx: JobContext): RunResult {
  const end = { exit_code: code ?? codeOfSignal(signal), signal, exceeded_limit: killed };
  if (row.cancel_requested_at) return { ...end, status: 'canceled', status_reason: row.status_reason ?? null };
  if (killed !== null)
    return { ...end, status: killed === 'time' ? 'timed_out' : 'failed', status_reason: limitReason(row, killed, ctx) };
  if (reason !== null) return { ...end, status: 'failed', status_reason: reason };
  if (code === 0) return { ...end, status: 'succeeded', status_reason: null };
  const hint = code === 127 ? ' A program in the command was not found.' : '';
  return { ...end, status: 'failed', status_reason: `The command ${describeEnd({ code, signal })}.${hint}` };
}

/** With what is wrong with a script of the release that could not be started. */
export async function blameLineEnds(row: RunRow, result: RunResult, ctx: JobContext): Promise<RunResult> {
  if (result.exit_code !== 126 && result.exit_code !== 127) return result;
  const launch = result.status_reason === null ? null : await findRunLaunch(ctx.sql, row.id);
  if (!launch) return result;
  const directory = artifactDirectory({ id: row.deployment_id, artifact_id: launch.artifact_id }, ctx);
  const { root_directory, image } = launch.settings;
  const hint = await lineEndHint(directory, [image?.working_directory ?? root_directory], [row.command]);
  return { ...result, status_reason: `${result.status_reason}${hint}` };
}

/** As shells count it. */
export function codeOfSignal(signal: string | null): number | null {
  const number = signal === null ? undefined : os.constants.signals[signal as NodeJS.Signals];
  return number === undefined ? null : 128 + number;
}

function limitReason(row: RunRow, killed: Killed, ctx: JobContext): string {
  if (row.trigger_type === 'release')
    return `The release command was ended because ${taskLimitReason('release', killed, '', ctx)}`;
  const { application_type, timeout_seconds } = row;
  const { config } = ctx;
  const { memory_mb, disk_mb = 0 } = sizeOf(application_type);
  const causes: Record<Killed, string> = {
    time: `it ran longer than ${formatDuration(timeout_seconds)}. Set a larger \`timeout_seconds\`.`,
    memory: `it used more than ${memory_mb} MB of memory. Choose a larger size, or reduce the memory that it uses.`,
    disk:
      `its files grew beyond ${disk_mb} MB or ${disk_mb * FILES_PER_MB} files. ` +
      'Write to a volume, or choose a larger size.',
    output: `it printed more than ${config.buildOutputMb} MB. Write large output to a file or a bucket.`,
  };
  return `The command was ended because ${causes[killed]}`;
}
