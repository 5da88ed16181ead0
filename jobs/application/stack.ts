// Brings the instances of an application, or of a preview, to what is wanted.
import type { Sql } from '../../core/context';
import { routesOf } from '../../models/route';
import { addInstances, presentOf, retireInstances, type Present, type StackPlace, type Want } from '../../models/stack';
import type { HostDrivers, JobContext } from '../job';
import { planStack } from './rule';

export interface StackNow {
  present: Present[];
  /** Nothing was to be done. */
  asWanted: boolean;
}

export async function bringUp(place: StackPlace, wants: readonly Want[], ctx: JobContext): Promise<StackNow> {
  const present = await presentOf(ctx.sql, place);
  const { start, retire } = planStack(wants, present);
  for (const { want, count } of start) await addInstances(ctx.sql, place, want, count);
  if (retire.length) {
    await leadElsewhere(place.application_id, ctx);
    await retireInstances(ctx.sql, retire);
  }
  return { present, asWanted: start.length === 0 && retire.length === 0 };
}

// What takes over must have its requests before what goes stops to take them.
/** Not left to the notification: it comes a moment later. */
export async function leadElsewhere(applicationId: string, ctx: JobContext): Promise<void> {
  const { ingress } = ctx.drivers.host as HostDrivers;
  const reading = ingress.reading();
  ingress.update(applicationId, await routesOf(ctx.sql, applicationId), reading);
}

/** Leads requests to what a transaction sees and nobody else yet. The answer is to be called after its end, and then leadElsewhere. */
export async function leadBeforehand(applicationId: string, ctx: JobContext, sql: Sql): Promise<() => void> {
  const { ingress } = ctx.drivers.host as HostDrivers;
  return ingress.lead(applicationId, await routesOf(sql, applicationId));
}
