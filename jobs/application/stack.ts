// Brings the instances of an application, or of a preview, to what is wanted.
import type { Sql } from '../../core/context';
import { routesOf } from '../../models/route';
import { addInstances, retireInstances, type Present, type StackPlace, type Want } from '../../models/stack';
import type { HostDrivers, JobContext } from '../job';
import { planStack } from './rule';

/**
 * Both of one moment (models/stack.ts): what was read before a version went into service would end its instances.
 * @returns whether nothing was to be done
 */
export async function bringUp(
  place: StackPlace,
  wants: readonly Want[],
  present: readonly Present[],
  ctx: JobContext,
): Promise<boolean> {
  const { start, retire } = planStack(wants, present);
  for (const { want, count } of start) await addInstances(ctx.sql, place, want, count);
  if (retire.length) {
    await leadElsewhere(place.application_id, ctx);
    await retireInstances(ctx.sql, retire);
  }
  return start.length === 0 && retire.length === 0;
}

// What takes over must have its requests before what goes stops to take them.
/** Not left to the notification: it comes a moment later. */
export async function leadElsewhere(applicationId: string, ctx: JobContext): Promise<void> {
  const { ingress } = ctx.drivers.host as HostDrivers;
  const reading = ingress.beginRead();
  ingress.replaceApplicationRoutes(applicationId, await routesOf(ctx.sql, applicationId), reading);
}

/** Leads requests to what a transaction sees and nobody else yet. The answer is to be called after its end, and then leadElsewhere. */
export async function leadBeforehand(applicationId: string, ctx: JobContext, sql: Sql): Promise<() => void> {
  const { ingress } = ctx.drivers.host as HostDrivers;
  return ingress.pinRoutes(applicationId, await routesOf(sql, applicationId));
}
