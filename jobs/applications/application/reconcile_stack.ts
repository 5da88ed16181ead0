// Reconciles the instances of an application or of a preview.
import type { Sql } from '../../../core/context';
import { loadRoutes } from '../../../models/applications/route';
import {
  addInstances,
  retireInstances,
  type PresentInstance,
  type PresentWorkload,
  type StackKey,
  type DesiredProcess,
} from '../../../models/applications/stack';
import { ensureWorkload, retireWorkloads } from '../../../models/applications/workload';
import { type JobContext, requireHost } from '../../job';
import { planStack, planWorkloads } from './stack_plan';

/** One snapshot (models/applications/stack.ts): else a plan could stop a version that went into service meanwhile. */
interface StackSnapshot {
  wants: readonly DesiredProcess[];
  present: readonly PresentInstance[];
  workloads: readonly PresentWorkload[];
}

/** @returns true if nothing had to be changed */
export async function reconcileStack(
  place: StackKey,
  { wants, present, workloads }: StackSnapshot,
  ctx: JobContext,
): Promise<boolean> {
  const hasCluster = requireHost(ctx).workloads !== null;
  const placed = wants.map((want) => ({ ...want, on_cluster: want.on_cluster && hasCluster }));
  const units = planStack(placed, present);
  // Beside a cluster this machine still has what has not been deployed since there is one.
  const pods = hasCluster ? planWorkloads(placed, present, workloads) : { ensure: [], retire: [] };
  for (const { want, count } of units.start) await addInstances(ctx.sql, place, want, count);
  for (const want of pods.ensure) await ensureWorkload(ctx.sql, place, want, want.instances);
  if (units.retire.length || pods.retire.length) {
    await publishRoutes(place.application_id, ctx);
    await retireInstances(ctx.sql, units.retire);
    await retireWorkloads(ctx.sql, pods.retire);
  }
  return [units.start, units.retire, pods.ensure, pods.retire].every(({ length }) => length === 0);
}

/**
 * Publishes the routes at once, since new instances must receive requests before old ones stop to accept them: the
 * notification of the route feed would arrive a moment later.
 */
export async function publishRoutes(applicationId: string, ctx: JobContext): Promise<void> {
  const { ingress } = requireHost(ctx);
  const reading = ingress.beginRead();
  ingress.replaceApplicationRoutes(applicationId, await loadRoutes(ctx.sql, applicationId), reading);
}

/**
 * Routes requests by the state that only the running transaction sees. Call the returned function after the transaction
 * has ended, then publishRoutes.
 */
export async function publishRoutesBeforeCommit(applicationId: string, ctx: JobContext, sql: Sql): Promise<() => void> {
  const { ingress } = requireHost(ctx);
  return ingress.pinRoutes(applicationId, await loadRoutes(sql, applicationId));
}
