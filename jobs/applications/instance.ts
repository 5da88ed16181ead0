// Instances: started, health-checked, restarted after an exit, drained and stopped. After a crash of the control plane,
// running units are found by their handle or id.
import { findLaunch, wakeAllInstances } from '../../models/applications/instance_work';
import { Instance } from '../../models/applications/instance';
import { releaseAllLeases } from '../../db/lease';
import type { Session } from '../../db/control_database';
import { restartAfterEnd, restartLostUnit, exitReasonOf } from './instance/exit';
import { type InstanceRow } from './instance/row';
import { checkStarting, startInstance } from './instance/starting';
import { stopInstance } from './instance/stopping';
import { checkRunning } from './instance/running';
import { progressing, settled, type Job, type JobContext, type Outcome, requireHost } from '../job';

export const job: Job<InstanceRow> = {
  table: Instance.table,
  host: true,
  units: { prefixes: ['ins'], column: 'id' },
  states: Instance.states,
  // The files of a large application are copied in one step.
  stepMs: 300_000,
  prepare,
  reconcile,
};

/** Wakes all instances, so that exits during a downtime of the control plane are noticed soon. */
async function prepare(sql: Session): Promise<void> {
  await releaseAllLeases(sql, Instance.table);
  await wakeAllInstances(sql);
}

function reconcile(row: InstanceRow, ctx: JobContext): Promise<Outcome> {
  // The cluster starts and stops it.
  if (row.pod_uid !== null) return Promise.resolve(settled());
  return row.status === 'stopping' || row.deleted_at ? stopInstance(row, ctx) : ensureRunning(row, ctx);
}

async function ensureRunning(row: InstanceRow, ctx: JobContext): Promise<Outcome> {
  const { runtime } = requireHost(ctx);
  const launch = await findLaunch(ctx.sql, row.id);
  if (!launch) return progressing(0, { status: 'stopping' });
  const handle = row.handle ?? (await runtime.find(row.id));
  if (!handle) return startInstance(row, launch, ctx);
  // A worker that died had started it.
  if (!row.handle) await ctx.record({ handle, started_at: row.started_at ?? new Date().toISOString() });
  const state = await runtime.inspect(handle);
  if (state.state === 'gone') return restartLostUnit(row);
  if (state.state === 'exited')
    return restartAfterEnd(
      row,
      launch,
      handle,
      { reason: (output) => exitReasonOf(row, launch, state, requireHost(ctx).runtime, output) },
      ctx,
    );
  return row.status === 'running' ? checkRunning(row, launch, handle, ctx) : checkStarting(row, launch, handle, ctx);
}
