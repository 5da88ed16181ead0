// A command within an instance of a cluster: started by the first client that attaches, and ended with it.
import type { Sql } from '../../core/context';
import { DriverError, driverContext } from '../../core/driver';
import { LAUNCH, RUN_COMMAND } from '../../drivers/release_image/launch_layer';
import type { Attachment } from '../../drivers/runtime/attachment';
import type { TaskRuntime } from '../../drivers/workload/task';
import type { Run } from '../../models/runs/run';
import {
  beginEntered,
  endEntered,
  INSTANCE_ENDED,
  isToEnd,
  podOfInstance,
  type EnteredEnd,
} from '../../models/runs/run/entered';
import { findRunLaunch } from '../../models/runs/run/job_queries';

const WITHIN_MS = 10_000;
const CANCEL_CHECK_MS = 1_000;

/** null: it is not to begin yet, or another client has begun it. @throws DriverError, and the run has its sentence */
export async function enterWith(tasks: TaskRuntime, sql: Sql, run: Run): Promise<Attachment | null> {
  if (run.status !== 'starting' || !(await beginEntered(sql, run.id))) return null;
  const end = (how: Partial<EnteredEnd>): Promise<void> =>
    endEntered(sql, run.id, { code: null, killed: null, reason: null, ...how });
  try {
    const pod_uid = await podOfInstance(sql, run.instance_id as string);
    const { project_id, application_id, tty } = run;
    const what = pod_uid && { project_id, application_id, pod_uid, tty, command: await programOf(sql, run) };
    const entered = what ? await tasks.enter(what, driverContext(WITHIN_MS)) : null;
    if (entered === null) throw new DriverError('invalid', INSTANCE_ENDED);
    return watched(sql, run, entered, end);
  } catch (error) {
    await end({ reason: error instanceof DriverError ? error.message : 'The platform met an internal error.' });
    throw error;
  }
}

async function programOf(sql: Sql, { id, command, process_type }: Run): Promise<string[]> {
  const launch = await findRunLaunch(sql, id);
  return launch?.settings.image ? ['/bin/sh', '-c', command] : [LAUNCH, RUN_COMMAND, command, process_type];
}

/** Ends with a limit, a cancellation, and its client; how it ended is written once. */
function watched(sql: Sql, run: Run, inner: Attachment, end: (how: Partial<EnteredEnd>) => Promise<void>): Attachment {
  const stop = new AbortController();
  const timer = setTimeout(() => void end({ killed: 'time' }).finally(() => stop.abort()), run.timeout_seconds * 1000);
  const check = setInterval(() => {
    isToEnd(sql, run.id).then(
      (is) => is && stop.abort(),
      () => undefined, // the database is away: asked again
    );
  }, CANCEL_CHECK_MS);
  return {
    ...inner,
    async *output(replayBytes, signal) {
      try {
        const exited = yield* inner.output(replayBytes, AbortSignal.any([signal, stop.signal]));
        if (exited) await end({ code: exited.code });
        return exited;
      } catch (error) {
        await end({ reason: error instanceof DriverError ? error.message : null });
        throw error;
      }
    },
    close() {
      clearTimeout(timer);
      clearInterval(check);
      inner.close();
      void end({ reason: 'Its client has left, and the command with it.' }).catch(() => undefined);
    },
  };
}
