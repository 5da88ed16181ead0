// Reconciles the instances of an application or of a preview.
import type { Sql } from '../../../core/context';
import { loadRoutes } from '../../../models/applications/route';
import {
  addInstances,
  retireInstances,
  type PresentInstance,
  type StackKey,
  type DesiredProcess,
} from '../../../models/applications/stack';
import { type JobContext, requireHost } from '../../job';
import { planStack } from './stack_plan';

/**
 * `wants` and `present` must come from one snapshot (models/applications/stack.ts): a plan that was read before a
 * version went into service would stop its instances.
 * @returns true if nothing had to be changed
 */
export async function reconcileStack(
  place: StackKey,
  wants: readonly DesiredProcess[],
  present: readonly PresentInstance[],
  ctx: JobContext,
): Promise<boolean> {
  const { start, retire } = planStack(wants, present);
  for (const { want, count } of start) await addInstances(ctx.sql, place, want, count);
  if (retire.length) {
    await publishRoutes(place.application_id, ctx);
    await retireInstances(ctx.sql, retire);
  }
  return start.length === 0 && retire.length === 0;
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
