// Where the command of a run is joined: in the run directory of its unit on this host, or on the cluster.
import path from 'node:path';
import { driverContext } from '../../core/driver';
import type { TaskRuntime } from '../../drivers/workload/task';
import { openAttachment, type Attachment } from '../../drivers/runtime/attachment';
import type { Run } from '../../models/runs/run';
import { openClusterWorkloads } from '../platform/cluster';
import type { Platform } from '../platform/platform';
import { enterWith } from './entered';

export interface Attachments {
  /**
   * null: its command does not run yet, or has gone.
   * @param mayBegin whether the client may begin a command that begins with its client
   * @throws DriverError
   */
  find(run: Run, mayBegin: boolean): Promise<Attachment | null>;
  /** Time between two looks. */
  readonly everyMs: number;
  /** Why a run that is running is not found. */
  unfound(run: Run): string;
}

const FIND_WITHIN_MS = 10_000;

/** A client of the cluster is opened with the first run. */
export function openAttachments({ config, database, log, closing }: Platform): Attachments {
  const directory = path.join(config.runtimeDir, 'units');
  const onHost = (run: Run): Attachment | null => openAttachment(directory, run.id);
  if (config.workloads !== 'kubernetes')
    return {
      find: (run) => Promise.resolve(onHost(run)),
      everyMs: 20,
      unfound: () => 'This process does not share the data directory with the one that runs the command.',
    };
  let tasks: Promise<TaskRuntime> | null = null;
  const open = async (): Promise<TaskRuntime> => {
    const workloads = await openClusterWorkloads(config, (message, error) => log.warn({ err: error }, message));
    closing.signal.addEventListener('abort', () => void workloads.close(), { once: true });
    return workloads.tasks;
  };
  return {
    async find(run, mayBegin) {
      const found = onHost(run);
      if (found) return found;
      tasks ??= open();
      const opened = await tasks.catch((error: unknown) => {
        tasks = null;
        throw error;
      });
      if (run.instance_id !== null) return mayBegin ? enterWith(opened, database, run) : null;
      const { id, project_id, detached, tty } = run;
      const input = detached ? null : tty ? 'terminal' : 'pipe';
      return opened.attach({ id, project_id }, input, driverContext(FIND_WITHIN_MS, closing.signal));
    },
    everyMs: 250,
    unfound: ({ instance_id }) =>
      instance_id === null
        ? 'The cluster does not show the pod of the run.'
        : 'A command in an instance belongs to the client that began it.',
  };
}
