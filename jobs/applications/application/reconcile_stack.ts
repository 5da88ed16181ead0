// Brings the instances of an application, or of a preview, to what is desired.
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
 * Both of one moment (models/applications/stack.ts): what was read before a version went into service would end its
 * instances.
 * @returns whether nothing was to be done
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

// What takes over must have its requests before what goes stops to take them.
/** Not left to the notification: it comes a moment later. */
export async function publishRoutes(applicationId: string, ctx: JobContext): Promise<void> {
  const { ingress } = requireHost(ctx);
  const reading = ingress.beginRead();
  ingress.replaceApplicationRoutes(applicationId, await loadRoutes(ctx.sql, applicationId), reading);
}

/**
 * Leads requests to what a transaction sees and nobody else yet. The answer is to be called after its end, and then
 * leadElsewhere.
 */
export async function publishRoutesBeforeCommit(applicationId: string, ctx: JobContext, sql: Sql): Promise<() => void> {
  const { ingress } = requireHost(ctx);
  return ingress.pinRoutes(applicationId, await loadRoutes(sql, applicationId));
}
