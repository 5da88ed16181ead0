// Applications: reconciles the instances, and derives the status of the application from them. Woken by every change of
// an instance, a process type or a deployment.
import path from 'node:path';
import { Application } from '../../models/applications/application';
import { releaseAllLeases } from '../../db/lease';
import { isDeploying, stackOfApplication, type StackKey } from '../../models/applications/stack';
import { removeStack } from '../../models/applications/stack_removal';
import { reconcileStack } from './application/reconcile_stack';
import { isOutageReason, OUTAGE_RECHECK_MS } from './application/outage';
import { applicationStatus, updateProcessStatuses } from './application/status';
import { parkApplication } from './application/park';
import { isPausedForGrowth } from './application/volume_growth';
import { cacheLeftovers, mirrorLeftovers, uploadLeftovers } from './application/leftovers';
import { removeTree } from '../../core/process/remove_tree';
import {
  jittered,
  gone,
  progressing,
  settled,
  type Job,
  type JobContext,
  type LoopRow,
  type Outcome,
  requireHost,
} from '../job';

interface ApplicationRow extends LoopRow {
  project_id: string;
  status: Application['status'];
  current_deployment_id: string | null;
}

/** States of an application in which no instance should run. */
const AT_REST = new Set<string>(['new', 'deploying', 'stopping', 'stopped']);
const MOVING = new Set<string>(Application.states.transitional);
/** Changes wake the job; these intervals cover lost notifications. */
const RECHECK_MS = 60_000;
const MOVING_MS = 5_000;
const GOING_MS = 1_000;

export const job: Job<ApplicationRow> = {
  table: Application.table,
  leftovers: [cacheLeftovers, mirrorLeftovers, uploadLeftovers],
  host: true,
  movedElsewhere: true,
  prepare: (sql) => releaseAllLeases(sql, Application.table),
  states: Application.states,
  park: (row, ctx) => parkApplication(stackKeyOf(row), ctx),
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : reconcileApplication(row, ctx)),
};

async function reconcileApplication(row: ApplicationRow, ctx: JobContext): Promise<Outcome> {
  const place = stackKeyOf(row);
  const stack = await stackOfApplication(ctx.sql, row.id);
  // A deployment, a stop or a start came since the row was read.
  if (stack?.status !== row.status) return progressing(0);
  const { processes, present, workloads } = stack;
  const atRest = AT_REST.has(row.status) || (await isPausedForGrowth(row.id, stack, ctx));
  const desired = processes.map((process) => ({ ...process, instances: atRest ? 0 : process.instances }));
  const upToDate = await reconcileStack(place, { wants: desired, present, workloads }, ctx);
  await updateProcessStatuses(processes, present, AT_REST, row.status, ctx);
  const { status, current_deployment_id } = row;
  const next = applicationStatus({
    status,
    status_reason: row.status_reason ?? null,
    current_deployment_id,
    processes,
    present,
    workloads,
    deploying: await isDeploying(ctx.sql, place),
  });
  const columns = next.status === status && (next.status_reason ?? null) === (row.status_reason ?? null) ? {} : next;
  if (!upToDate || next.status !== status || MOVING.has(next.status))
    return progressing(next.status === status ? MOVING_MS : 0, columns);
  if (next.status === 'new' || next.status === 'stopped') return settled(columns, null);
  // A new reason of an instance does not wake the job.
  const isOut = isOutageReason(next.status_reason ?? null);
  return settled(columns, jittered(isOut ? OUTAGE_RECHECK_MS : RECHECK_MS));
}

async function tearDown(row: ApplicationRow, ctx: JobContext): Promise<Outcome> {
  if (await removeStack(ctx.sql, stackKeyOf(row))) return progressing(GOING_MS);
  const { source, directories } = requireHost(ctx);
  await source.removeMirror(row.id, ctx);
  await removeTree(path.join(directories.caches, row.id));
  return gone;
}

function stackKeyOf({ id, project_id }: ApplicationRow): StackKey {
  return { application_id: id, project_id, preview_id: null };
}
