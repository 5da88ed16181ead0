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
export async function reconcileStack(place: StackKey, stack: StackSnapshot, ctx: JobContext): Promise<boolean> {
  const { wants, present } = stack;
  if (requireHost(ctx).workloads) return reconcileWorkloads(place, stack, ctx);
  const { start, retire } = planStack(wants, present);
  for (const { want, count } of start) await addInstances(ctx.sql, place, want, count);
  if (retire.length) {
    await publishRoutes(place.application_id, ctx);
    await retireInstances(ctx.sql, retire);
  }
  return start.length === 0 && retire.length === 0;
}

/** The same for a cluster, which starts and stops the instances itself. */
async function reconcileWorkloads(place: StackKey, stack: StackSnapshot, ctx: JobContext): Promise<boolean> {
  const { ensure, retire } = planWorkloads(stack.wants, stack.present, stack.workloads);
  for (const want of ensure) await ensureWorkload(ctx.sql, place, want, want.instances);
  if (retire.length) {
    await publishRoutes(place.application_id, ctx);
    await retireWorkloads(ctx.sql, retire);
  }
  return ensure.length === 0 && retire.length === 0;
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
