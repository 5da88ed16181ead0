// Where the command of a run runs: on this host as a unit, or on a cluster as a task.
import { DriverError } from '../../../core/driver';
import type { TaskState } from '../../../drivers/workload/task';
import { isOnCluster } from '../../../models/deployments/deployment_work';
import { requireHost, type JobContext } from '../../job';
import { clusterRunner } from './cluster_runner';
import { enteredRunner } from './entered_runner';
import { hostRunner } from './host_runner';
import type { RunRow } from './row';

export interface Runner {
  /** null: it was never started, or has gone. */
  inspect(row: RunRow, ctx: JobContext): Promise<TaskState | null>;
  /** Starts it, or finds it where it was started before. @throws DriverError */
  start(row: RunRow, ctx: JobContext): Promise<void>;
  /** Begins to end its programs; they may take their grace time. Repeatable. */
  stop(row: RunRow, ctx: JobContext): Promise<void>;
  /** Of a run that has exited. @returns whether its whole output is in the log */
  shipLastLines(row: RunRow, ctx: JobContext): Promise<boolean>;
  /** Ends and removes all of it. Absent is success. @returns whether nothing is left */
  destroy(row: RunRow, ctx: JobContext): Promise<boolean>;
  /** Why a run that was running is not to be found. */
  readonly lost: string;
}

/** Where the instances of its deployment are. A run that this host has begun ends here, whatever has changed. */
export async function runnerOf(row: RunRow, ctx: JobContext): Promise<Runner> {
  const { tasks, runtime } = requireHost(ctx);
  if (!tasks || !(await isOnCluster(ctx.sql, row.deployment_id)) || (await runtime.find(row.id))) return hostRunner;
  return row.instance_id === null ? clusterRunner(tasks) : enteredRunner;
}

/** A cluster that is away runs on what it has: nothing is given up because of it. */
export async function inspectRun(runner: Runner, row: RunRow, ctx: JobContext): Promise<TaskState | null | 'unknown'> {
  try {
    return await runner.inspect(row, ctx);
  } catch (error) {
    if (!(error instanceof DriverError) || error.reason !== 'transient' || row.status !== 'running') throw error;
    ctx.log.warn({ err: error, run: row.id }, 'the state of a run could not be read; it is tried again');
    return 'unknown';
  }
}
