// The unit of a run that enters a running instance: as that of the instance, with another command.
import { DriverError } from '../../../core/driver';
import { overrideVariables } from '../../../core/process/variables';
import type { UnitSpec } from '../../../drivers/runtime';
import { findLaunch } from '../../../models/applications/instance_work';
import { INSTANCE_ENDED, podOfInstance } from '../../../models/runs/run/entered';
import { findEnteredInstance } from '../../../models/runs/run/job_queries';
import { openVariables } from '../../../models/runs/run/variables';
import { instanceSpecOf } from '../../applications/instance/starting';
import { requireHost, type JobContext } from '../../job';
import type { RunResult } from './result';
import type { RunRow } from './row';

const GONE = 'The instance has ended. See `status` of the instances of the application.';

type Entering = RunRow & { instance_id: string };

export function isEntering(row: RunRow): row is Entering {
  return row.instance_id !== null;
}

/** @throws DriverError invalid where the instance has gone; transient */
export async function enteringSpecOf(row: Entering, ctx: JobContext): Promise<UnitSpec> {
  const instance = await findEnteredInstance(ctx.sql, row.instance_id);
  const launch = instance && (await findLaunch(ctx.sql, instance.id));
  if (!instance || !launch) throw new DriverError('invalid', GONE);
  const { network: _, exposed: __, ...spec } = await instanceSpecOf(instance, launch, instance.port ?? 0, ctx);
  const own = {
    ...(row.tty && { TERM: 'xterm-256color' }),
    SVC_RUN_ID: row.id,
    ...openVariables(ctx.secrets, row),
  };
  return {
    ...spec,
    id: row.id,
    kind: 'task',
    command: row.command,
    within: instance.id,
    mounts: [],
    env: overrideVariables(spec.env, own),
    ...(!row.detached && { input: row.tty ? ('terminal' as const) : ('pipe' as const) }),
    limits: {
      ...spec.limits,
      time_ms: row.timeout_seconds * 1000,
      output_bytes: ctx.config.buildOutputMb * 2 ** 20,
      // Those of the instance are measured there.
      disk_mb: null,
    },
  };
}

/** Whether the unit that the command entered is there no more, or has been started anew. */
export async function hasInstanceEnded(row: Entering, ctx: JobContext): Promise<boolean> {
  const { runtime } = requireHost(ctx);
  // On a cluster, the connection ends with the instance.
  if ((await podOfInstance(ctx.sql, row.instance_id)) !== null || row.observed !== null) return false;
  const handle = await runtime.find(row.instance_id);
  if (handle === null || (await runtime.inspect(handle)).state !== 'running') return true;
  const instance = await findEnteredInstance(ctx.sql, row.instance_id);
  const [entered, started] = [row.started_at, instance?.started_at].map((time) => (time ? Date.parse(time) : null));
  return instance === null || (entered != null && started != null && started > entered);
}

/** Names the cause of an end by SIGKILL. */
export async function blameInstance(row: RunRow, result: RunResult, ctx: JobContext): Promise<RunResult> {
  if (!isEntering(row) || result.signal !== 'SIGKILL' || result.exceeded_limit || result.status !== 'failed')
    return result;
  return (await hasInstanceEnded(row, ctx)) ? { ...result, status_reason: INSTANCE_ENDED } : result;
}
