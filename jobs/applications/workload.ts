// Workloads: applied to the cluster, which starts, heals and moves their instances. What comes of it is written by
// server/agents/workloads/pod_rows.ts.
import { DriverError, isEngineAway } from '../../core/driver';
import { releaseAllLeases } from '../../db/lease';
import { findWorkloadLaunch, wakeOwnersOfWorkload, workloadsWithoutRow } from '../../models/applications/workload';
import { PLATFORM, recordProjectEvent } from '../../models/projects/activity';
import { deletedProjects } from '../../models/projects/cluster_place';
import type { Leftovers } from '../declarations';
import { waitingReason } from '../failure_policy';
import { gone, jittered, progressing, requireHost, settled, type Job, type JobContext, type Outcome } from '../job';
import { workloadOf, type WorkloadRow } from './workload/specification';

/** Notices what somebody has changed in the cluster. */
const RECHECK_MS = 60_000;
/** While instances are on their way: obstacles such as a quota show themselves late. */
const WAITING_MS = 3_000;
/** Of instances that have not become ready for minutes, their pods tell. */
const SOON_MS = 300_000;
/** While something is in the way: it may be over at any time, and the cluster does not tell. */
const OBSTRUCTED_MS = 10_000;
const LEAVING_MS = 1_000;
const REFUSED_MS = 10_000;

/** Objects in the cluster whose row has gone, as after a restored backup; claims of volumes are not among them. */
const leftovers: Leftovers = {
  kind: 'workload',
  async *list({ host }, ctx) {
    if (!host?.workloads) return;
    for await (const { id } of host.workloads.list(ctx)) yield [{ id }];
  },
  withoutRow: workloadsWithoutRow,
  remove: async (id, { workloads }, ctx) => void (await workloads?.remove({ id }, ctx)),
};

/** Of deleted projects, once nothing is left in them. */
const namespaces: Leftovers = {
  kind: 'namespace',
  async *list({ host }, ctx) {
    const places = (await host?.workloads?.listProjects(ctx)) ?? [];
    yield places.filter(({ leaving_since }) => leaving_since === null).map(({ project_id: id }) => ({ id }));
  },
  withoutRow: deletedProjects,
  async remove(id, { workloads }, ctx) {
    const kept = await workloads?.removeProject(id, ctx);
    if (kept) throw new DriverError('conflict', `${kept} It is kept, though its project has been deleted.`);
  },
};

export const job: Job<WorkloadRow> = {
  table: 'workloads',
  host: true,
  quiet: true,
  leftovers: [leftovers, namespaces],
  prepare: (sql) => releaseAllLeases(sql, 'workloads'),
  reconcile: (row, ctx) => (row.deleted_at ? removeWorkload(row, ctx) : applyWorkload(row, ctx)),
};

async function applyWorkload(row: WorkloadRow, ctx: JobContext): Promise<Outcome> {
  const { workloads } = requireHost(ctx);
  if (!workloads) return settled({ observed: { obstacle: 'WORKLOADS is not kubernetes any more.' } });
  const launch = await findWorkloadLaunch(ctx.sql, row.id);
  if (!launch) return progressing(WAITING_MS);
  try {
    const { ready, obstacle, corrected } = await workloads.ensure(await workloadOf(row, launch, ctx), ctx);
    if (corrected.length) await tellCorrected(row, launch.application_name, corrected, ctx);
    await noteObstacle(row, obstacle, ctx);
    if (ready < row.instances && Date.now() - Date.parse(row.updated_at) < SOON_MS) return progressing(WAITING_MS);
    return settled({}, jittered(obstacle === null ? RECHECK_MS : OBSTRUCTED_MS));
  } catch (error) {
    if (isEngineAway(error)) await noteObstacle(row, waitingReason(error), ctx);
    if (!(error instanceof DriverError) || error.reason === 'transient') throw error;
    await noteObstacle(row, error.message, ctx);
    return progressing(REFUSED_MS);
  }
}

/** Its application shows it, and shows it no more, at once. */
async function noteObstacle(row: WorkloadRow, obstacle: string | null, ctx: JobContext): Promise<void> {
  if (row.observed !== null && row.observed.obstacle === obstacle) return;
  await ctx.record({ observed: { obstacle } });
  await wakeOwnersOfWorkload(ctx.sql, row);
}

/** Somebody has changed the objects of the workload in the cluster, and now they are as before. */
async function tellCorrected(
  { id, project_id, application_id }: WorkloadRow,
  name: string,
  changed_fields: string[],
  { sql, log }: JobContext,
): Promise<void> {
  log.warn({ workload: id, fields: changed_fields }, 'a workload was changed by somebody');
  const resource = { type: 'application', id: application_id, name };
  const action = 'application.corrected';
  await recordProjectEvent(sql, { project_id, action, actor: PLATFORM, key_id: null, resource, changed_fields });
}

async function removeWorkload(row: WorkloadRow, ctx: JobContext): Promise<Outcome> {
  const { workloads } = requireHost(ctx);
  if (workloads && !(await workloads.remove(row, ctx))) return progressing(LEAVING_MS);
  return gone;
}
