// Tasks of tenants that run elsewhere than on this host: a command that runs once, in an image, and is found again by
// its id after a crash of the control plane. On a host, units are (drivers/runtime.ts).
import type { DriverContext } from '../../core/driver';
import type { Killed } from '../runtime';
import type { Attachment } from '../runtime/attachment';
import type { Workload } from '../workload';

export interface TaskRef {
  /** `run_…`. */
  id: string;
  project_id: string;
}

export interface Task
  extends TaskRef, Pick<Workload, 'image' | 'user' | 'env' | 'documents' | 'reaches' | 'volumes' | 'limits'> {
  application_id: string;
  preview_id: string | null;
  /** For people who read the objects. */
  application_name: string;
  process_type: string;
  release_id: string;
  /** Replaces entry point and command of the image. */
  command: string[];
  /** From the start of the program, which is ended then. */
  timeout_seconds: number;
  /** Time from the signal to the end of the program, at most. */
  shutdown_grace_seconds: number;
  /** Where its standard input comes from; null: it has none. */
  input: 'pipe' | 'terminal' | null;
}

export type TaskState =
  /** `reason`: what its start waits for, as a sentence. `is_final`: waiting does not help. */
  | { state: 'waiting'; reason: string | null; is_final: boolean }
  | { state: 'running'; started_at: string }
  /** As of units. `reason`: a sentence where neither a code nor a limit explains the end. */
  | {
      state: 'exited';
      code: number | null;
      signal: string | null;
      killed: Killed | null;
      reason: string | null;
      started_at: string | null;
      at: string;
    };

/** A command in a running instance. */
export interface EnteredCommand {
  project_id: string;
  application_id: string;
  pod_uid: string;
  command: readonly string[];
  tty: boolean;
}

export interface TaskRuntime {
  /**
   * Starts the task, or finds it where it was started before. Repeatable until it is destroyed.
   * @throws DriverError `conflict` where an object of its name is of somebody else; `invalid` where it is refused
   */
  start(task: Task, ctx: DriverContext): Promise<void>;
  /** null: it was never started, or has been destroyed. */
  inspect(ref: TaskRef, ctx: DriverContext): Promise<TaskState | null>;
  /** A signal to the program, and its end after the grace time. The task stays until it is destroyed. Repeatable. */
  stop(ref: TaskRef, ctx: DriverContext): Promise<void>;
  /** Kills what runs and removes all of the task. Absent is success. @returns whether nothing is left */
  destroy(ref: Pick<TaskRef, 'id'>, ctx: DriverContext): Promise<boolean>;
  /** Resolves when the whole output of a task that has exited can be read; false after some seconds. */
  untilRead(id: string): Promise<boolean>;
  /** Ids of all tasks of this installation. */
  list(ctx: DriverContext): Promise<string[]>;
  /** A client at a running or ended task; null before its program runs, and once it has been destroyed. */
  attach(ref: TaskRef, input: Task['input'], ctx: DriverContext): Promise<Attachment | null>;
  /** Starts the command, which ends when this is closed; null where the instance has gone. @throws DriverError */
  enter(command: EnteredCommand, ctx: DriverContext): Promise<Attachment | null>;
}

/** Of the logs of tasks among those of pods: the id follows. */
export const TASK_LOG_PREFIX = 'job.';
