// Runs as tasks of a cluster: in the image of their release.
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError } from '../../../core/driver';
import { LAUNCH, RELEASE_USER, RUN_COMMAND } from '../../../drivers/release_image/launch_layer';
import { TASK_LOG_PREFIX, type Task } from '../../../drivers/workload/task';
import { sizeOf } from '../../../models/deployments/release';
import { findRunLaunch, type RunLaunch } from '../../../models/runs/run/job_queries';
import { podDatabases } from '../../applications/workload/databases';
import {
  imageCommandOf,
  pullableImage,
  requireOrdinaryUser,
  volumesOf,
} from '../../applications/workload/specification';
import type { HostDrivers, JobContext } from '../../job';
import type { Runner } from './runner';
import type { RunRow } from './row';
import { variablesFor } from './unit';

const SHIP_MS = 200;

/** @param tasks of the host */
export function clusterRunner({ runtime, shipper }: NonNullable<HostDrivers['tasks']>): Runner {
  return {
    lost: 'The cluster has no trace of the run: its Job was removed.',
    inspect: (row, ctx) => runtime.inspect(row, ctx),
    start: async (row, ctx) => runtime.start(await taskOf(row, ctx), ctx),
    stop: (row, ctx) => runtime.stop(row, ctx),
    destroy: (row, ctx) => runtime.destroy(row, ctx),
    async shipLastLines({ id }) {
      // Begins to read it, where the shipper does not know it yet.
      await shipper.shipRemaining(`${TASK_LOG_PREFIX}${id}`);
      const reading = runtime.untilRead(id);
      // What waits to be read is bounded: lines are stored while the rest is read.
      for (;;) {
        const isRead = await Promise.race([reading, sleep(SHIP_MS, null)]);
        await shipper.shipRemaining(`${TASK_LOG_PREFIX}${id}`);
        if (isRead !== null) return isRead;
      }
    },
  };
}

/** @throws DriverError `invalid` or `unsupported` for what a cluster cannot run */
async function taskOf(row: RunRow, ctx: JobContext): Promise<Task> {
  const launch = await findRunLaunch(ctx.sql, row.id);
  if (!launch)
    throw new DriverError('invalid', 'The files of the release are no longer kept. Deploy the application again.');
  const { memory_mb, cpus, disk_mb = null } = sizeOf(row.application_type);
  return {
    ...{ id: row.id, project_id: row.project_id, application_id: row.application_id, preview_id: row.preview_id },
    ...{ application_name: launch.application_name, process_type: row.process_type, release_id: row.release_id },
    image: pullableImage(launch, ctx),
    ...programOf(row, launch),
    ...(await podDatabases(await variablesFor(row, launch, ctx), launch.databases, ctx)),
    volumes: await volumesOf(row, ctx.sql),
    limits: { memory_mb, cpus, disk_mb },
    timeout_seconds: row.timeout_seconds,
    shutdown_grace_seconds: launch.settings.run.shutdown_grace_seconds,
    input: row.detached ? null : row.tty ? 'terminal' : 'pipe',
  };
}

type Program = Pick<Task, 'command' | 'user'>;

function programOf({ command, process_type }: RunRow, { settings }: RunLaunch): Program {
  const { image } = settings;
  if (!image)
    return {
      command: [LAUNCH, RUN_COMMAND, command, process_type],
      user: { uid: RELEASE_USER, gid: RELEASE_USER },
    };
  const { uid, gid } = requireOrdinaryUser(image);
  return { command: imageCommandOf(image, command), user: { uid, gid } };
}
